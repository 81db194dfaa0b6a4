package toolchain

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// unfinished is the prefix of an entry's folder while it is written.
const unfinished = "unfinished-"

// abandoned is the age at which its writer must be dead.
const abandoned = time.Hour

// evict removes the least recently used entries until the rest is small enough. The entry named
// last stays.
func (c *Cache) evict(last string) error {
	folders, err := os.ReadDir(c.Dir)
	if err != nil {
		return err
	}
	type entry struct {
		path  string
		bytes int64
		used  time.Time
	}
	var entries []entry
	var total int64
	var problem error
	for _, folder := range folders {
		info, err := folder.Info()
		if err != nil {
			continue // another process was faster
		}
		e := entry{path: filepath.Join(c.Dir, folder.Name()), used: info.ModTime()}
		if strings.HasPrefix(folder.Name(), unfinished) {
			if time.Since(e.used) > abandoned {
				problem = errors.Join(problem, os.RemoveAll(e.path))
			}
			continue
		}
		e.bytes = folderBytes(e.path)
		total += e.bytes
		if folder.Name() != last {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return a.used.Compare(b.used) })
	for _, e := range entries {
		if total <= cmp.Or(c.MaxBytes, cacheBytes) {
			break
		}
		problem = errors.Join(problem, os.RemoveAll(e.path))
		total -= e.bytes
	}
	return problem
}

// folderBytes returns the size of a folder; files that cannot be read count as 0.
func folderBytes(dir string) int64 {
	var total int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	return total
}
