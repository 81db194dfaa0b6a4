// Package folderhash hashes folders of sources. Two folders have equal hashes only if no
// program that reads them can tell them apart: by names, contents, executable bits or links.
package folderhash

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Sum is the hash of a whole folder in hex.
func Sum(dir string) (string, error) {
	h := sha256.New()
	if err := Write(h, dir, nil); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Write writes one line for every entry below a folder, in the order of their names. A line
// has all that a checkout keeps of an entry: of a file whether it is executable and the hash
// of its contents, of a link where it points to. Links are not followed, except for dir
// itself. Entries that are not wanted are left out, and nil wants all of them; names have slashes.
func Write(w io.Writer, dir string, wanted func(name string) bool) error {
	top, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	return filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == top {
			return err
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		if name = filepath.ToSlash(name); wanted != nil && !wanted(name) {
			return nil
		}
		line, err := describe(path, d)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%q %s\n", name, line)
		return err
	})
}

func describe(path string, d fs.DirEntry) (string, error) {
	switch d.Type() {
	case 0:
		info, err := d.Info()
		if err != nil {
			return "", err
		}
		sum, err := File(path)
		return fmt.Sprintf("file %x executable=%t", sum, info.Mode()&0o111 != 0), err
	case fs.ModeSymlink:
		target, err := os.Readlink(path)
		return fmt.Sprintf("link %q", target), err
	}
	return d.Type().String(), nil
}

// File is the hash of a file's contents.
func File(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}
