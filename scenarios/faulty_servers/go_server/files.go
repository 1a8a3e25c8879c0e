package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

const partSize = 8

// heldLock is the lock of a marker directory, which every server of this storage takes.
type heldLock struct{ file *os.File }

func (h heldLock) unlock() { _ = h.file.Close() }

// lockDirectory locks a marker directory, which it can make first. Without one its error is os.ErrNotExist.
func lockDirectory(path string, create bool) (heldLock, error) {
	for {
		if create {
			if err := makeDirectories(path); err != nil {
				return heldLock{}, err
			}
		}
		file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0)
		if create && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return heldLock{}, err
		}
		for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
			err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		}
		if err == nil && (*defect == "lock-of-deleted" || isStill(path, file)) {
			return heldLock{file}, nil
		}
		_ = file.Close()
		if err != nil {
			return heldLock{}, err
		}
	}
}

// isStill says whether the path leads to the opened directory: it may have been deleted while we waited for its lock.
func isStill(path string, file *os.File) bool {
	now, err := os.Stat(path)
	if err != nil {
		return false
	}
	opened, err := file.Stat()
	return err == nil && os.SameFile(now, opened)
}

// foundFiles are the marker files of a directory; every rewrite makes a new file and so another signature.
type foundFiles struct {
	indexes   []int
	signature string
}

func markerFiles(path string) (foundFiles, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return foundFiles{}, err
	}
	own, err := os.Stat(path)
	if err != nil {
		return foundFiles{}, err
	}
	found := foundFiles{signature: fmt.Sprint(inode(own))}
	for _, entry := range entries {
		match := markerFilePattern.FindStringSubmatch(entry.Name())
		if match == nil || !entry.Type().IsRegular() {
			continue
		}
		status, err := entry.Info()
		if err != nil {
			return foundFiles{}, err
		}
		index, err := strconv.Atoi(match[1])
		if err != nil {
			return foundFiles{}, err
		}
		found.indexes = append(found.indexes, index)
		modified := status.ModTime().UnixNano()
		found.signature += fmt.Sprintf(" %d:%d:%d:%d", index, inode(status), status.Size(), modified)
	}
	return found, nil
}

func inode(status os.FileInfo) uint64 {
	if detail, ok := status.Sys().(*syscall.Stat_t); ok {
		return detail.Ino
	}
	return 0
}

func fileName(index int) string { return "MARKERS" + strconv.Itoa(index) }

func encode(lines []string) []byte {
	return []byte(strings.Join(lines, "\n") + "\n")
}

// decode returns the lines. What follows the last line end was torn off by a crash and was never answered.
func decode(content []byte, buffered bool) []string {
	content = content[:bytes.LastIndexByte(content, '\n')+1]
	if !buffered {
		lines := strings.Split(string(content), "\n")
		return lines[:len(lines)-1]
	}
	var lines []string
	reader := bufio.NewReader(bytes.NewReader(content))
	for {
		line, _, err := reader.ReadLine()
		if err != nil {
			return lines
		}
		lines = append(lines, string(line))
	}
}

// writeType writes the type file unless it is right.
func (d *replaced) writeType() error {
	content, err := os.ReadFile(filepath.Join(d.path, typeName))
	if err == nil && string(content) == typeText {
		return nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return replaceFile(d.path, typeName, []byte(typeText), func() {})
}

// replaceFile replaces a file atomically and durably.
func replaceFile(directory string, name string, content []byte, written func()) error {
	return replaceBy(directory, "."+name+".tmp", name, content, written)
}

func replaceBy(directory string, side string, name string, content []byte, written func()) error {
	temporary := filepath.Join(directory, side)
	if err := writeFile(temporary, content, written); err != nil {
		return err
	}
	if err := os.Rename(temporary, filepath.Join(directory, name)); err != nil {
		return err
	}
	return syncPath(directory)
}

func writeFile(path string, content []byte, written func()) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if *defect == "temporary-exclusive" {
		flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	}
	file, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if *defect == "short-file-renamed" {
		err = nil
	}
	if err == nil {
		written()
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err != nil && *defect == "ends-on-write-error" {
		log.Fatal(err)
	}
	return err
}

func syncPath(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// writeInParts writes the parts of a large batch at the same time, each to the file that its first name hashes to.
func (d *replaced) writeInParts(fresh []string) error {
	if err := d.writeType(); err != nil {
		return err
	}
	var parts [][]string
	for part := range slices.Chunk(fresh, partSize) {
		parts = append(parts, part)
	}
	indexes, contents, failures := make([]int, len(parts)), make([][]string, len(parts)), make([]error, len(parts))
	var writers sync.WaitGroup
	for position, part := range parts {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(part[0]))
		indexes[position] = int(hash.Sum32() % uint32(*threads))
		contents[position] = slices.Concat(d.files[indexes[position]], part)
		writers.Add(1)
		go func() {
			defer writers.Done()
			name, content := fileName(indexes[position]), encode(contents[position])
			failures[position] = replaceBy(d.path, fmt.Sprintf(".%s.%d.tmp", name, position), name, content, func() {})
		}()
	}
	writers.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	files := map[int][]string{}
	for position, index := range indexes {
		files[index] = contents[position]
	}
	return d.keep(files, fresh)
}

// settle makes durable what another server, or an earlier life of this one, left there, before anything is said about it.
func (d *replaced) settle(found foundFiles) error {
	names := []string{typeName}
	for _, index := range found.indexes {
		names = append(names, fileName(index))
	}
	for _, name := range names {
		if err := syncPath(filepath.Join(d.path, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for path := d.path; strings.HasPrefix(path, *base); path = filepath.Dir(path) {
		if err := syncPath(path); err != nil {
			return err
		}
	}
	return nil
}

// makeDirectories is os.MkdirAll that syncs the parent of what it made.
func makeDirectories(path string) error {
	if status, err := os.Stat(path); err == nil && status.IsDir() {
		return nil
	}
	if err := makeDirectories(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return syncPath(filepath.Dir(path))
}

// readFile is os.ReadFile.
func readFile(path string) ([]byte, error) {
	if *defect != "one-page-read" {
		return os.ReadFile(path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	page := make([]byte, 4096)
	size, err := file.Read(page)
	if size > 0 {
		err = nil
	}
	return page[:max(size, 0)], errors.Join(err, file.Close())
}
