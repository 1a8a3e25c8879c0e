// Markers in Go for `--sut command` (docs/command.md): in direct mode an empty object a marker; in timeline mode batches,
// each an object of its own with a name a line, answered when it is stored.
//
// -forgets is the faulty variant: it numbers its batches, and a server that starts again begins at 0 and overwrites
// what the one before it stored.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
)

const end = ".batch"

var (
	kit     = &Kit{out: bufio.NewWriter(os.Stdout), back: make(chan struct{})}
	forgets = flag.Bool("forgets", false, "number batches from 0 in each process")
	server  *Server
)

// Server is what one process knows.
type Server struct {
	timeline   bool
	process    string
	intervalMs int
	batches    int
	owners     map[string]*Owner
}

// Owner takes the creates and deletions of one directory in turn.
type Owner struct {
	directory string
	queue     []*Asked
	known     map[string][]string // Batches that were read, by path; a path is never used twice.
	creators  map[string]string   // The request that made a name, so that a resend gets the same answer.
}

// Asked is a create, or a deletion with the name "".
type Asked struct {
	name    string
	request string
	task    *Task
	result  bool
	err     error
}

func main() {
	flag.Parse()
	hello := Line{
		"do": "hello", "protocol": 1, "name": "go-markers", "version": "1",
		"modes": []string{"direct", "timeline"}, "identity": true, "reset": true,
	}
	kit.run(hello, start, call)
}

func start(line Line) {
	server = &Server{
		timeline:   line["mode"] == "timeline",
		process:    line["process"].(string),
		intervalMs: int(line["batch_interval_ms"].(float64)),
		owners:     map[string]*Owner{},
	}
}

func call(line Line) Line {
	directory := line["directory"].(string)
	owner := server.owners[directory]
	if owner == nil {
		owner = &Owner{directory: directory, known: map[string][]string{}, creators: map[string]string{}}
		server.owners[directory] = owner
	}
	var result bool
	var err error
	switch line["operation"] {
	case "create":
		name := line["name"].(string)
		switch {
		case !isMarkerName(name):
			return Line{"error": "rejected", "message": "this is no marker name"}
		case server.timeline:
			result, err = owner.wait(name, line["request"].(string))
		default:
			result, err = owner.createAlone(name)
		}
	case "list":
		names, err := owner.list()
		if err != nil {
			return failed(err)
		}
		return Line{"names": names}
	case "exists":
		var paths []string
		paths, err = kit.list(directory + "/")
		result = len(paths) > 0
	case "delete":
		if server.timeline {
			result, err = owner.wait("", "")
		} else {
			result, err = owner.delete()
		}
	}
	if err != nil {
		return failed(err)
	}
	return Line{"result": result}
}

func failed(err error) Line {
	var known Failed
	if errors.As(err, &known) {
		return Line{"error": known.word, "message": known.message}
	}
	return Line{"error": "failed", "message": err.Error()}
}

func is(err error, word string) bool {
	var known Failed
	return errors.As(err, &known) && known.word == word
}

func (o *Owner) createAlone(name string) (bool, error) {
	for {
		err := kit.put(o.directory+"/"+name, "", true)
		switch {
		case is(err, "conflicted"):
			kit.sleep(5)
		case is(err, "precondition-failed"):
			return false, nil
		default:
			return true, err
		}
	}
}

// wait queues a request and waits until it was its turn.
func (o *Owner) wait(name, request string) (bool, error) {
	asked := &Asked{name: name, request: request, task: kit.running}
	o.queue = append(o.queue, asked)
	if len(o.queue) == 1 {
		kit.spawn(o.own)
	}
	kit.park()
	return asked.result, asked.err
}

// own works until the queue is empty; what it works at stays in the queue meanwhile.
func (o *Owner) own() {
	for len(o.queue) > 0 {
		if o.queue[0].name == "" {
			first := o.queue[0]
			o.creators = map[string]string{}
			first.result, first.err = o.delete()
			o.done(1)
			continue
		}
		kit.sleep(server.intervalMs)
		size := 0
		for size < len(o.queue) && o.queue[size].name != "" {
			size++
		}
		o.store(o.queue[:size])
		o.done(size)
	}
}

func (o *Owner) done(size int) {
	for _, asked := range o.queue[:size] {
		kit.wake(asked.task)
	}
	o.queue = o.queue[size:]
}

// store flushes the names that are new, as one object.
func (o *Owner) store(batch []*Asked) {
	names, err := o.list()
	if err != nil { // Who made what is stored stays as it was.
		for _, asked := range batch {
			asked.err = err
		}
		return
	}
	stored := map[string]bool{}
	for _, name := range names {
		stored[name] = true
	}
	text := ""
	for _, asked := range batch {
		if !stored[asked.name] {
			stored[asked.name], asked.result = true, true
			o.creators[asked.name] = asked.request
			text += asked.name + "\n"
		} else if asked.request != "" {
			asked.result = o.creators[asked.name] == asked.request
		}
	}
	if text != "" {
		err = kit.put(o.directory+"/"+server.batch(), text, false)
	}
	for _, asked := range batch {
		asked.err = err
	}
}

// batch is the name of the next batch; that of the process in it makes it new in all lives.
func (s *Server) batch() string {
	s.batches++
	if *forgets {
		return fmt.Sprint(s.batches-1, end)
	}
	return fmt.Sprint(strings.ReplaceAll(s.process, "/", "-"), "-", s.batches, end)
}

// list is the union of batches and of objects that direct mode made; batches that are new here are read all at once.
func (o *Owner) list() ([]string, error) {
	paths, err := kit.list(o.directory + "/")
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	left, me := 0, kit.running
	var trouble error
	for _, path := range paths {
		name := strings.TrimPrefix(path, o.directory+"/")
		if isMarkerName(name) {
			found[name] = true
		}
		if !strings.HasSuffix(path, end) || o.known[path] != nil {
			continue
		}
		left++
		path := path
		kit.spawn(func() {
			data, err := kit.get(path)
			if err == nil {
				o.known[path] = strings.Split(strings.TrimSuffix(data, "\n"), "\n")
			} else if !is(err, "not-found") {
				trouble = err
			}
			if left--; left == 0 {
				kit.wake(me)
			}
		})
	}
	if left > 0 {
		kit.park()
	}
	for _, path := range paths {
		for _, name := range o.known[path] {
			found[name] = true
		}
	}
	names := []string{}
	for name := range found {
		names = append(names, name)
	}
	sort.Strings(names)
	return names, trouble
}

// delete removes whatever lies below the directory; an error leaves the rest to the next deletion.
func (o *Owner) delete() (bool, error) {
	paths, err := kit.list(o.directory + "/")
	for _, path := range paths {
		if err == nil {
			err = kit.delete(path)
		}
	}
	return len(paths) > 0, err
}

func isMarkerName(name string) bool {
	parts := strings.Split(name, "/")
	for _, part := range parts {
		if part == "" || part == "." || part == ".." || len(part) > 255 {
			return false
		}
	}
	for _, c := range name {
		if c < 32 || c >= 127 && c < 160 || c == 0x2028 || c == 0x2029 {
			return false
		}
	}
	for _, kind := range []string{".marker.CREATE", ".marker.MERGE", ".marker.APPEND"} {
		last := parts[len(parts)-1]
		if strings.HasSuffix(last, kind) && last != kind {
			return parts[0] != ".hoodie" && len(name) <= 4096
		}
	}
	return false
}
