// A timeline server of the standard library alone, correct with --defect 0; README.md says what the others are.
//
//	go build -o server server.go && ./server --port 8080 --storage /data/lake --threads 20 --defect 0
package main

import (
	"crypto/sha1"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"
)

const typeText = "TIMELINE_SERVER_BASED"

var (
	markerFile    = regexp.MustCompile(`^MARKERS(0|[1-9][0-9]*)$`)
	markerFolder  = regexp.MustCompile(`^(/[^/]+)+/\.hoodie/\.temp/[^/]+$`)
	control       = regexp.MustCompile(`[\x00-\x1f\x7f\x{85}]`)
	slashes       = regexp.MustCompile(`/+`)
	root          = flag.String("storage", "", "")
	threads       = flag.Int("threads", 20, "")
	defect        = flag.Int("defect", 0, "")
	port          = flag.Int("port", 0, "")
	directories   = map[string]*directory{}
	directoryLock sync.Mutex
)

// asked is a create that waits for its batch.
type asked struct {
	name string
	new  bool
	err  error
	done bool
}

// directory is what the server knows of a marker directory: who waits and who writes.
type directory struct {
	path     string
	guard    sync.Mutex
	waiting  []*asked
	flushing sync.Mutex
	batches  int
}

func find(path string) *directory {
	directoryLock.Lock()
	defer directoryLock.Unlock()
	if directories[path] == nil {
		directories[path] = &directory{path: path}
	}
	return directories[path]
}

// create stores a marker, together with all that wait, and says whether it is new.
func (d *directory) create(name string) (bool, error) {
	mine := &asked{name: name}
	d.guard.Lock()
	d.waiting = append(d.waiting, mine)
	d.guard.Unlock()
	d.flushing.Lock()
	defer d.flushing.Unlock()
	if !mine.done {
		d.guard.Lock()
		batch := d.waiting
		d.waiting = nil
		d.guard.Unlock()
		d.settle(batch)
	}
	return mine.new, mine.err
}

func (d *directory) settle(batch []*asked) {
	fresh := map[string]bool{}
	err := d.alone(func() error { return d.flush(batch, fresh) })
	for _, one := range batch {
		one.done, one.err = true, err
		one.new = fresh[one.name]
		delete(fresh, one.name)
	}
}

