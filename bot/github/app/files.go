package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/kernelgate/kernelgate/policies/usage"
)

// A file is a file to write.
type file struct {
	name string
	text []byte
	mode fs.FileMode
}

// free checks that the files can be written, before the user is sent to GitHub.
func free(dir string, force bool) error {
	for _, name := range []string{keyFile, secretFile, configFile} {
		info, err := os.Lstat(filepath.Join(dir, name))
		switch {
		case err == nil && info.IsDir():
			return usage.Errorf("--dir: %s is a folder (choose a different --dir)", filepath.Join(dir, name))
		case err == nil && !force:
			return usage.Errorf("--dir: %s already exists (choose a different --dir, or overwrite it with --force)", filepath.Join(dir, name))
		}
	}
	missing, err := missingFolders(dir)
	if err != nil {
		return usage.Errorf("--dir: %w (choose a different --dir)", err)
	}
	there := dir
	if len(missing) > 0 {
		there = filepath.Dir(missing[0])
	}
	probe, err := os.MkdirTemp(there, ".kernelgate-setup-")
	if err != nil {
		return usage.Errorf("--dir: cannot write to %s: %w (run setup as a user who may write there, or choose a different --dir)", there, errors.Unwrap(err))
	}
	if err := os.Remove(probe); err != nil {
		return fmt.Errorf("removing what was written to try %s: %w", there, err)
	}
	return nil
}

// missingFolders returns the folders to create for dir, the outermost first.
func missingFolders(dir string) ([]string, error) {
	var missing []string
	for {
		info, err := os.Stat(dir)
		switch {
		case err == nil && !info.IsDir():
			return nil, fmt.Errorf("%s is not a folder", dir)
		case err == nil:
			slices.Reverse(missing)
			return missing, nil
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		missing = append(missing, dir)
		dir = filepath.Dir(dir)
	}
}

// writeAll writes all files or none. All files are complete on disk before the first gets its name.
// If one cannot get its name, those before it are removed again.
func writeAll(dir string, files []file, force bool) (err error) {
	var undo []func() error
	defer func() {
		if err == nil {
			return
		}
		for _, step := range slices.Backward(undo) {
			err = errors.Join(err, step())
		}
	}()
	missing, err := missingFolders(dir)
	if err != nil {
		return err
	}
	for _, folder := range missing {
		mode := fs.FileMode(0o755)
		if folder == dir {
			mode = 0o700
		}
		if err := os.Mkdir(folder, mode); err != nil {
			return err
		}
		undo = append(undo, func() error { return os.Remove(folder) })
	}
	stage, err := os.MkdirTemp(dir, ".kernelgate-setup-")
	if err != nil {
		return err
	}
	undo = append(undo, func() error { return os.RemoveAll(stage) })
	for _, f := range files {
		if err := writeSynced(filepath.Join(stage, f.name), f.text, f.mode); err != nil {
			return err
		}
	}
	for _, f := range files {
		back, err := place(filepath.Join(stage, f.name), filepath.Join(dir, f.name), force)
		if err != nil {
			return err
		}
		undo = append(undo, back)
	}
	for _, folder := range missing {
		if err := syncFolder(filepath.Dir(folder)); err != nil {
			return err
		}
	}
	if err := syncFolder(dir); err != nil {
		return err
	}
	_ = os.RemoveAll(stage) // the folder is as private as the files
	return nil
}

func writeSynced(name string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
}

// place gives a file its name, and returns how to undo that. Without force the name must be free; a
// link detects that, a rename does not.
func place(from, to string, force bool) (back func() error, err error) {
	back = func() error { return os.Remove(to) }
	info, err := os.Lstat(to)
	switch there := err == nil; {
	case !there && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case there && (!force || info.IsDir()):
		return nil, fmt.Errorf("%s already exists", to)
	case there:
		return replace(from, to, from+".old")
	}
	switch err := os.Link(from, to); {
	case err == nil:
		return back, nil
	case errors.Is(err, fs.ErrExist):
		return nil, fmt.Errorf("%s is there since a moment ago", to)
	}
	return back, os.Rename(from, to) // the file system has no links
}

// replace keeps the old file until all new files are in place.
func replace(from, to, old string) (back func() error, err error) {
	if os.Link(to, old) != nil {
		if err := os.Rename(to, old); err != nil {
			return nil, err
		}
	}
	if err := os.Rename(from, to); err != nil {
		return nil, errors.Join(err, os.Rename(old, to))
	}
	return func() error { return os.Rename(old, to) }, nil
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
