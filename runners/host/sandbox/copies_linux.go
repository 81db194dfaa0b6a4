package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// mentioned bounds how many of the files that were left behind a result names.
const mentioned = 8

// A privateCopy is a Write path: the host's directory, and the copy that the program sees and
// changes.
type privateCopy struct {
	path         string
	host, inside *os.Root
}

// fill copies the host's directory into the copy, including symbolic links. It keeps the times, so
// that bringBack can see which files changed.
func (p privateCopy) fill(toNobody bool) error {
	return fs.WalkDir(p.host.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch info.Mode().Type() {
		case fs.ModeDir:
			err = p.inside.Mkdir(name, info.Mode().Perm())
		case fs.ModeSymlink:
			var target string
			if target, err = p.host.Readlink(name); err == nil {
				err = p.inside.Symlink(target, name)
			}
		case 0:
			err = copyFile(p.inside, p.host, name, info)
		default:
			return nil // sockets and other special files are useless inside
		}
		if err == nil && toNobody {
			err = p.inside.Lchown(name, nobody, nobody)
		}
		if errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("copy it in: %w; give the program more disk or write to a smaller directory", err)
		}
		return err
	})
}

// bringBack copies the files that changed in the Write paths to the host. It leaves behind, and
// names, everything that is neither a regular file nor a directory, and everything after the first
// limit bytes. The limit is needed because holes in a file take no disk space inside.
func (r *newRoot) bringBack(limit int64) (left []string, err error) {
	for _, p := range r.copies {
		err := fs.WalkDir(p.inside.FS(), ".", func(name string, d fs.DirEntry, walkErr error) error {
			if name == "." {
				return walkErr
			}
			why, err := p.bringBackOne(name, d, walkErr, &limit)
			switch {
			case err != nil || why == "":
				return err
			case len(left) < mentioned:
				left = append(left, fmt.Sprintf("%s was not brought back: %s", filepath.Join(p.path, name), why))
			case len(left) == mentioned:
				left = append(left, "more files were not brought back")
			}
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		})
		if err != nil {
			return left, fmt.Errorf("bring back %s: %w", p.path, err)
		}
	}
	return left, nil
}

// bringBackOne copies one file, or returns why it left the file behind. A bad state that the
// program caused must be such a reason. An error always means a failure on the host's side.
func (p privateCopy) bringBackOne(name string, d fs.DirEntry, walkErr error, limit *int64) (why string, err error) {
	if walkErr != nil {
		return "it can not be read", nil
	}
	// Every directory level costs memory and time here.
	if strings.Count(name, "/") >= 64 {
		return "it lies too deep", nil
	}
	inside, err := d.Info()
	if err != nil {
		return "", err
	}
	host, err := p.host.Lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	exists, kind := err == nil, inside.Mode().Type()
	switch {
	case exists && host.Mode().Type() != kind:
		return "the host has another kind of file there", nil
	case exists && kind != 0:
		return "", nil
	case exists && host.Size() == inside.Size() && host.ModTime().Equal(inside.ModTime()):
		return "", nil
	case kind == fs.ModeDir:
		return "", p.host.Mkdir(name, inside.Mode().Perm()|0o700)
	case kind != 0:
		return "it is not a regular file", nil
	case inside.Size() > *limit:
		return "it is too large", nil
	}
	*limit -= inside.Size()
	return "", copyFile(p.host, p.inside, name, inside)
}

func copyFile(to, from *os.Root, name string, info fs.FileInfo) error {
	in, err := from.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), to.Chtimes(name, info.ModTime(), info.ModTime()))
}
