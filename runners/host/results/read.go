// Package results reads files of results: evidence, verdicts and what lies beside them. Somebody may have sent them, so
// that a file may be a link, a device or without end. It parses nothing.
package results

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// MaxBytes is the largest file that is read.
const MaxBytes = 256 << 20

// Read is the content of a regular file. A link is not followed: in somebody else's folder it may lead anywhere.
func Read(path string) ([]byte, error) { return ReadAtMost(path, MaxBytes) }

// ReadAtMost is Read of a file of so many bytes at most.
func ReadAtMost(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return All(f, path, most)
}

// Open opens a regular file, as Read does.
func Open(path string) (*os.File, error) {
	// Without O_NONBLOCK, a named pipe would wait for somebody to write to it.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a link (name the file that it leads to)", path)
	}
	if err != nil {
		return nil, err
	}
	if err := regular(f, path); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// All is the rest of an open file, of so many bytes at most. A file may grow while it is read.
func All(f *os.File, path string, most int64) ([]byte, error) {
	if err := regular(f, path); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes, and no more are read", path, most)
	}
	return data, nil
}

func regular(f *os.File, path string) error {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	return err
}
