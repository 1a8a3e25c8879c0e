// A marker file is replaced by a longer copy: copy_file_range and sendfile take the old one, pwritev adds the new lines.
// It has its storage alone, and writes the creates of 5 ms to the next of its files.
//
//	vectored PORT ROOT THREADS
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"
	"unsafe"
)

const typeText = "TIMELINE_SERVER_BASED"

type create struct {
	name  string
	reply chan answer
}

type answer struct {
	created bool
	err     error
}

// directory has one writer at a time; next counts its batches.
type directory struct {
	path    string
	writing sync.Mutex
	lock    sync.Mutex
	waiting []create
	busy    bool
	next    int
}

var (
	threads     int
	number      atomic.Int64
	directories sync.Map
	alone       *os.File // its lock ends with the process
)

func at(path string) *directory {
	d, _ := directories.LoadOrStore(path, &directory{path: path})
	return d.(*directory)
}

func (d *directory) names() (map[string]bool, error) {
	found := map[string]bool{}
	for i := 0; i < threads; i++ {
		data, err := os.ReadFile(filepath.Join(d.path, "MARKERS"+strconv.Itoa(i)))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(data), "\n")
		for _, line := range lines[:len(lines)-1] {
			found[line] = true
		}
	}
	return found, nil
}

func temporary(path string) string {
	return fmt.Sprintf("%s/.%s.%d.%d", filepath.Dir(path), filepath.Base(path), os.Getpid(), time.Now().UnixNano()+number.Add(1))
}

// grow replaces a file by its content and more.
func grow(path string, more [][]byte) error {
	name := temporary(path)
	out, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	size := int64(0)
	in, err := os.Open(path)
	if err == nil {
		defer in.Close()
		size, err = copied(out, in)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := vectored(int(out.Fd()), size, more); err != nil {
		return err
	}
	return os.Rename(name, path)
}

// copied has the first half copied by copy_file_range and the rest by sendfile.
func copied(out, in *os.File) (int64, error) {
	told, err := in.Stat()
	if err != nil {
		return 0, err
	}
	size, done := told.Size(), int64(0)
	for done < size/2 {
		n, _, e := syscall.Syscall6(326, in.Fd(), uintptr(unsafe.Pointer(&done)), out.Fd(), 0, uintptr(size/2-done), 0)
		if e == syscall.EINTR {
			continue
		}
		if e != 0 {
			return 0, e
		}
		if n == 0 {
			break
		}
	}
	for done < size {
		n, err := syscall.Sendfile(int(out.Fd()), int(in.Fd()), &done, int(size-done))
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return 0, err
		}
		if n == 0 {
			return 0, errors.New("the file became shorter")
		}
	}
	return size, nil
}

func vectored(fd int, offset int64, pieces [][]byte) error {
	data := bytes.Join(pieces, nil)
	for len(data) > 0 {
		half := (len(data) + 1) / 2
		parts := []syscall.Iovec{{Base: &data[0], Len: uint64(half)}}
		if half < len(data) {
			parts = append(parts, syscall.Iovec{Base: &data[half], Len: uint64(len(data) - half)})
		}
		n, _, e := syscall.Syscall6(296, uintptr(fd), uintptr(unsafe.Pointer(&parts[0])), uintptr(len(parts)), uintptr(offset), 0, 0)
		if e == syscall.EINTR {
			continue
		}
		if e != 0 {
			return e
		}
		data, offset = data[n:], offset+int64(n)
	}
	return nil
}

