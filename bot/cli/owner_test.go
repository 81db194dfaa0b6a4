package cli

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// Root may run gc on the folder of a bot that is a different user: the folder stays that user's, even where only root may
// enter the folder above it, as with a dynamic user of systemd. A dry run changes no file. serve refuses.
func TestGCAsRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become a different user")
	}
	const bot = 61234
	data := filepath.Join(t.TempDir(), "private", "kernelgate")
	j, err := journal.Open(t.Context(), journal.Options{Dir: filepath.Join(data, "journal")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Artifacts.Put(t.Context(), "evidence", strings.NewReader("text")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Close(), os.Chmod(filepath.Dir(data), 0o700)); err != nil {
		t.Fatal(err)
	}
	walk := func(do func(path string, info fs.FileInfo) error) {
		t.Helper()
		if err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			return do(path, info)
		}); err != nil {
			t.Fatal(err)
		}
	}
	walk(func(path string, _ fs.FileInfo) error { return os.Chown(path, bot, bot) })
	times := map[string]syscall.Timespec{}
	walk(func(path string, info fs.FileInfo) error { times[path] = info.Sys().(*syscall.Stat_t).Ctim; return nil })

	run := func(status int, says string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "kernelgate", args...)
		cmd.Env = append(os.Environ(), "TMPDIR=/tmp")
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != status || !strings.Contains(string(out), says) {
			t.Errorf("%v: status %d\n%s", args, got, out)
		}
	}
	run(0, "Nothing was deleted", "gc", "--data", data, "--dry-run")
	config := filepath.Join(t.TempDir(), "kernelgate.yaml")
	secrets := filepath.Join(filepath.Dir(config), "secret")
	if err := errors.Join(os.WriteFile(config, []byte("data: "+data+"\nlisten: 127.0.0.1:0\ngithub: {token_file: "+secrets+", webhook_secret_file: "+secrets+", repositories: [a/b]}\nrunner: {local: false}\n"), 0o600),
		os.WriteFile(secrets, []byte("a-long-secret-of-the-test"), 0o600)); err != nil {
		t.Fatal(err)
	}
	run(exitInput, "belongs to user 61234", "serve", "--config", config, "--accept-loss")
	walk(func(path string, info fs.FileInfo) error {
		if was, ok := times[path]; !ok || was != info.Sys().(*syscall.Stat_t).Ctim {
			t.Errorf("%s is new or was changed", path)
		}
		return nil
	})

	run(0, "Deleted 0 artifacts", "gc", "--data", data)
	walk(func(path string, info fs.FileInfo) error {
		if is := info.Sys().(*syscall.Stat_t); is.Uid != bot || is.Gid != bot {
			t.Errorf("%s belongs to %d:%d", path, is.Uid, is.Gid)
		}
		return nil
	})
}
