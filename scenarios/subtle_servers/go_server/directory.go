package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// markerDirectory is one marker directory: the creates that wait, and what its files hold.
type markerDirectory struct {
	path     string
	settings settings

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

// submit queues a create; its channel is closed once it is decided.
func (d *markerDirectory) submit(waiting *create) {
	d.queueLock.Lock()
	defer d.queueLock.Unlock()
	d.queue = append(d.queue, waiting)
	if !d.dispatching {
		d.dispatching = true
		go d.dispatch()
	}
}

func (d *markerDirectory) dispatch() {
	for {
		time.Sleep(d.settings.interval)
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
func (d *markerDirectory) flush(batch []*create) {
	if d.settings.defect == 15 && batch[0].ctx.Err() != nil {
		return // The client has hung up: nobody waits for an answer.
	}
	if d.settings.defect == 18 {
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
func (d *markerDirectory) store(batch []*create) error {
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
			if d.settings.defect == 18 {
				d.next = index
			}
			return err
		}
	}
	answer()
	return nil
}

// write stores names in the next file.
func (d *markerDirectory) write(fresh []string, answer func()) error {
	if d.settings.defect == 13 && len(fresh) > partSize {
		return d.writeInParts(fresh)
	}
	if d.settings.defect != 17 {
		if err := d.writeType(); err != nil {
			return err
		}
	}
	early := func() {}
	if d.settings.defect == 12 && len(fresh) > 16 {
		early = answer
	}
	index := d.next
	d.next = (index + 1) % d.settings.threads
	lines := slices.Concat(d.files[index], fresh)
	if err := replaceFile(d.path, fileName(index), encode(lines), early); err != nil {
		return err
	}
	if d.settings.defect == 17 {
		if err := d.writeType(); err != nil {
			return err
		}
	}
	return d.keep(map[int][]string{index: lines}, fresh)
}

// keep remembers what was written.
func (d *markerDirectory) keep(files map[int][]string, fresh []string) error {
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
func (d *markerDirectory) list(route string) (json.RawMessage, error) {
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
	if kept, there := d.bodies[route]; d.settings.defect == 16 && there && kept.count == len(d.known) {
		return kept.body, nil
	}
	names := []string{}
	for name := range d.known {
		if route == "all" || strings.HasSuffix(name, "APPEND") == (route == "append") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	body, err := json.Marshal(names)
	if d.bodies == nil {
		d.bodies = map[string]listing{}
	}
	d.bodies[route] = listing{len(d.known), body}
	return body, err
}

// remove deletes the directory with all that is in it; false if there was none.
func (d *markerDirectory) remove() (bool, error) {
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
	if d.settings.defect == 19 {
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
func (d *markerDirectory) exists() (bool, error) {
	status, err := os.Stat(d.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && status.IsDir(), err
}

// refresh reads the files unless they are those that were read or written last.
func (d *markerDirectory) refresh() error {
	found, err := markerFiles(d.path)
	if err != nil || found.signature == d.signature {
		return err
	}
	files, known, highest := map[int][]string{}, map[string]bool{}, -1
	for _, index := range found.indexes {
		content, err := os.ReadFile(filepath.Join(d.path, fileName(index)))
		if err != nil {
			return err
		}
		files[index] = decode(content, d.settings.defect == 11)
		for _, name := range files[index] {
			known[name] = true
		}
		highest = max(highest, index)
	}
	if !d.loaded {
		d.next = (highest + 1) % d.settings.threads
		if d.settings.defect == 20 {
			d.next = highest + 1
		}
	}
	d.files, d.known, d.signature, d.loaded = files, known, found.signature, true
	return nil
}
