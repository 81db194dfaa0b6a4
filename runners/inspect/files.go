package inspect

import (
	"io/fs"
	"path/filepath"
	"strings"
)

// Files knows the kernel's own sources, for tools name them in several ways: by the
// whole path, or by the last part of it.
type Files struct {
	dir  string
	base map[string]string // paths from the folder, by the last part
}

const maxFiles = 10_000

// FilesOf looks through the kernel's folder.
func FilesOf(dir string) Files {
	f := Files{dir: dir, base: map[string]string{}}
	seen := 0
	// What cannot be read is not named; a finding then stands without its line.
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if seen++; seen > maxFiles {
			return fs.SkipAll
		}
		if err != nil || d.IsDir() {
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		// Of two files with one name, the one nearer to the root is meant more often.
		if had, ok := f.base[d.Name()]; err == nil && (!ok || strings.Count(rel, "/") < strings.Count(had, "/")) {
			f.base[d.Name()] = filepath.ToSlash(rel)
		}
		return nil
	})
	return f
}

// own is a file's path from the kernel's folder; ok is false for headers of the
// system and for the program around the kernel, which are nobody's line to mend.
func (f Files) own(file string) (path string, ok bool) {
	switch {
	case file == "":
		return "", false
	case filepath.IsAbs(file):
		rel, err := filepath.Rel(f.dir, file)
		return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
	}
	rel, ok := f.base[filepath.Base(file)]
	return rel, ok
}

// blame picks the frame that somebody can mend: the innermost in the kernel's own
// files, or the function alone.
func (f Files) blame(frames []frame) frame {
	for _, at := range frames {
		if path, ok := f.own(at.file); ok && at.line > 0 {
			return frame{at.function, path, at.line}
		}
	}
	if len(frames) > 0 {
		return frame{function: frames[0].function}
	}
	return frame{}
}
