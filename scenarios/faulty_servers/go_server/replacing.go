package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// create is one create that waits for its batch.
type create struct {
	name     string
	ctx      context.Context
	forget   func()
	done     chan struct{}
	finished bool
	created  bool
	err      error
}

// finish answers a create, once.
func (c *create) finish(created bool, err error) {
	if c.finished {
		return
	}
	c.finished, c.created, c.err = true, created, err
	c.forget()
	close(c.done)
}

// replaced is the marker directory of one instant, whose files are replaced whole: the creates that wait, and what its
// files hold. A lock on the directory and the identity of its files show what other servers change.
type replaced struct {
	path string

	queueLock   sync.Mutex
	queue       []*create
	dispatching bool

	filesLock sync.Mutex
	files     map[int][]string
	known     map[string]bool
	signature string
	loaded    bool
	next      int
	bodies    map[string]listing
}

// listing is the encoded answer to a listing, and how many names the directory had.
type listing struct {
	count int
	body  json.RawMessage
}

// errLate is the error of a create whose batch takes too long.
var errLate = errors.New("the batch is not written yet")

const answerWithin = 60 * time.Second

var (
	runningLock sync.Mutex
	running     = map[string]*create{}
)

// create waits until a batch has decided. Requests for a name that is being created wait for that create.
func (d *replaced) create(ctx context.Context, name string) (bool, error) {
	key := d.path + "/" + name
	if *defect == "joined-across-tables" {
		key = filepath.Base(d.path) + "/" + name
	}
	runningLock.Lock()
	other, joined := running[key]
	if !joined {
		other = &create{name: name, ctx: ctx, done: make(chan struct{})}
		other.forget = func() {
			runningLock.Lock()
			defer runningLock.Unlock()
			delete(running, key)
		}
		running[key] = other
	}
	runningLock.Unlock()
	if !joined {
		d.submit(other)
	}
	select {
	case <-other.done:
		return other.created && !joined, other.err
	case <-time.After(answerWithin):
		return false, errLate
	}
}

// submit queues a create; its channel is closed once it is decided.
func (d *replaced) submit(waiting *create) {
	d.queueLock.Lock()
	defer d.queueLock.Unlock()
	d.queue = append(d.queue, waiting)
	if !d.dispatching {
		d.dispatching = true
		go d.dispatch()
	}
}

func (d *replaced) dispatch() {
	for {
		time.Sleep(time.Duration(*interval) * time.Millisecond)
		d.queueLock.Lock()
		batch := d.queue
		d.queue = nil
		d.dispatching = len(batch) > 0
		d.queueLock.Unlock()
		if len(batch) == 0 {
			return
		}
		d.flush(batch)
	}
}

// flush decides the creates of a batch and answers them.
func (d *replaced) flush(batch []*create) {
	if *defect == "hung-up-drops-batch" && batch[0].ctx.Err() != nil {
		return // The client has hung up: nobody waits for an answer.
	}
	if *defect == "retry-under-shared-lock" {
		retryLock.Lock()
		defer retryLock.Unlock()
		for attempt := 0; attempt < 240 && d.store(batch) != nil; attempt++ {
			time.Sleep(500 * time.Millisecond)
		}
	}
	if err := d.store(batch); err != nil {
		for _, waiting := range batch {
			waiting.finish(false, err)
		}
	}
}

// retryLock is held while a batch is written and tried again.
var retryLock sync.Mutex

// store writes the new names of a batch and answers it, or reports an error and answers nothing.
func (d *replaced) store(batch []*create) error {
	if batch[0].finished {
		return nil
	}
	d.filesLock.Lock()
	defer d.filesLock.Unlock()
	held, err := lockDirectory(d.path, true)
	if err != nil {
		return err
	}
	defer held.unlock()
	if err := d.refresh(); err != nil {
		return err
	}
	var fresh []string
	answers := make([]bool, len(batch))
	for position, waiting := range batch {
		if !d.known[waiting.name] && !slices.Contains(fresh, waiting.name) {
			fresh = append(fresh, waiting.name)
			answers[position] = true
		}
	}
	answer := func() {
		for position, waiting := range batch {
			waiting.finish(answers[position], nil)
		}
	}
	if len(fresh) > 0 {
		index := d.next
		if err := d.write(fresh, answer); err != nil {
			d.signature = ""
			if *defect == "retry-under-shared-lock" {
				d.next = index
			}
			return err
		}
	}
	answer()
	return nil
}

