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
	"github.com/kernelgate/kernelgate/runners/measure"
)

// The bot starts its own program as the runner: here that is the test's.
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

// options are those of every test.
func options(out io.Writer, opt Options) Options {
	opt.Devices, opt.Version, opt.Seed, opt.Now, opt.Getenv, opt.Out, opt.Live = []string{"cpu"}, "kernelgate test", 7, time.Now, os.Getenv, out, silent{}
	return opt
}

// measured is of this machine's CPU. Where the test has made a pipe, the runner waits for
// somebody to open it for writing, or for its end.
func measured(ctx context.Context, job runners.Job, dir string, p runners.Progress) (runners.Measured, error) {
	if f, err := os.Open(filepath.Join(os.TempDir(), "hold")); err == nil {
		f.Close()
		<-ctx.Done()
		return runners.Measured{}, ctx.Err()
	}
	return measure.Config{Name: "local"}.Measure(ctx, job, dir, p)
}

// testKey is made once: RSA keys are slow to find under the race detector.
var testKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// A repository is one of a user's, with a work tree.
type repository struct {
	*testing.T
	dir string
}

// newRepository has one commit on main.
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

// git runs apart from this machine's settings.
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

// branch commits a source of the kernel on a branch, and goes back to main.
func (r *repository) branch(name, message, source string) {
	r.Helper()
	r.git("switch", "--quiet", "--create", name, "main")
	r.commit(message, map[string]string{localtest.SmallSource: source})
	r.git("switch", "--quiet", "main")
}

// state is every file of the repository with its content, and all of git's.
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

// An audience sees what a person at the terminal sees, and acts when it comes to a line.
type audience struct {
	mu   sync.Mutex
	text bytes.Buffer
	on   map[string]func(all string) // by what the line holds; each once
}

func (a *audience) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text.Write(p)
	for words, act := range a.on {
		if strings.Contains(string(p), words) {
			delete(a.on, words)
			go act(a.text.String()) // it may take its time
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

// run tries a repository in a temporary folder, in which nothing may be left.
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
	for pid, command := range processesOf(t, tmp) { // the bot's git readers rest a moment, or end with the program
		if strings.Contains(command, " runner ") {
			t.Errorf("still running: %d %s", pid, command)
		}
	}
	return passed, err
}

// left looks for folders that should be gone.
func left(t *testing.T, tmp string) {
	t.Helper()
	if found, err := filepath.Glob(filepath.Join(tmp, "kernelgate-*")); err != nil || len(found) > 0 {
		t.Errorf("left behind: %v, %v", found, err)
	}
}

// processesOf are those with a folder in their command line: the runner has its state there.
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
			continue // it has ended
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 30_000)
		if unix.Close(fd); n != 1 {
			t.Errorf("still running: %d %s (%v)", pid, command, err)
		}
	}
}
