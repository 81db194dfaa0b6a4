package try

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/bot/local/localtest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
)

// TestMain lets the test's program act as the runner, because the bot starts its own program as the
// runner.
func TestMain(m *testing.M) {
	localtest.RunnerMain(measured)
	if len(os.Args) == 3 && os.Args[1] == "try" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		_, err := Run(ctx, options(os.Stdout, Options{Dir: os.Args[2]}))
		fmt.Fprintln(os.Stdout, "ended:", err)
		return
	}
	os.Exit(m.Run())
}

// options sets the options that all tests share.
func options(out io.Writer, opt Options) Options {
	opt.Devices, opt.Version, opt.Seed, opt.Now, opt.Getenv, opt.Out, opt.Live = []string{"cpu"}, "kernelgate test", 7, time.Now, os.Getenv, out, silent{}
	return opt
}

// measured measures on this machine's CPU. If the test has made a pipe, the runner waits until the
// test opens it for writing, and then until it is stopped.
func measured(ctx context.Context, job runners.Job, dir string, p runners.Progress) (runners.Measured, error) {
	if f, err := os.Open(filepath.Join(os.TempDir(), "hold")); err == nil {
		f.Close()
		<-ctx.Done()
		return runners.Measured{}, ctx.Err()
	}
	return measure.Config{Name: "local"}.Measure(ctx, job, dir, p)
}

// testKey is generated once, because generating RSA keys is slow under the race detector.
var testKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// A repository is a user's repository with a work tree.
type repository struct {
	*testing.T
	dir string
}

// newRepository creates a repository with one commit on main.
func newRepository(t *testing.T, files map[string]string) *repository {
	t.Helper()
	r := &repository{t, filepath.Join(t.TempDir(), "my kernels")}
	r.no(os.Mkdir(r.dir, 0o755))
	r.git("init", "--quiet", "--initial-branch=main")
	r.commit("A kernel", files)
	return r
}

func (r *repository) no(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// git runs without this machine's configuration.
func (r *repository) git(args ...string) string {
	r.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.com"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *repository) commit(message string, files map[string]string) {
	r.Helper()
	for name, text := range files {
		file := filepath.Join(r.dir, name)
		r.no(errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)))
	}
	r.git("add", "--all")
	r.git("commit", "--quiet", "--allow-empty", "--message", message)
}

// branch commits a source of the kernel to a branch, and returns to main.
func (r *repository) branch(name, message, source string) {
	r.Helper()
	r.git("switch", "--quiet", "--create", name, "main")
	r.commit(message, map[string]string{localtest.SmallSource: source})
	r.git("switch", "--quiet", "main")
}

// state returns the content of every file of the repository, including git's files.
func (r *repository) state() map[string]string {
	r.Helper()
	all := map[string]string{}
	r.no(filepath.WalkDir(r.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	}))
	return all
}

// An audience records what the terminal shows, and acts when a certain line appears.
type audience struct {
	mu   sync.Mutex
	text bytes.Buffer
	on   map[string]func(all string) // by a part of the line; each acts once
}

func (a *audience) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text.Write(p)
	for words, act := range a.on {
		if strings.Contains(string(p), words) {
			delete(a.on, words)
			go act(a.text.String()) // it may be slow
		}
	}
	return len(p), nil
}

func (a *audience) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text.String()
}

type silent struct{}

func (silent) Report(runners.Event) {}
func (silent) Clear()               {}

// run tries a repository in a temporary folder, and checks that nothing is left there.
func run(t *testing.T, ctx context.Context, out *audience, opt Options) (passed bool, err error) {
	t.Helper()
	tmp := os.Getenv("TMPDIR")
	key, err := testKey()
	if err != nil {
		t.Fatal(err)
	}
	opt = options(out, opt)
	opt.key = key
	passed, err = Run(ctx, opt)
	left(t, tmp)
	// The bot's git readers idle for a moment, or end with the program.
	for pid, command := range processesOf(t, tmp) {
		if strings.Contains(command, " runner ") {
			t.Errorf("still running: %d %s", pid, command)
		}
	}
	return passed, err
}

// left checks that no folders are left behind.
func left(t *testing.T, tmp string) {
	t.Helper()
	if found, err := filepath.Glob(filepath.Join(tmp, "kernelgate-*")); err != nil || len(found) > 0 {
		t.Errorf("left behind: %v, %v", found, err)
	}
}

// processesOf returns the processes with a folder in their command line. The runner's state is
// there.
func processesOf(t *testing.T, folder string) map[int]string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && bytes.Contains(text, []byte(folder)) {
			found[pid] = strings.ReplaceAll(string(text), "\x00", " ")
		}
	}
	return found
}

// gone waits for processes to end.
func gone(t *testing.T, all map[int]string) {
	t.Helper()
	for pid, command := range all {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has already ended
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 30_000)
		if unix.Close(fd); n != 1 {
			t.Errorf("still running: %d %s (%v)", pid, command, err)
		}
	}
}
