// Package output reads what a compiler leaves behind: its messages, as diagnostics with file and line, and its files.
package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ReadFile reads a file that the compiler should have written. If something else is in its place,
// the source put it there.
func ReadFile(file string, limit int64) ([]byte, error) {
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular():
		return nil, Refuse("the compiler made no %s of it: is it a source?", filepath.Base(file))
	case err != nil:
		return nil, fmt.Errorf("reading the compiler's output: %w", err)
	case info.Size() > limit:
		return nil, Refuse("the compiler's %s has %d bytes, over the limit of %d: put less into the source", filepath.Base(file), info.Size(), limit)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the compiler's output: %w", err)
	}
	return data, nil
}

func Refuse(format string, args ...any) error {
	return &CompileError{Summary: fmt.Sprintf(format, args...)}
}
