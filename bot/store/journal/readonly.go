package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// copyForReading copies the journal into a temporary folder, and lets the embedded server work there: it writes even if
// nobody stores anything, for example when it deletes what is too old. A file system that shares blocks makes the copy free.
func (j *Journal) copyForReading() (err error) {
	from := j.opt.Dir
	if err := checkAccess(from, unix.R_OK); err != nil {
		return err
	}
	unlock, err := lockForReading(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if j.copied, err = os.MkdirTemp("", "kernelgate-journal-"); err != nil {
		return fmt.Errorf("open journal %s for reading: make a folder for a copy: %w", from, err)
	}
	j.opt.Dir = filepath.Join(j.copied, "journal")
	if err := os.CopyFS(j.opt.Dir, os.DirFS(from)); err != nil {
		return fmt.Errorf("open journal %s for reading: copy it: %w (the copy needs as much space as the journal: set TMPDIR to a folder that has it)", from, err)
	}
	return nil
}

// lockForReading keeps the server of a bot away while a journal is copied. It writes nothing.
func lockForReading(dir string) (unlock func() error, err error) {
	f, err := os.Open(filepath.Join(dir, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(lockError(dir, f.Name(), err), f.Close())
	}
	return func() error { return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close()) }, nil
}
