// A timeline server: marker names in one MARKERS0 file per marker directory, replaced by rename. It survives losses of
// power.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"
)

const typeName, typeText = "MARKERS.type", "TIMELINE_SERVER_BASED"

var defect int

type answer struct {
	isNew bool
	err   error
}
type request struct {
	name string
	done chan answer
}

// dirState groups the creates of one marker directory into batches.
type dirState struct {
	path    string
	mu      sync.Mutex // pending, running
	pending []request
	running bool
	waiting map[string]bool
	synced  string     // identity of the MARKERS0 that is known to be durable; under io
	io      sync.Mutex // one change of the directory at a time in this process; flock between processes
}

type server struct {
	base string
	mu   sync.Mutex
	dirs map[string]*dirState
}

func (s *server) dir(path string) *dirState {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.dirs[path]
	if d == nil {
		d = &dirState{path: path, waiting: map[string]bool{}}
		s.dirs[path] = d
	}
	return d
}

// locked runs f alone, among all servers of this storage.
func (s *server) locked(d *dirState, f func() error) error {
	d.io.Lock()
	defer d.io.Unlock()
	locks := filepath.Join(s.base, ".locks")
	if err := os.MkdirAll(locks, 0o755); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(d.path))
	file, err := os.OpenFile(filepath.Join(locks, hex.EncodeToString(sum[:16])), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		return err
	}
	return f()
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func identity(dir string) (string, error) {
	st, err := os.Stat(filepath.Join(dir, "MARKERS0"))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "none", nil
		}
		return "", err
	}
	return fmt.Sprint(st.Sys().(*syscall.Stat_t).Ino, st.ModTime().UnixNano(), st.Size()), nil
}

