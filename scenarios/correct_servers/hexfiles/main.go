// One empty file a marker, its path the name in hex digits; exclusive create says who was first. No lock, no memory.
//
//	hexfiles -port N -dir ROOT      serve the marker directories below ROOT
//	hexfiles -names DIR             print the names stored in one, for --reader
package main

import (
	"encoding/hex"
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
	"unicode"
	"unicode/utf8"
)

const (
	base   = "/v1/hoodie/marker"
	cut    = 200
	end    = ".hex"
	tries  = 100
	length = 4096
)

var (
	marker    = regexp.MustCompile(`[^/]\.marker\.(CREATE|MERGE|APPEND)$`)
	directory = regexp.MustCompile(`^(/[^/]+)+/\.hoodie/\.temp/[^/]+$`)
)

type refused struct{ error }

func plain(path string) bool {
	for _, part := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if part == "" || part == "." || part == ".." || len(part) > 255 {
			return false
		}
	}
	odd := func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }
	return len(path) <= length && utf8.ValidString(path) && strings.IndexFunc(path, odd) < 0
}

func fileOf(dir, name string) string {
	digits := hex.EncodeToString([]byte(name))
	path := dir
	for len(digits) > cut {
		path, digits = filepath.Join(path, digits[:cut]), digits[cut:]
	}
	return filepath.Join(path, digits+end)
}

func names(dir string) ([]string, error) {
	found := []string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // Deleted meanwhile.
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, end) {
			return err
		}
		inside := strings.TrimSuffix(strings.TrimPrefix(path, dir+"/"), end)
		name, err := hex.DecodeString(strings.ReplaceAll(inside, "/", ""))
		found = append(found, string(name))
		return err
	})
	return found, err
}

func create(dir, name string) (bool, error) {
	path := fileOf(dir, name)
	var err error
	for range tries { // A deletion may take the directory away between the two.
		if err = os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			continue
		}
		var file *os.File
		file, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err == nil {
			return true, file.Close()
		}
		if errors.Is(err, fs.ErrExist) {
			return false, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return false, err
}

func remove(dir string) (bool, error) {
	_, err := os.Stat(dir)
	there := err == nil
	for range tries { // What others create meanwhile keeps a directory from being removed.
		if err = os.RemoveAll(dir); err == nil {
			return there, nil
		}
	}
	return there, err
}

func answer(root string, r *http.Request) (any, error) {
	query := r.URL.Query()
	dir, name := query.Get("markerdirpath"), query.Get("markername")
	if !directory.MatchString(dir) || !plain(dir) || !strings.HasPrefix(dir, root+"/") || strings.Count(dir, "/.hoodie/") != 1 {
		return nil, refused{fmt.Errorf("%q is no marker directory below %s", dir, root)}
	}
	switch r.Method + " " + strings.TrimPrefix(r.URL.Path, base) {
	case "POST /create":
		if !plain(name) || strings.HasPrefix(name, "/") || strings.HasPrefix(name, ".hoodie/") || !marker.MatchString(name) {
			return nil, refused{fmt.Errorf("%q is no marker name", name)}
		}
		return create(dir, name)
	case "POST /dir/delete":
		return remove(dir)
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
	root := flag.String("dir", "", "")
	list := flag.String("names", "", "")
	flag.Parse()
	if *list != "" {
		found, err := names(*list)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		for _, name := range found {
			fmt.Println(name)
		}
		return
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		value, err := answer(*root, r)
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
