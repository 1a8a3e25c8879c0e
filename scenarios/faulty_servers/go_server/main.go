// A timeline server that appends to its marker files and owns the directories it was asked about, and the same with one
// storage defect (-defect, README.md). This file speaks HTTP; directory.go stores.
//
//	server -port {port} -dir {storage} -threads {threads} [-defect NAME]
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const prefix = "/v1/hoodie/marker"

var defects = []string{
	"", "second-write-unchecked", "cut-line-is-a-name", "remembered-before-write", "cut-line-continued",
	"deletion-error-logged", "unreadable-file-skipped",
}

var (
	defect  = flag.String("defect", "", "one of "+strings.Join(defects, " "))
	port    = flag.Int("port", 0, "where to listen on 127.0.0.1")
	base    = flag.String("dir", "", "what all marker directories lie below")
	threads = flag.Int("threads", 20, "how many marker files a directory has at most")
)

// refused is the error of a request that changes nothing.
type refused string

func (r refused) Error() string { return string(r) }

var (
	directoriesLock sync.Mutex
	directories     = map[string]*directory{}
)

func main() {
	flag.Parse()
	known := false
	for _, name := range defects {
		known = known || name == *defect
	}
	if !known || *port == 0 || *base == "" {
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
	case errors.Is(err, errOwnedElsewhere):
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
		return at.create(name)
	case "/dir/exists":
		return at.exists()
	case "/dir/delete":
		return at.remove()
	}
	names, err := at.list()
	chosen := []string{}
	for _, name := range names {
		if route == "/all" || strings.HasSuffix(name, "APPEND") == (route == "/append") {
			chosen = append(chosen, name)
		}
	}
	return chosen, err
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

func directoryAt(path string) *directory {
	directoriesLock.Lock()
	defer directoriesLock.Unlock()
	if directories[path] == nil {
		directories[path] = &directory{path: path}
	}
	return directories[path]
}
