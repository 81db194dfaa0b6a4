package pages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/runners/host/results"
	"github.com/kernelgate/kernelgate/runners/work/tune"
)

// maxSearchLog is the size of the largest log of a search that is shown.
const maxSearchLog = 64 << 20

// Searching returns all logs in the folder: only the log itself says whether its search has ended.
func (f *Folder) Searching(ctx context.Context) ([]SearchLog, error) {
	return f.Searches(ctx, SearchFilter{})
}

// Searches returns the logs of searches in the folder, which is one repository. Only a log itself has the name of its kernel, so the
// filter chooses none of them.
func (f *Folder) Searches(ctx context.Context, _ SearchFilter) ([]SearchLog, error) {
	var all []SearchLog
	err := filepath.WalkDir(f.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && path == f.dir:
			return err
		case err != nil:
			return nil
		case d.IsDir() && path != f.dir && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.Type().IsRegular() || d.Name() != tune.LogFile:
			return nil
		}
		log, err := f.readSearch(path)
		if err == nil {
			all = append(all, log)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the searches: %w", err)
	}
	slices.SortFunc(all, func(a, b SearchLog) int {
		return cmp.Or(b.Changed.Compare(a.Changed), strings.Compare(b.Name, a.Name))
	})
	return all, nil
}

// SearchLog returns the log with a name.
func (f *Folder) SearchLog(ctx context.Context, name string) (SearchLog, error) {
	all, err := f.Searches(ctx, SearchFilter{})
	if err != nil {
		return SearchLog{}, err
	}
	if i := slices.IndexFunc(all, func(l SearchLog) bool { return l.Name == name }); i >= 0 {
		return all[i], nil
	}
	return SearchLog{}, ErrNotFound
}

func (f *Folder) readSearch(path string) (SearchLog, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return SearchLog{}, err
	}
	if !info.Mode().IsRegular() {
		return SearchLog{}, errors.New("it is no file")
	}
	text, err := results.ReadAtMost(path, maxSearchLog)
	return SearchLog{Name: f.searchName(path), Repo: repoID, Changed: info.ModTime(), Text: text}, err
}

// searchName is the name of a search: its folder.
func (f *Folder) searchName(path string) string {
	if dir := filepath.Dir(path); filepath.Clean(dir) != filepath.Clean(f.dir) {
		return f.nameOf(dir)
	}
	return "search"
}
