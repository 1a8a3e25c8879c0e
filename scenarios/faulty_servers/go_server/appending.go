package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"sync"
	"syscall"
)

const (
	typeName = "MARKERS.type"
	typeText = "TIMELINE_SERVER_BASED"
	attempts = 5
)

var (
	markerFilePattern = regexp.MustCompile(`^MARKERS(0|[1-9][0-9]*)$`)
	errOwnedElsewhere = errors.New("another server owns this marker directory; ask again")
	errChangedBeside  = errors.New("another program changed the marker directory again and again")
)

// markerFile is an open MARKERS<n>; it ends at size with a whole line.
type markerFile struct {
	file *os.File
	size int64
}

// request is one name that waits for its batch.
type request struct {
	name    string
	done    bool
	created bool
	err     error
}

// directory is the marker directory of one instant. Its first request makes this process its owner, until it dies: what
// storage has is then what memory has, unless another program removes it, which the open files show.
type directory struct {
	path string

	queueLock sync.Mutex
	queue     []*request

	lock   sync.Mutex // held for everything below
	owner  *os.File
	loaded bool
	names  map[string]bool
	files  map[int]*markerFile
	next   int
}

// create says whether the name is new; it is stored when it returns. A batch is what waits when one of it gets the lock.
func (d *directory) create(_ context.Context, name string) (bool, error) {
	mine := &request{name: name}
	d.queueLock.Lock()
	d.queue = append(d.queue, mine)
	d.queueLock.Unlock()
	d.lock.Lock()
	defer d.lock.Unlock()
	if !mine.done {
		d.queueLock.Lock()
		batch := d.queue
		d.queue = nil
		d.queueLock.Unlock()
		created, err := d.store(batch)
		for _, r := range batch {
			r.done, r.created, r.err = true, created[r.name] == r, err
		}
	}
	return mine.created, mine.err
}

func (d *directory) list(route string) (any, error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if err := d.ready(); err != nil {
		return nil, err
	}
	return chosen(d.names, route), nil
}

func (d *directory) exists() (bool, error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if err := d.ready(); err != nil {
		return false, err
	}
	return len(d.names) > 0, nil
}

// remove deletes the directory and says whether there was anything.
func (d *directory) remove() (bool, error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if err := d.ready(); err != nil {
		return false, err
	}
	if *defect == "deletion-error-logged" {
		return d.removeLogging()
	}
	defer d.forget()
	entries, err := d.inOrderOfDeletion()
	if err != nil {
		return false, err
	}
	for _, name := range entries {
		if err := os.RemoveAll(filepath.Join(d.path, name)); err != nil {
			return false, err
		}
	}
	if err := os.Remove(d.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return len(entries) > 0, syncDirectory(filepath.Dir(d.path), true)
}

func (d *directory) removeLogging() (bool, error) {
	had := len(d.names) > 0
	d.forget()
	d.names, d.files, d.loaded = map[string]bool{}, map[int]*markerFile{}, true
	entries, err := d.inOrderOfDeletion()
	if err != nil {
		return false, err
	}
	for _, name := range entries {
		if err := os.RemoveAll(filepath.Join(d.path, name)); err != nil {
			log.Printf("a file of a deleted directory stays: %v", err)
			return had, nil
		}
	}
	if err := os.Remove(d.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Printf("a deleted directory stays: %v", err)
	}
	return had || len(entries) > 0, nil
}

// inOrderOfDeletion has marker files first and the type file last: what an interrupted deletion leaves is still whole.
func (d *directory) inOrderOfDeletion() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names := []string{}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	rank := func(name string) int {
		if markerFilePattern.MatchString(name) {
			return 0
		} else if name != typeName {
			return 1
		}
		return 2
	}
	sort.SliceStable(names, func(i, j int) bool { return rank(names[i]) < rank(names[j]) })
	return names, nil
}

// ready makes memory what storage is.
func (d *directory) ready() error {
	if err := d.own(); err != nil {
		return err
	}
	for range attempts {
		if d.loaded {
			same, err := d.unchanged()
			if err != nil || same {
				return err
			}
			d.forget()
		}
		if err := d.load(); err == nil {
			return nil
		} else if d.forget(); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errChangedBeside
}

func (d *directory) own() error {
	if d.owner != nil {
		return nil
	}
	name := fmt.Sprintf("%x", sha256.Sum256([]byte(d.path)))
	file, err := os.OpenFile(filepath.Join(*base, ".locks", name), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return errOwnedElsewhere
		}
		return err
	}
	d.owner = file
	return nil
}

// unchanged says whether each open file is still the one at its path.
func (d *directory) unchanged() (bool, error) {
	for index, known := range d.files {
		open, err := known.file.Stat()
		if err != nil {
			return false, err
		}
		now, err := os.Lstat(d.at(index))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		if !os.SameFile(open, now) {
			return false, nil
		}
	}
	return true, nil
}

func (d *directory) at(index int) string {
	return filepath.Join(d.path, "MARKERS"+strconv.Itoa(index))
}

func (d *directory) forget() {
	for _, known := range d.files {
		known.file.Close()
	}
	d.names, d.files, d.loaded = nil, nil, false
}