// settle makes durable what another life left, before anything is answered about it. Under the lock.
func (s *server) settle(d *dirState) error {
	id, err := identity(d.path)
	if err != nil || id == d.synced || defect == 1 {
		return err
	}
	for _, n := range []string{typeName, "MARKERS0"} {
		if err := syncDir(filepath.Join(d.path, n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for p := d.path; strings.HasPrefix(p, s.base); p = filepath.Dir(p) {
		if err := syncDir(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	d.synced = id
	return nil
}

// makeDirs is MkdirAll that syncs the parent of what it made.
func makeDirs(path string) error {
	parent := filepath.Dir(path)
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return nil
	}
	if err := makeDirs(parent); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

func replace(dir, name string, data []byte) error {
	tmp := filepath.Join(dir, "."+name+".tmp")
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(tmp)
		return err
	}
	if err = os.Rename(tmp, filepath.Join(dir, name)); err != nil {
		os.Remove(tmp)
		return err
	}
	return syncDir(dir)
}

// read gives the stored names in order; no directory, no names.
func read(dir string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(dir, "MARKERS0"))
	if errors.Is(err, fs.ErrNotExist) {
		return []string{}, nil
	}
	if err != nil && defect == 2 {
		return []string{}, nil
	}
	if err != nil {
		return nil, err
	}
	names := []string{}
	for {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			return names, nil
		}
		names = append(names, string(data[:i]))
		data = data[i+1:]
	}
}

func (s *server) create(d *dirState, name string) (bool, error) {
	r := request{name, make(chan answer, 1)}
	d.mu.Lock()
	if d.waiting[name] && defect == 3 {
		d.mu.Unlock()
		return false, nil
	}
	d.waiting[name] = true
	d.pending = append(d.pending, r)
	if !d.running {
		d.running = true
		go s.work(d)
	}
	d.mu.Unlock()
	a := <-r.done
	return a.isNew, a.err
}

func (s *server) work(d *dirState) {
	for {
		d.mu.Lock()
		batch := d.pending
		d.pending = nil
		if len(batch) == 0 {
			d.running = false
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
		answers := make([]answer, len(batch))
		err := s.locked(d, func() error {
			if err := s.settle(d); err != nil {
				return err
			}
			before := d.synced
			d.synced = ""
			if err := flush(d.path, batch, answers); err != nil {
				return err
			}
			d.synced = before
			id, err := identity(d.path)
			if err == nil {
				d.synced = id
			}
			return nil
		})
		d.mu.Lock()
		for _, r := range batch {
			delete(d.waiting, r.name)
		}
		d.mu.Unlock()
		for i, r := range batch {
			if err != nil {
				answers[i] = answer{err: err}
			}
			r.done <- answers[i]
		}
	}
}

func flush(dir string, batch []request, answers []answer) error {
	names, err := read(dir)
	if err != nil {
		return err
	}
	have := make(map[string]bool, len(names))
	for _, n := range names {
		have[n] = true
	}
	changed := false
	for i, r := range batch {
		if !have[r.name] {
			have[r.name] = true
			names = append(names, r.name)
			answers[i].isNew = true
			changed = true
		}
	}
	if !changed {
		return nil
	}
	if err := makeDirs(dir); err != nil {
		return err
	}
	if b, err := os.ReadFile(filepath.Join(dir, typeName)); err != nil || string(b) != typeText {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := replace(dir, typeName, []byte(typeText)); err != nil {
			return err
		}
	}
	if err := replace(dir, "MARKERS0", []byte(strings.Join(names, "\n")+"\n")); err != nil {
		return err
	}
	// another program may have removed the directory meanwhile
	if _, err := os.Stat(filepath.Join(dir, typeName)); errors.Is(err, fs.ErrNotExist) {
		return replace(dir, typeName, []byte(typeText))
	}
	return nil
}

func (s *server) remove(d *dirState) (was bool, err error) {
	err = s.locked(d, func() error {
		d.synced = ""
		entries, err := os.ReadDir(d.path)
		if errors.Is(err, fs.ErrNotExist) {
			err := syncDir(filepath.Dir(d.path))
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		if err != nil {
			return err
		}
		was = true
		for _, e := range entries {
			if e.Name() == typeName {
				continue
			}
			if err := os.Remove(filepath.Join(d.path, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) && defect != 4 {
				return err
			}
		}
		if err := os.Remove(filepath.Join(d.path, typeName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.Remove(d.path); err != nil && !errors.Is(err, fs.ErrNotExist) && defect != 4 {
			return err
		}
		return syncDir(filepath.Dir(d.path))
	})
	return
}

// ---- requests

type refusal string

func (r refusal) Error() string { return string(r) }

func (s *server) markerDir(q url.Values) (string, error) {
	v := q["markerdirpath"]
	if len(v) != 1 || v[0] == "" {
		return "", refusal("markerdirpath has to be given once")
	}
	p := strings.TrimPrefix(v[0], "file:")
	if !strings.HasPrefix(p, "/") || !utf8.ValidString(p) || strings.ContainsRune(p, 0) {
		return "", refusal("markerdirpath has to be an absolute path")
	}
	segments := strings.Split(p, "/")
	for _, seg := range segments {
		if seg == "." || seg == ".." {
			return "", refusal("markerdirpath has '.' or '..' segments")
		}
	}
	p = filepath.Clean(p)
	if !strings.HasPrefix(p, s.base+"/") {
		return "", refusal("markerdirpath is outside of the served storage")
	}
	temp := filepath.Dir(p)
	if filepath.Base(temp) != ".temp" || filepath.Base(filepath.Dir(temp)) != ".hoodie" {
		return "", refusal("markerdirpath is not <table>/.hoodie/.temp/<instant>")
	}
	return p, nil
}

func markerName(q url.Values) (string, error) {
	v := q["markername"]
	if len(v) != 1 || v[0] == "" {
		return "", refusal("markername has to be given once")
	}
	n := v[0]
	if !utf8.ValidString(n) {
		return "", refusal("markername is not UTF-8")
	}
	for _, r := range n {
		if r < 0x20 || r == 0x7f || r == 0x85 {
			return "", refusal("markername has control characters")
		}
	}
	for _, seg := range strings.Split(n, "/") {
		if seg == "" || seg == "." || seg == ".." {
			return "", refusal("markername has empty, '.' or '..' segments")
		}
	}
	if !strings.HasSuffix(n, ".marker.CREATE") && !strings.HasSuffix(n, ".marker.MERGE") && !strings.HasSuffix(n, ".marker.APPEND") {
		return "", refusal("markername does not end in .marker.<CREATE, MERGE, APPEND>")
	}
	return n, nil
}

func reply(w http.ResponseWriter, status int, v any) {
	body, _ := json.Marshal(v)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}

func (s *server) handle(method string, f func(path string, q url.Values) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method {
			w.Header().Set("Allow", method)
			reply(w, 405, "use "+method)
			return
		}
		q, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			reply(w, 400, err.Error())
			return
		}
		path, err := s.markerDir(q)
		var v any
		if err == nil {
			v, err = f(path, q)
		}
		var ref refusal
		switch {
		case errors.As(err, &ref):
			reply(w, 400, string(ref))
		case err != nil:
			log.Printf("%s %s: %v", r.Method, r.URL, err)
			reply(w, 500, err.Error())
		default:
			reply(w, 200, v)
		}
	}
}

func (s *server) list(keep func(string) bool) func(string, url.Values) (any, error) {
	return func(path string, _ url.Values) (any, error) {
		var names []string
		d := s.dir(path)
		err := s.locked(d, func() error {
			if err := s.settle(d); err != nil {
				return err
			}
			var err error
			names, err = read(path)
			return err
		})
		if err != nil {
			return nil, err
		}
		kept := []string{}
		for _, n := range names {
			if keep(n) {
				kept = append(kept, n)
			}
		}
		return kept, nil
	}
}

func main() {
	port := flag.Int("port", 8080, "")
	base := flag.String("storage", "", "")
	flag.Int("threads", 1, "ignored: each directory has one file")
	flag.IntVar(&defect, "defect", 0, "README.md has them; 0 for none")
	flag.Parse()
	s := &server{base: filepath.Clean(*base), dirs: map[string]*dirState{}}
	const p = "/v1/hoodie/marker"
	mux := http.NewServeMux()
	isAppend := func(n string) bool { return strings.HasSuffix(n, "APPEND") }
	mux.HandleFunc(p+"/create", s.handle("POST", func(path string, q url.Values) (any, error) {
		name, err := markerName(q)
		if err != nil {
			return nil, err
		}
		return s.create(s.dir(path), name)
	}))
	mux.HandleFunc(p+"/all", s.handle("GET", s.list(func(string) bool { return true })))
	mux.HandleFunc(p+"/append", s.handle("GET", s.list(isAppend)))
	mux.HandleFunc(p+"/create-and-merge", s.handle("GET", s.list(func(n string) bool { return !isAppend(n) })))
	mux.HandleFunc(p+"/dir/exists", s.handle("GET", func(path string, _ url.Values) (any, error) {
		entries, err := os.ReadDir(path)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return len(entries) > 0, err
	}))
	mux.HandleFunc(p+"/dir/delete", s.handle("POST", func(path string, _ url.Values) (any, error) {
		return s.remove(s.dir(path))
	}))
	h := &http.Server{Addr: fmt.Sprintf("127.0.0.1:%d", *port), Handler: mux,
		ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 75 * time.Second}
	log.Fatal(h.ListenAndServe())
}