// flush writes the names that are not stored to the next file, and notes them in fresh.
func (d *directory) flush(batch []*asked, fresh map[string]bool) error {
	files, err := read(d.path)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, names := range files {
		for _, name := range names {
			known[name] = true
		}
	}
	index := d.batches % *threads
	names := files[index]
	for _, one := range batch {
		if !known[one.name] {
			known[one.name], fresh[one.name] = true, true
			names = append(names, one.name)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	d.batches++
	if err := os.MkdirAll(d.path, 0o755); err != nil {
		return err
	}
	if _, err := os.Stat(d.path + "/MARKERS.type"); err != nil {
		if err := replace(d.path, "MARKERS.type", typeText); err != nil {
			return err
		}
	}
	return replace(d.path, "MARKERS"+strconv.Itoa(index), strings.Join(names, "\n")+"\n")
}

// replace puts a file in the place of another by a rename.
func replace(folder, name, text string) error {
	temporary := folder + "/." + name + ".tmp"
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if *defect == 2 {
		flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	}
	file, err := os.OpenFile(temporary, flags, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if *defect == 3 {
		err = nil
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		if *defect == 7 {
			log.Fatal(err)
		}
		os.Remove(temporary)
		return err
	}
	return os.Rename(temporary, folder+"/"+name)
}

// read has the names of each MARKERS<n> of a directory.
func read(folder string) (map[int][]string, error) {
	files := map[int][]string{}
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return files, nil
	}
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		match := markerFile.FindStringSubmatch(entry.Name())
		if match == nil || entry.IsDir() {
			continue
		}
		data, err := content(folder + "/" + entry.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		lines := strings.Split(data, "\n")
		index, _ := strconv.Atoi(match[1])
		files[index] = lines[:len(lines)-1]
	}
	return files, nil
}

func content(path string) (string, error) {
	if *defect != 4 {
		data, err := os.ReadFile(path)
		return string(data), err
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	page := make([]byte, 4096)
	size, err := file.Read(page)
	if size == 0 {
		return "", err
	}
	return string(page[:size]), nil
}

func list(folder string) ([]string, error) {
	files, err := read(folder)
	seen := map[string]bool{}
	all := []string{}
	for _, names := range files {
		for _, name := range names {
			if !seen[name] {
				seen[name] = true
				all = append(all, name)
			}
		}
	}
	sort.Strings(all)
	return all, err
}

// remove deletes the directory, the marker files first, and says whether it had names.
func (d *directory) remove() (there bool, err error) {
	act := func() error {
		files, err := read(d.path)
		if err != nil {
			return err
		}
		for index := range files {
			there = true
			if err := os.Remove(d.path + "/MARKERS" + strconv.Itoa(index)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return os.RemoveAll(d.path)
	}
	if *defect == 1 {
		err = act()
		return there, err
	}
	d.flushing.Lock()
	defer d.flushing.Unlock()
	err = d.alone(act)
	return there, err
}

// alone acts while no other server changes the directory.
func (d *directory) alone(act func() error) error {
	locks := *root + "/.locks"
	name := locks + "/" + fmt.Sprintf("%x", sha1.Sum([]byte(d.path)))
	if *defect == 8 {
		locks, name = d.path, d.path+"/.lock"
	}
	if err := os.MkdirAll(locks, 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if err == nil {
			return act()
		}
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// checked gives the directory and the name of a request, or says what is wrong with them.
func checked(values url.Values, create bool) (string, string, error) {
	folder, name := values.Get("markerdirpath"), values.Get("markername")
	if !utf8.ValidString(folder) || !utf8.ValidString(name) {
		return "", "", errors.New("the query is no UTF-8")
	}
	folder = strings.TrimRight(slashes.ReplaceAllString(folder, "/"), "/")
	if *defect == 6 {
		folder = path.Clean(folder)
	}
	if !markerFolder.MatchString(folder) || !strings.HasPrefix(folder, *root+"/") || climbs(folder) || control.MatchString(folder) {
		return "", "", fmt.Errorf("no marker directory: %q", folder)
	}
	if create && (name == "" || control.MatchString(name) || strings.HasPrefix(name, "/") || climbs(name)) {
		return "", "", fmt.Errorf("no marker name: %q", name)
	}
	if *defect == 5 {
		name = path.Clean(name)
	}
	return folder, name, nil
}

func climbs(path string) bool {
	for _, segment := range strings.Split(path, "/") {
		if segment == ".." {
			return true
		}
	}
	return false
}

func answer(route, folder, name string) (any, error) {
	switch route {
	case "/create":
		return find(folder).create(name)
	case "/dir/delete":
		return find(folder).remove()
	}
	names, err := list(folder)
	if route == "/dir/exists" {
		return len(names) > 0, err
	}
	some := []string{}
	for _, name := range names {
		if route == "/all" || strings.HasSuffix(name, "APPEND") == (route == "/append") {
			some = append(some, name)
		}
	}
	return some, err
}

func handle(writer http.ResponseWriter, request *http.Request) {
	status, route := 200, strings.TrimPrefix(request.URL.Path, "/v1/hoodie/marker")
	var value any
	values, err := url.ParseQuery(request.URL.RawQuery)
	var folder, name string
	if err == nil {
		folder, name, err = checked(values, route == "/create")
	}
	if err != nil {
		status, value = 400, err.Error()
	} else if value, err = answer(route, folder, name); err != nil {
		status, value = 500, err.Error()
	}
	body, _ := json.Marshal(value)
	writer.Header().Set("Content-Type", "application/json")
	writer.Header().Set("Content-Length", strconv.Itoa(len(body)))
	writer.WriteHeader(status)
	writer.Write(body)
}

func main() {
	flag.Parse()
	signal.Ignore(syscall.SIGXFSZ)
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *port), http.HandlerFunc(handle)))
}