func (d *directory) write(batch []create) ([]bool, error) {
	created := make([]bool, len(batch))
	for try := 0; try < 20; try++ {
		known, err := d.names()
		if err != nil {
			return nil, err
		}
		var more [][]byte
		for i, one := range batch {
			created[i] = created[i] || !known[one.name]
			if !known[one.name] {
				known[one.name] = true
				more = append(more, []byte(one.name+"\n"))
			}
		}
		if more == nil {
			return created, nil
		}
		if err := os.MkdirAll(d.path, 0o755); err != nil {
			return nil, err
		}
		file := filepath.Join(d.path, "MARKERS.type")
		told, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if string(told) != typeText {
			name := temporary(file)
			if err = os.WriteFile(name, []byte(typeText), 0o644); err == nil {
				err = os.Rename(name, file)
			}
		} else {
			err = nil
		}
		if err == nil {
			err = grow(filepath.Join(d.path, "MARKERS"+strconv.Itoa(d.next%threads)), more)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		d.next++
		after, err := d.names()
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(file); err == nil && len(after) >= len(known) {
			return created, nil
		}
	}
	return nil, errors.New("another program removes it all the time")
}

func (d *directory) flush() {
	for {
		time.Sleep(5 * time.Millisecond)
		d.writing.Lock()
		d.lock.Lock()
		batch := d.waiting
		d.waiting = nil
		if batch == nil {
			d.busy = false
			d.lock.Unlock()
			d.writing.Unlock()
			return
		}
		d.lock.Unlock()
		created, err := d.write(batch)
		d.writing.Unlock()
		for i, one := range batch {
			one.reply <- answer{err == nil && created[i], err}
		}
	}
}

func (d *directory) create(name string) (bool, error) {
	one := create{name, make(chan answer, 1)}
	d.lock.Lock()
	d.waiting = append(d.waiting, one)
	if !d.busy {
		d.busy = true
		go d.flush()
	}
	d.lock.Unlock()
	said := <-one.reply
	return said.created, said.err
}

func (d *directory) remove() (bool, error) {
	d.writing.Lock()
	defer d.writing.Unlock()
	there, err := os.ReadDir(d.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	sort.SliceStable(there, func(i, j int) bool { return there[i].Name() != "MARKERS.type" && there[j].Name() == "MARKERS.type" })
	for _, one := range there {
		if err := os.Remove(filepath.Join(d.path, one.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, err
		}
	}
	if err := os.Remove(d.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	return true, nil
}

func directoryOf(text string) (string, bool) {
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == '/' })
	for _, part := range parts {
		if part == "." || part == ".." {
			return "", false
		}
	}
	n := len(parts)
	return "/" + strings.Join(parts, "/"), utf8.ValidString(text) && strings.HasPrefix(text, "/") && n > 3 && parts[n-2] == ".temp" && parts[n-3] == ".hoodie"
}

func good(name string) bool {
	for _, part := range strings.Split(name, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return utf8.ValidString(name) && len(name) <= 4096 && strings.IndexFunc(name, func(r rune) bool { return r < 32 || r >= 127 && r < 160 }) < 0
}

func reply(w http.ResponseWriter, r *http.Request, status int, value any) {
	body, _ := json.Marshal(value)
	w.Header().Set("Content-Type", "application/json")
	if len(body) > 500 && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(status)
		zipped := gzip.NewWriter(w)
		zipped.Write(body)
		zipped.Close()
		return
	}
	w.WriteHeader(status)
	w.Write(body)
}

func handle(w http.ResponseWriter, r *http.Request) {
	asked, err := url.ParseQuery(r.URL.RawQuery)
	path, fine := directoryOf(asked.Get("markerdirpath"))
	if err != nil || !fine {
		reply(w, r, 400, "no marker directory")
		return
	}
	d, route := at(path), strings.TrimPrefix(r.URL.Path, "/v1/hoodie/marker")
	var value any
	switch r.Method + route {
	case "POST/create":
		if name := asked.Get("markername"); good(name) {
			value, err = d.create(name)
		} else {
			reply(w, r, 400, "no marker name")
			return
		}
	case "POST/dir/delete":
		value, err = d.remove()
	case "GET/all", "GET/create-and-merge", "GET/append", "GET/dir/exists":
		var known map[string]bool
		known, err = d.names()
		listed := []string{}
		for name := range known {
			if route == "/all" || strings.HasSuffix(name, ".marker.APPEND") == (route == "/append") {
				listed = append(listed, name)
			}
		}
		value = listed
		if route == "/dir/exists" {
			value = len(known) > 0
		}
	default:
		reply(w, r, 404, "no such thing")
		return
	}
	if err != nil {
		reply(w, r, 500, err.Error())
		return
	}
	reply(w, r, 200, value)
}

func main() {
	threads, _ = strconv.Atoi(os.Args[3])
	for {
		var err error
		os.MkdirAll(os.Args[2]+"/.locks", 0o755)
		if alone, err = os.OpenFile(os.Args[2]+"/.locks/alone", os.O_RDWR|os.O_CREATE, 0o644); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if syscall.Flock(int(alone.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		fmt.Fprintln(os.Stderr, "another server has this storage")
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, http.ListenAndServe("127.0.0.1:"+os.Args[1], http.HandlerFunc(handle)))
	os.Exit(1)
}
