// A timeline server of one of two designs, correct, or with one defect (-defect, ../README.md). This file speaks HTTP.
//
//	appending.go             appends to marker files and owns the directories that it was asked about
//	replacing.go, files.go   replaces marker files whole, under a lock of the directory that other servers take too
//
//	server -port {port} -dir {storage} -threads {threads} -interval-ms {interval_ms} [-design replacing] [-defect NAME]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"
)

const prefix = "/v1/hoodie/marker"

// defects by the design that has them.
var defects = map[string][]string{
	"appending": {
		"second-write-unchecked", "cut-line-is-a-name", "remembered-before-write", "cut-line-continued",
		"deletion-error-logged", "unreadable-file-skipped",
	},
	"replacing": {
		"long-lines-split", "large-batch-early", "parts-by-hash", "joined-across-tables", "hung-up-drops-batch",
		"listing-by-count", "retry-under-shared-lock", "deletion-by-prefix", "index-beyond-threads",
		"temporary-exclusive", "short-file-renamed", "one-page-read", "name-cleaned", "directory-cleaned",
		"ends-on-write-error", "lock-of-deleted", "unsynced-adopted", "unreadable-is-absent",
	},
}

var (
	design   = flag.String("design", "appending", "appending or replacing")
	defect   = flag.String("defect", "", "of the design; none: correct")
	port     = flag.Int("port", 0, "where to listen on 127.0.0.1")
	base     = flag.String("dir", "", "what all marker directories lie below")
	threads  = flag.Int("threads", 20, "how many marker files a directory has at most")
	interval = flag.Int("interval-ms", 50, "time between two batches of the design that replaces")
)

// store is one marker directory. Its methods are called by many requests at the same time.
type store interface {
	create(ctx context.Context, name string) (bool, error)
	list(route string) (any, error)
	exists() (bool, error)
	remove() (bool, error)
}

// refused is the error of a request that changes nothing.
type refused string

func (r refused) Error() string { return string(r) }

var (
	directoriesLock sync.Mutex
	directories     = map[string]store{}
)

func main() {
	flag.Parse()
	own, known := defects[*design]
	if !known || (*defect != "" && !slices.Contains(own, *defect)) || *port == 0 || *base == "" {
		flag.Usage()
		os.Exit(2)
	}
	absolute, err := filepath.Abs(*base)
	if err == nil {
		*base = absolute
		err = os.MkdirAll(filepath.Join(*base, ".locks"), 0o755)
	}
	if err != nil {
		log.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ) // A limit on file sizes is an error of the write, like a full disk.
	server := &http.Server{
		Addr:              fmt.Sprintf("127.0.0.1:%d", *port),
		Handler:           http.HandlerFunc(serve),
		ReadHeaderTimeout: 30 * time.Second,
		IdleTimeout:       75 * time.Second,
	}
	log.Fatal(server.ListenAndServe())
}

// serve answers one request.
func serve(w http.ResponseWriter, r *http.Request) {
	status := http.StatusOK
	answer, err := answerTo(r)
	var no refused
	switch {
	case errors.As(err, &no):
		status, answer = http.StatusBadRequest, err.Error()
	case errors.Is(err, errOwnedElsewhere), errors.Is(err, errLate):
		status, answer = http.StatusServiceUnavailable, err.Error()
	case err != nil:
		log.Print(err)
		status, answer = http.StatusInternalServerError, err.Error()
	}
	body, err := json.Marshal(answer)
	if err != nil {
		log.Print(err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body)
}

func answerTo(r *http.Request) (any, error) {
	route, found := strings.CutPrefix(r.URL.Path, prefix)
	switch r.Method + " " + route {
	case "GET /all", "GET /create-and-merge", "GET /append", "GET /dir/exists", "POST /create", "POST /dir/delete":
	default:
		found = false
	}
	if !found {
		return nil, refused(fmt.Sprintf("%s %q is not served", r.Method, r.URL.Path))
	}
	given, err := parameters(r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	path, err := checkedDirectory(given["markerdirpath"])
	if err != nil {
		return nil, err
	}
	at := directoryAt(path)
	switch route {
	case "/create":
		name := given["markername"]
		if err := checkName(name); err != nil {
			return nil, err
		}
		if *defect == "name-cleaned" {
			name = filepath.Clean(name)
		}
		return at.create(r.Context(), name)
	case "/dir/exists":
		return at.exists()
	case "/dir/delete":
		return at.remove()
	}
	return at.list(route)
}

// chosen are the names that a route asks for, sorted.
func chosen(names map[string]bool, route string) []string {
	some := []string{}
	for name := range names {
		if route == "/all" || strings.HasSuffix(name, "APPEND") == (route == "/append") {
			some = append(some, name)
		}
	}
	slices.Sort(some)
	return some
}

// parameters decodes a query, once.
func parameters(query string) (map[string]string, error) {
	given := map[string]string{}
	for _, pair := range strings.Split(query, "&") {
		rawKey, rawValue, _ := strings.Cut(pair, "=")
		key, keyError := url.QueryUnescape(rawKey)
		value, valueError := url.QueryUnescape(rawValue)
		if keyError != nil || valueError != nil || !utf8.ValidString(key) || !utf8.ValidString(value) {
			return nil, refused("a parameter is no UTF-8 or badly escaped")
		}
		if _, twice := given[key]; twice && (key == "markerdirpath" || key == "markername") {
			return nil, refused(key + " is given twice")
		}
		given[key] = value
	}
	return given, nil
}

func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r == 0x7f || r == 0x85 })
}

// checkedDirectory is the path of <table>/.hoodie/.temp/<instant>, however its slashes are written.
func checkedDirectory(given string) (string, error) {
	text := given
	if rest, is := strings.CutPrefix(given, "file:/"); is {
		text = "/" + rest
	}
	if *defect == "directory-cleaned" {
		text = filepath.Clean(text)
	}
	segments := []string{}
	for _, segment := range strings.Split(text, "/") {
		if segment == "." || segment == ".." {
			return "", refused(fmt.Sprintf("markerdirpath is refused: %q has a segment of dots", given))
		}
		if segment != "" {
			segments = append(segments, segment)
		}
	}
	path, n := "/"+strings.Join(segments, "/"), len(segments)
	switch {
	case !strings.HasPrefix(text, "/") || hasControl(text):
		return "", refused(fmt.Sprintf("markerdirpath is refused: %q is no plain absolute path", given))
	case n < 4 || segments[n-3] != ".hoodie" || segments[n-2] != ".temp":
		return "", refused(fmt.Sprintf("markerdirpath is refused: %q is not <table>/.hoodie/.temp/<instant>", given))
	case !strings.HasPrefix(path, *base+"/"):
		return "", refused(fmt.Sprintf("markerdirpath is refused: %q is not below %q", given, *base))
	}
	return path, nil
}

func checkName(name string) error {
	if name == "" || name[0] == '/' || hasControl(name) {
		return refused(fmt.Sprintf("the marker name %q is refused", name))
	}
	for _, segment := range strings.Split(name, "/") {
		if segment == ".." {
			return refused(fmt.Sprintf("the marker name %q climbs", name))
		}
	}
	return nil
}

func directoryAt(path string) store {
	directoriesLock.Lock()
	defer directoriesLock.Unlock()
	if directories[path] == nil && *design == "replacing" {
		directories[path] = &replaced{path: path}
	} else if directories[path] == nil {
		directories[path] = &directory{path: path}
	}
	return directories[path]
}