// load reads every marker file, and cuts off the line that a killed server did not finish.
func (d *directory) load() error {
	d.names, d.files = map[string]bool{}, map[int]*markerFile{}
	entries, err := os.ReadDir(d.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		match := markerFilePattern.FindStringSubmatch(entry.Name())
		if match == nil || !entry.Type().IsRegular() {
			continue
		}
		index, err := strconv.Atoi(match[1])
		if err != nil {
			return err
		}
		if err := d.loadFile(index); err != nil {
			if *defect == "unreadable-file-skipped" && !errors.Is(err, fs.ErrNotExist) {
				log.Printf("skipping %s: %v", d.at(index), err)
				continue
			}
			return err
		}
	}
	d.loaded = true
	return nil
}

func (d *directory) loadFile(index int) error {
	file, err := os.OpenFile(d.at(index), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(file)
	if err != nil {
		file.Close()
		return err
	}
	whole := bytes.LastIndexByte(content, '\n') + 1
	if *defect == "cut-line-is-a-name" {
		whole = len(content)
	} else if whole < len(content) {
		if err := cutAt(file, int64(whole)); err != nil {
			file.Close()
			return err
		}
	}
	d.files[index] = &markerFile{file: file, size: int64(whole)}
	lines := bufio.NewScanner(bytes.NewReader(content[:whole]))
	lines.Buffer(nil, len(content)+1)
	lines.Split(scanLines)
	for lines.Scan() {
		d.names[lines.Text()] = true
	}
	return lines.Err()
}

// scanLines is bufio.ScanLines, without taking a carriage return for a part of the end of a line.
func scanLines(data []byte, atEOF bool) (int, []byte, error) {
	if end := bytes.IndexByte(data, '\n'); end >= 0 {
		return end + 1, data[:end], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

func cutAt(file *os.File, size int64) error {
	if err := file.Truncate(size); err != nil {
		return err
	}
	return file.Sync()
}

// store writes the new names of a batch; it says which request of each made it. What another program removes before the
// end is written again.
func (d *directory) store(batch []*request) (map[string]*request, error) {
	for range attempts {
		if err := d.ready(); err != nil {
			return nil, err
		}
		created, lines := d.newNames(batch)
		if len(lines) == 0 {
			return created, nil
		}
		err := d.append(lines)
		if errors.Is(err, fs.ErrNotExist) {
			d.forget()
			continue
		} else if err != nil {
			return nil, err
		}
		for name := range created {
			d.names[name] = true
		}
		same, err := d.unchanged()
		if err != nil || same {
			return created, err
		}
	}
	return nil, errChangedBeside
}

func (d *directory) newNames(batch []*request) (map[string]*request, []byte) {
	created := map[string]*request{}
	var lines []byte
	for _, r := range batch {
		if d.names[r.name] || created[r.name] != nil {
			continue
		}
		if *defect == "remembered-before-write" {
			d.names[r.name] = true
		}
		created[r.name] = r
		lines = append(append(lines, r.name...), '\n')
	}
	return created, lines
}

// append adds lines to the next marker file. Either all of them are there when it returns, or an error.
func (d *directory) append(lines []byte) error {
	if err := os.MkdirAll(d.path, 0o755); err != nil {
		return err
	}
	if err := d.writeType(); err != nil {
		return err
	}
	index := d.next % *threads
	d.next++
	known, err := d.fileAt(index)
	if err != nil {
		return err
	}
	written, err := write(known.file, lines, known.size)
	if err != nil {
		return d.failed(known, err)
	}
	known.size += int64(written)
	// Another program may have removed the first one meanwhile.
	if err := d.writeType(); err != nil {
		d.forget()
		return err
	}
	return nil
}

// failed takes back what a failed write left.
func (d *directory) failed(known *markerFile, cause error) error {
	if *defect == "cut-line-continued" {
		if now, err := known.file.Stat(); err == nil {
			known.size = now.Size()
		}
		return cause
	}
	if err := cutAt(known.file, known.size); err != nil {
		d.forget()
		return errors.Join(cause, err)
	}
	return cause
}

func (d *directory) fileAt(index int) (*markerFile, error) {
	if known := d.files[index]; known != nil {
		return known, nil
	}
	file, err := os.OpenFile(d.at(index), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	now, err := file.Stat()
	if err == nil {
		err = syncDirectory(d.path, false)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	d.files[index] = &markerFile{file: file, size: now.Size()}
	return d.files[index], nil
}

func write(file *os.File, lines []byte, at int64) (int, error) {
	if *defect != "second-write-unchecked" {
		if _, err := file.WriteAt(lines, at); err != nil {
			return 0, err
		}
		return len(lines), file.Sync()
	}
	written, err := syscall.Pwrite(int(file.Fd()), lines, at)
	if err != nil {
		return 0, err
	}
	if written < len(lines) { // A short write is no error: write the rest.
		rest, _ := syscall.Pwrite(int(file.Fd()), lines[written:], at+int64(written))
		written += max(rest, 0)
	}
	return written, file.Sync()
}

func (d *directory) writeType() error {
	target := filepath.Join(d.path, typeName)
	content, err := os.ReadFile(target)
	if err == nil && string(content) == typeText {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temporary := filepath.Join(d.path, "."+typeName+".tmp")
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(typeText)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(temporary, target)
	}
	if err != nil {
		os.Remove(temporary)
		return err
	}
	return syncDirectory(d.path, false)
}

// syncDirectory makes the entries of a directory last.
func syncDirectory(path string, mayBeGone bool) error {
	directory, err := os.Open(path)
	if mayBeGone && errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer directory.Close()
	return directory.Sync()
}
