package journal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// recorded makes a journal with one event, and returns its folder.
func recorded(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "journal")
	j := open(t, Options{Dir: dir})
	if _, err := j.Append(testContext(t), "run", 0, "kind", 1); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// photograph returns everything that a change to a folder could change.
func photograph(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		is := info.Sys().(*syscall.Stat_t)
		all[path] = fmt.Sprint(info.Mode(), info.ModTime().UnixNano(), is.Ctim, is.Ino, is.Uid)
		if d.Type().IsRegular() {
			content, err := os.ReadFile(path)
			all[path] += fmt.Sprintf(" %x", sha256.Sum256(content))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A reader changes no file of the journal and leaves no copy behind. It does not read while a bot writes.
func TestReadOnly(t *testing.T) {
	dir, temporary := recorded(t), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	before := photograph(t, dir)
	j, err := Open(testContext(t), Options{Dir: dir, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	events := 0
	_, err = j.Replay(testContext(t), 0, func(Event) error { events++; return nil })
	if err := errors.Join(err, j.Close()); err != nil || events != 1 {
		t.Errorf("read %d events, %v", events, err)
	}
	if after := photograph(t, dir); !maps.Equal(before, after) {
		t.Errorf("the journal was\n%v\nand is\n%v", before, after)
	}

	bot := open(t, Options{Dir: dir})
	if j, err := Open(testContext(t), Options{Dir: dir, ReadOnly: true}); !errors.Is(err, errLocked) {
		t.Errorf("opened the journal of a running bot: %v, %v", j, err)
	}
	if err := bot.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if j, err := Open(testContext(t), Options{Dir: t.TempDir(), ReadOnly: true}); err == nil || !strings.Contains(err.Error(), "no bot has stored anything there") {
		t.Errorf("opened a folder without a journal: %v, %v", j, err)
	}
}

// A file that the bot may not read was not lost: the error must not send anybody to a backup.
func TestUnreadableIsNotLost(t *testing.T) {
	for _, name := range []string{lockFile, "jetstream/$G/streams/DELIVERIES/meta.inf", "jetstream/$G/streams/EVENTS/msgs", "jetstream/$G/streams/EVENTS/msgs/1.blk"} {
		dir := recorded(t)
		file := filepath.Join(dir, name)
		if os.Geteuid() == 0 {
			chownAll(t, filepath.Dir(filepath.Dir(dir)), nobody)
			if err := os.Chown(file, 0, 0); err != nil {
				t.Fatal(err)
			}
		} else if err := os.Chmod(file, 0); err != nil {
			t.Fatal(err)
		}
		err := asNobody(t, func() error {
			j, err := Open(testContext(t), Options{Dir: dir})
			if err == nil {
				err = errors.Join(errors.New("opened"), j.Close())
			}
			return err
		})
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "chown -R") || strings.Contains(err.Error(), "backup") {
			t.Errorf("%s: %v", name, err)
		}
		if os.Geteuid() != 0 {
			if err := os.Chmod(file, 0o700); err != nil { // for the clean-up
				t.Error(err)
			}
		}
	}
}

// Root refuses a journal of a different user: it would write files that the user's bot cannot read.
func TestRootRefusesTheJournalOfAUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to a different user")
	}
	dir := recorded(t)
	chownAll(t, dir, nobody)
	before := photograph(t, dir)
	if j, err := Open(testContext(t), Options{Dir: dir}); err == nil {
		t.Error("opened", j.Close())
	} else if !strings.Contains(err.Error(), "belongs to user 65534 and this process is root") {
		t.Error(err)
	}
	if after := photograph(t, dir); !maps.Equal(before, after) {
		t.Errorf("the journal was\n%v\nand is\n%v", before, after)
	}
}

const nobody = 65534

func chownAll(t *testing.T, dir string, uid int) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error { return errors.Join(err, os.Chown(path, uid, uid)) }); err != nil {
		t.Fatal(err)
	}
}

// asNobody runs a function on a thread that is not root, and that ends with it.
func asNobody(t *testing.T, do func() error) error {
	t.Helper()
	if os.Geteuid() != 0 {
		return do()
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			result <- errno
			return
		}
		result <- do()
	}()
	return <-result
}
