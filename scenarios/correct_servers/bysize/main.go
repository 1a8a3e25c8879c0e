// Hudi's files, but batches by size: one goroutine a directory takes up to eight creates, or what came in 25 ms, writes
// them into the next MARKERS<n> by rename under a lock of the host, and answers. It reads all files before each batch.
//
//	bysize -port N -dir ROOT -threads N
package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	base     = "/v1/hoodie/marker"
	full     = 8
	wait     = 25 * time.Millisecond
	typeFile = "MARKERS.type"
	typeText = "TIMELINE_SERVER_BASED"
	length   = 4096
)

var (
	marker    = regexp.MustCompile(`[^/]\.marker\.(CREATE|MERGE|APPEND)$`)
	directory = regexp.MustCompile(`^(/[^/]+)+/\.hoodie/\.temp/[^/]+$`)
	batchFile = regexp.MustCompile(`^MARKERS(\d+)$`)
	root      = flag.String("dir", "", "")
	threads   = flag.Int("threads", 20, "")
)

type refused struct{ error }

type answer struct {
	value bool
	err   error
}

// asked is a create, or a deletion when the name is empty.
type asked struct {
	name string
	back chan answer
}

type owner struct {
	dir   string
	inbox chan asked
	next  int
}

func plain(path string) bool {
	for _, part := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if part == "" || part == "." || part == ".." || len(part) > 255 {
			return false
		}
	}
	odd := func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }
	return len(path) <= length && utf8.ValidString(path) && strings.IndexFunc(path, odd) < 0
}

// read returns the content of each batch file; one that is gone was deleted meanwhile.
func read(dir string) (map[string]string, error) {
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return files, nil
	}
	for _, entry := range entries {
		if !batchFile.MatchString(entry.Name()) {
			continue
		}
		data, failed := os.ReadFile(filepath.Join(dir, entry.Name()))
		if failed == nil {
			files[entry.Name()] = string(data)
		} else if !errors.Is(failed, fs.ErrNotExist) {
			err = failed
		}
	}
	return files, err
}

func names(dir string) ([]string, error) {
	files, err := read(dir)
	found := []string{}
	seen := map[string]bool{}
	for _, data := range files {
		for _, name := range strings.Split(data, "\n") {
			if name != "" && !seen[name] {
				seen[name] = true
				found = append(found, name)
			}
		}
	}
	return found, err
}

func replace(path, text string) error {
	beside := fmt.Sprintf("%s/.%s.%d.tmp", filepath.Dir(path), filepath.Base(path), os.Getpid())
	err := os.WriteFile(beside, []byte(text), 0o644)
	if err == nil {
		err = os.Rename(beside, path)
	}
	if err != nil {
		os.Remove(beside)
	}
	return err
}

// locked runs what must not meet another server of this host; the lock dies with the process.
func locked(dir string, do func() error) error {
	locks := filepath.Join(*root, ".locks")
	if err := os.MkdirAll(locks, 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(fmt.Sprintf("%s/%x", locks, sha256.Sum256([]byte(dir))), os.O_CREATE|os.O_RDWR, 0o644)
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
	return do()
}

func (o *owner) store(batch []asked) {
	made := make([]bool, len(batch))
	err := locked(o.dir, func() error {
		files, err := read(o.dir)
		if err != nil {
			return err
		}
		known := map[string]bool{}
		for _, data := range files {
			for _, name := range strings.Split(data, "\n") {
				known[name] = true
			}
		}
		file := fmt.Sprintf("MARKERS%d", o.next%*threads)
		text := files[file]
		for at, one := range batch {
			if !known[one.name] {
				known[one.name], made[at] = true, true
				text += one.name + "\n"
			}
		}
		if text == files[file] {
			return nil
		}
		if err = os.MkdirAll(o.dir, 0o755); err != nil {
			return err
		}
		path := filepath.Join(o.dir, typeFile)
		if said, _ := os.ReadFile(path); string(said) != typeText {
			if err = replace(path, typeText); err != nil {
				return err
			}
		}
		o.next++
		return replace(filepath.Join(o.dir, file), text)
	})
	for at, one := range batch {
		one.back <- answer{made[at], err}
	}
}

func (o *owner) remove() (bool, error) {
	there := false
	err := locked(o.dir, func() error {
		_, err := os.Stat(o.dir)
		there = err == nil
		return os.RemoveAll(o.dir)
	})
	return there, err
}

func (o *owner) work() {
	for first := range o.inbox {
		batch := []asked{}
		late := time.After(wait)
		one, more := first, true
		for more && one.name != "" {
			batch = append(batch, one)
			one, more = asked{}, false
			if len(batch) < full {
				select {
				case one, more = <-o.inbox:
				case <-late:
				}
			}
		}
		o.store(batch)
		if more { // The batch ended because a deletion came.
			value, err := o.remove()
			one.back <- answer{value, err}
		}
	}
}

var (
	owners = map[string]*owner{}
	guard  sync.Mutex
)

func ask(dir, name string) (bool, error) {
	guard.Lock()
	o := owners[dir]
	if o == nil {
		o = &owner{dir: dir, inbox: make(chan asked, 1024)}
		owners[dir] = o
		go o.work()
	}
	guard.Unlock()
	back := make(chan answer, 1)
	o.inbox <- asked{name, back}
	said := <-back
	return said.value, said.err
}

func handle(r *http.Request) (any, error) {
	query := r.URL.Query()
	dir, name := query.Get("markerdirpath"), query.Get("markername")
	if !directory.MatchString(dir) || !plain(dir) || !strings.HasPrefix(dir, *root+"/") || strings.Count(dir, "/.hoodie/") != 1 {
		return nil, refused{fmt.Errorf("%q is no marker directory below %s", dir, *root)}
	}
	switch r.Method + " " + strings.TrimPrefix(r.URL.Path, base) {
	case "POST /create":
		if !plain(name) || strings.HasPrefix(name, "/") || strings.HasPrefix(name, ".hoodie/") || !marker.MatchString(name) {
			return nil, refused{fmt.Errorf("%q is no marker name", name)}
		}
		return ask(dir, name)
	case "POST /dir/delete":
		return ask(dir, "")
	case "GET /dir/exists":
		found, err := names(dir)
		return len(found) > 0, err
	case "GET /all":
		return names(dir)
	case "GET /create-and-merge", "GET /append":
		found, err := names(dir)
		kept := []string{}
		for _, name := range found {
			if strings.HasSuffix(name, ".APPEND") == strings.HasSuffix(r.URL.Path, "/append") {
				kept = append(kept, name)
			}
		}
		return kept, err
	}
	return nil, refused{fmt.Errorf("there is no %s %s", r.Method, r.URL.Path)}
}

func main() {
	port := flag.Int("port", 0, "")
	flag.Parse()
	serve := func(w http.ResponseWriter, r *http.Request) {
		value, err := handle(r)
		status := http.StatusOK
		if err != nil {
			value, status = err.Error(), http.StatusInternalServerError
			if errors.As(err, &refused{}) {
				status = http.StatusBadRequest
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(value)
	}
	fmt.Fprintln(os.Stderr, http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *port), http.HandlerFunc(serve)))
	os.Exit(1)
}