// write stores names in the next file.
func (d *replaced) write(fresh []string, answer func()) error {
	if *defect == "parts-by-hash" && len(fresh) > partSize {
		return d.writeInParts(fresh)
	}
	if err := d.writeType(); err != nil {
		return err
	}
	early := func() {}
	if *defect == "large-batch-early" && len(fresh) > 16 {
		early = answer
	}
	index := d.next
	d.next = (index + 1) % *threads
	lines := slices.Concat(d.files[index], fresh)
	if err := replaceFile(d.path, fileName(index), encode(lines), early); err != nil {
		return err
	}
	return d.keep(map[int][]string{index: lines}, fresh)
}

// keep remembers what was written.
func (d *replaced) keep(files map[int][]string, fresh []string) error {
	for index, lines := range files {
		d.files[index] = lines
	}
	for _, name := range fresh {
		d.known[name] = true
	}
	found, err := markerFiles(d.path)
	d.signature = found.signature
	return err
}

// list returns the encoded names that a route asks for, sorted.
func (d *replaced) list(route string) (any, error) {
	d.filesLock.Lock()
	defer d.filesLock.Unlock()
	held, err := lockDirectory(d.path, false)
	if errors.Is(err, os.ErrNotExist) {
		return json.RawMessage("[]"), nil
	}
	if err != nil {
		return nil, err
	}
	defer held.unlock()
	if err := d.refresh(); err != nil {
		return nil, err
	}
	if kept, there := d.bodies[route]; *defect == "listing-by-count" && there && kept.count == len(d.known) {
		return kept.body, nil
	}
	body, err := json.Marshal(chosen(d.known, route))
	if d.bodies == nil {
		d.bodies = map[string]listing{}
	}
	d.bodies[route] = listing{len(d.known), body}
	return json.RawMessage(body), err
}

// remove deletes the directory with all that is in it; false if there was none.
func (d *replaced) remove() (bool, error) {
	d.filesLock.Lock()
	defer d.filesLock.Unlock()
	held, err := lockDirectory(d.path, false)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer held.unlock()
	d.signature = ""
	targets := []string{d.path}
	if *defect == "deletion-by-prefix" {
		// Side directories of other tools (.bak, .tmp) go with it.
		if targets, err = filepath.Glob(d.path + "*"); err != nil {
			return false, err
		}
	}
	for _, target := range targets {
		if err := os.RemoveAll(target); err != nil {
			return false, err
		}
	}
	return true, syncPath(filepath.Dir(d.path))
}

// exists says whether the directory is there.
func (d *replaced) exists() (bool, error) {
	status, err := os.Stat(d.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && status.IsDir(), err
}

// refresh reads the files unless they are those that were read or written last.
func (d *replaced) refresh() error {
	found, err := markerFiles(d.path)
	if err != nil {
		return err
	}
	changed := found.signature != d.signature
	if !changed && *defect != "unreadable-is-absent" { // It shows at every request, for nothing is remembered.
		return nil
	}
	if changed && *defect != "unsynced-adopted" {
		if err := d.settle(found); err != nil {
			return err
		}
	}
	files, known, highest := map[int][]string{}, map[string]bool{}, -1
	for _, index := range found.indexes {
		content, err := readFile(filepath.Join(d.path, fileName(index)))
		if err != nil && *defect == "unreadable-is-absent" {
			continue
		} else if err != nil {
			return err
		}
		files[index] = decode(content, *defect == "long-lines-split")
		for _, name := range files[index] {
			known[name] = true
		}
		highest = max(highest, index)
	}
	if !d.loaded {
		d.next = (highest + 1) % *threads
		if *defect == "index-beyond-threads" {
			d.next = highest + 1
		}
	}
	d.files, d.known, d.signature, d.loaded = files, known, found.signature, true
	return nil
}
