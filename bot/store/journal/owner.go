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

// CheckOwner refuses to let root use a file or folder of a different user: the bot of that user could not read the files that
// root leaves there. A file that does not exist has no owner yet.
func CheckOwner(path string) error {
	me := os.Geteuid()
	if me != 0 {
		return nil // checkAccess notices what this user may not do
	}
	uid, _, err := Owner(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && uid == me {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%s belongs to user %d and this process is root, whose files that user could not read; run it as user %d, or on a copy of the folder", path, uid, uid)
}

// Owner returns the user and the group that a file belongs to.
func Owner(path string) (uid, gid int, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, fmt.Errorf("asking whose file it is: %w", err)
	}
	is := info.Sys().(*syscall.Stat_t)
	return int(is.Uid), int(is.Gid), nil
}

// checkAccess refuses a folder with a file that this process may not use. The server would take such a file for a damaged
// one and drop its stream, and the journal would look as if it had lost data.
func checkAccess(dir string, mode uint32) error {
	return filepath.WalkDir(filepath.Join(dir, "jetstream"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && (d.IsDir() || d.Type().IsRegular()) {
			need := mode
			if d.IsDir() {
				need |= unix.X_OK
			}
			if err = unix.Faccessat(unix.AT_FDCWD, path, need, unix.AT_EACCESS); err != nil {
				err = &fs.PathError{Op: "access", Path: path, Err: err}
			}
		}
		switch {
		case errors.Is(err, fs.ErrPermission):
			return notOurs(err, dir)
		case errors.Is(err, fs.ErrNotExist): // the server of this process deletes old files
			return nil
		}
		return err
	})
}

func notOurs(err error, dir string) error {
	return fmt.Errorf("open journal: %w for user %d (nothing is lost: a different user has written there; as root, run: chown -R --reference=%s %s)", err, os.Geteuid(), filepath.Dir(dir), dir)
}
