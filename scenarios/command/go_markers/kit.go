package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
)

// Line is a message in either direction.
type Line = map[string]any

// Kit speaks the protocol for code that simply blocks: each call is a task of its own, and one task runs at a time, in
// an order that does not depend on Go's scheduler, so that the same plan gives the same run.
type Kit struct {
	out     *bufio.Writer
	ready   []*Task
	running *Task
	back    chan struct{}
	waiting map[int]*Task
	tasks   map[*Task]bool
	last    int
}

// Task is a goroutine that has its turn when true comes, and ends when false does. call: which it answers, 0 for none.
type Task struct {
	turn   chan bool
	call   int
	result Line
}

// Failed is an error of the kit by its word, as "not-found".
type Failed struct{ word, message string }

func (f Failed) Error() string { return f.word + ": " + f.message }

// spawn makes a task that has its turn later.
func (k *Kit) spawn(body func()) *Task {
	task := &Task{turn: make(chan bool)}
	go func() {
		if <-task.turn {
			body()
			delete(k.tasks, task)
			k.back <- struct{}{}
		}
	}()
	k.tasks[task] = true
	k.wake(task)
	return task
}

// wake lets a task go on when it is its turn.
func (k *Kit) wake(task *Task) { k.ready = append(k.ready, task) }

// park gives the turn away until somebody wakes this task.
func (k *Kit) park() {
	me := k.running
	k.back <- struct{}{}
	if !<-me.turn {
		runtime.Goexit()
	}
}

// ask has the kit do an operation and waits for its outcome.
func (k *Kit) ask(operation string, fields Line) (Line, error) {
	k.last++
	fields["do"], fields["id"] = operation, k.last
	if k.running.call != 0 { // Who kills the thread of this call ends its operation too.
		fields["call"] = k.running.call
	}
	k.waiting[k.last] = k.running
	k.say(fields)
	me := k.running
	k.park()
	if word, failed := me.result["error"].(string); failed {
		return nil, Failed{word, me.result["message"].(string)}
	}
	return me.result, nil
}

func (k *Kit) put(path string, data string, ifAbsent bool) error {
	encoded := base64.StdEncoding.EncodeToString([]byte(data))
	_, err := k.ask("put", Line{"path": path, "data": encoded, "if_absent": ifAbsent})
	return err
}

func (k *Kit) get(path string) (string, error) {
	done, err := k.ask("get", Line{"path": path})
	if err != nil {
		return "", err
	}
	data, err := base64.StdEncoding.DecodeString(done["data"].(string))
	return string(data), err
}

func (k *Kit) list(prefix string) ([]string, error) {
	done, err := k.ask("list", Line{"prefix": prefix})
	if err != nil {
		return nil, err
	}
	paths := []string{}
	for _, path := range done["paths"].([]any) {
		paths = append(paths, path.(string))
	}
	return paths, nil
}

func (k *Kit) delete(path string) error {
	_, err := k.ask("delete", Line{"path": path})
	return err
}

func (k *Kit) sleep(ms int) { k.ask("sleep", Line{"ms": ms}) }

func (k *Kit) say(line Line) {
	encoder := json.NewEncoder(k.out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(line); err != nil {
		panic(err)
	}
}

// run answers the kit until standard input ends. start begins a process, call answers a call in a task of its own.
func (k *Kit) run(hello Line, start func(Line), call func(Line) Line) {
	in := bufio.NewReaderSize(os.Stdin, 1<<16)
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var line Line
		if err := json.Unmarshal(text, &line); err != nil {
			panic(err)
		}
		switch line["event"] {
		case "hello":
			k.say(hello)
		case "start":
			for task := range k.tasks { // The process before is dead, and nothing of it goes on.
				task.turn <- false
			}
			k.tasks, k.waiting, k.last = map[*Task]bool{}, map[int]*Task{}, 0
			start(line)
		case "call":
			task := k.spawn(func() {
				answer := call(line)
				answer["do"], answer["call"] = "answer", line["call"]
				k.say(answer)
			})
			task.call = int(line["call"].(float64))
		case "done":
			id := int(line["id"].(float64))
			task := k.waiting[id]
			delete(k.waiting, id)
			task.result = line
			k.wake(task)
		default:
			panic(fmt.Sprint("what is ", line))
		}
		for len(k.ready) > 0 {
			k.running, k.ready = k.ready[0], k.ready[1:]
			k.running.turn <- true
			<-k.back
		}
		k.say(Line{"do": "wait"})
		k.out.Flush()
	}
}
