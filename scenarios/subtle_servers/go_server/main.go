// A timeline server in Go, correct with -defect 0 and wrong in one place with -defect 11 to 20 (../README.md).
//
// Creates are answered after their batch was written, synced and renamed. Standard library only.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	prefix       = "/v1/hoodie/marker/"
	longestName  = 16384
	longestPath  = 3500
	longestPart  = 200
	answerWithin = 60 * time.Second
)

// refused is the error of a request that is malformed or asks for what is not allowed.
type refused string

func (r refused) Error() string { return string(r) }

// errLate is the error of a create whose batch takes too long.
var errLate = errors.New("the batch is not written yet")

// settings are what the command line says.
type settings struct {
	root     string
	threads  int
	interval time.Duration
	defect   int
}

// markerServer serves the marker directories below one root.
type markerServer struct {
	settings    settings
	lock        sync.Mutex
	directories map[string]*markerDirectory
	running     map[string]*create
}

func main() {
	port := flag.Int("port", 0, "port on 127.0.0.1")
	root := flag.String("dir", "", "directory below which tables lie")
	threads := flag.Int("batch-threads", 20, "marker files of a directory")
	interval := flag.Int("interval-ms", 50, "time between two batches")
	defect := flag.Int("defect", 0, "what is wrong; 0: nothing")
	flag.Parse()
	signal.Ignore(syscall.SIGXFSZ) // A limit on file sizes is an error of the write, like a full disk.
	absolute, err := filepath.Abs(*root)
	if err != nil || *root == "" || *threads < 1 {
		fmt.Fprintln(os.Stderr, "wrong -dir or -batch-threads")
		os.Exit(2)
	}
	server := &markerServer{
		settings:    settings{absolute, *threads, time.Duration(*interval) * time.Millisecond, *defect},
		directories: map[string]*markerDirectory{},
		running:     map[string]*create{},
	}
	err = http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *port), server)
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// ServeHTTP answers one request.
func (s *markerServer) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	route, found := strings.CutPrefix(request.URL.Path, prefix)
	methods := map[string]string{
		"create": "POST", "dir/delete": "POST",
		"all": "GET", "create-and-merge": "GET", "append": "GET", "dir/exists": "GET",
	}
	if !found || methods[route] != request.Method {
		reply(writer, http.StatusNotFound, "no such call: "+request.Method+" "+request.URL.Path)
		return
	}
	value, err := s.call(request.Context(), route, request.URL.RawQuery)
	var refusal refused
	switch {
	case errors.As(err, &refusal):
		reply(writer, http.StatusBadRequest, refusal.Error())
	case errors.Is(err, errLate):
		reply(writer, http.StatusServiceUnavailable, err.Error())
	case err != nil:
		reply(writer, http.StatusInternalServerError, "storage failed: "+err.Error())
	default:
		reply(writer, http.StatusOK, value)
	}
}

func reply(writer http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`"the answer cannot be encoded"`)
	}
	writer.Header().Set("Content-Type", "application/json")
	writer.WriteHeader(status)
	_, _ = writer.Write(body) // A client that has hung up misses its answer.
}

func (s *markerServer) call(ctx context.Context, route string, query string) (any, error) {
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return nil, refused("the query is not percent-encoded")
	}
	for _, values := range parameters {
		if len(values) > 1 {
			return nil, refused("a parameter is given twice")
		}
	}
	path, err := checkedDirectory(parameters.Get("markerdirpath"), s.settings.root)
	if err != nil {
		return nil, err
	}
	directory := s.directory(path)
	switch route {
	case "create":
		name := parameters.Get("markername")
		if err := checkName(name); err != nil {
			return nil, err
		}
		return s.create(ctx, directory, name)
	case "dir/delete":
		return directory.remove()
	case "dir/exists":
		return directory.exists()
	}
	return directory.list(route)
}

// directory returns the state of a marker directory.
func (s *markerServer) directory(path string) *markerDirectory {
	s.lock.Lock()
	defer s.lock.Unlock()
	found, there := s.directories[path]
	if !there {
		found = &markerDirectory{path: path, settings: s.settings}
		s.directories[path] = found
	}
	return found
}

// create waits until a batch has decided. Requests for a name that is being created wait for that create.
func (s *markerServer) create(ctx context.Context, directory *markerDirectory, name string) (bool, error) {
	key := directory.path + "/" + name
	if s.settings.defect == 14 {
		key = filepath.Base(directory.path) + "/" + name
	}
	s.lock.Lock()
	other, joined := s.running[key]
	if !joined {
		other = &create{name: name, ctx: ctx, done: make(chan struct{})}
		other.forget = func() {
			s.lock.Lock()
			defer s.lock.Unlock()
			delete(s.running, key)
		}
		s.running[key] = other
	}
	s.lock.Unlock()
	if !joined {
		directory.submit(other)
	}
	select {
	case <-other.done:
		return other.created && !joined, other.err
	case <-time.After(answerWithin):
		return false, errLate
	}
}

// checkText refuses what cannot be part of a line of a file.
func checkText(what string, text string) error {
	if !utf8.ValidString(text) {
		return refused(what + " is not UTF-8")
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return refused(what + " holds a control character")
	}
	return nil
}

// checkName accepts paths below the table.
func checkName(name string) error {
	if name == "" {
		return refused("markername is empty")
	}
	if err := checkText("markername", name); err != nil {
		return err
	}
	if len(name) > longestName {
		return refused("markername is too long")
	}
	for _, part := range strings.Split(name, "/") {
		if part == ".." || name[0] == '/' {
			return refused("markername leaves its table")
		}
	}
	return nil
}

// checkedDirectory returns the one spelling of a marker directory below the root.
func checkedDirectory(text string, root string) (string, error) {
	if err := checkText("markerdirpath", text); err != nil {
		return "", err
	}
	text = strings.TrimPrefix(text, "file:")
	if !strings.HasPrefix(text, "/") || len(text) > longestPath {
		return "", refused("markerdirpath is not an absolute path, or is too long")
	}
	parts := strings.FieldsFunc(text, func(character rune) bool { return character == '/' })
	for _, part := range parts {
		if part == "." || part == ".." || len(part) > longestPart {
			return "", refused("markerdirpath has a part that is . or .. or too long")
		}
	}
	path, last := "/"+strings.Join(parts, "/"), len(parts)-1
	below := strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
	rest := len(parts) - len(strings.FieldsFunc(root, func(character rune) bool { return character == '/' }))
	if !below || rest < 3 || parts[last-1] != ".temp" || parts[last-2] != ".hoodie" {
		return "", refused("markerdirpath is no TABLE/.hoodie/.temp/INSTANT below the served directory")
	}
	return path, nil
}
