package controller_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	measuring "github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
	"github.com/kernelgate/kernelgate/runners/host/subprocess"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

// runnerEnv makes the test binary a runner that works until it is killed.
const runnerEnv = "KERNELGATE_TEST_RUNNER"

// A runnerSetup is a runner in a process of its own.
type runnerSetup struct {
	Name, Label, Dir string
	Servers          []string      // all bots
	Takes            time.Duration // for a measurement
}

func (s runnerSetup) token() string { return token + " " + s.Name }

// runnerMain is for the beginning of TestMain. A runner tells its parent in a line when it begins to measure and when it has ended.
func runnerMain() {
	text, ok := os.LookupEnv(runnerEnv)
	if !ok {
		return
	}
	var s runnerSetup
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = agent.Run(context.Background(), agent.Config{
			Servers: s.Servers, Token: s.token(), Name: s.Name, Labels: []string{s.Label}, StateDir: s.Dir, Host: s.Name, Measure: s.measure,
			Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		})
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func (s runnerSetup) measure(ctx context.Context, job measuring.Job, scratch string, p measuring.Progress) (measuring.Measured, error) {
	fmt.Println("begin", job.Provenance.Head.SHA)
	defer fmt.Println("end")
	select {
	case <-time.After(s.Takes):
	case <-ctx.Done():
		return measuring.Measured{}, context.Cause(ctx)
	}
	return scripted.Runner{}.Measure(ctx, job, scratch, p)
}

// A hand is a runner's process, as the test sees it from outside.
type hand struct {
	runnerSetup
	cmd *exec.Cmd
	log *tail

	mu    sync.Mutex
	live  bool          // it runs, and is not stopped
	at    string        // the head that it measures; "" while it does not
	began time.Time     // with the last one
	idle  time.Duration // as in watch
}

// crew starts runners with the addresses of all bots, each beginning with another.
func (b *bots) crew(all []runnerSetup) (hands []*hand) {
	b.Helper()
	for i, s := range all {
		s.Dir = filepath.Join(b.dir, s.Name)
		for n := range b.all {
			s.Servers = append(s.Servers, "http://"+b.all[(n+i)%len(b.all)].Addr)
		}
		h := &hand{runnerSetup: s, log: &tail{}}
		hands = append(hands, h)
		b.hire(h)
	}
	b.Cleanup(func() {
		for _, h := range hands {
			h.kill()
			if b.Failed() {
				b.Logf("%s: %s", h.Name, h.log)
			}
		}
	})
	return hands
}

// hire starts the process.
func (b *bots) hire(h *hand) {
	b.Helper()
	text, err := json.Marshal(h.runnerSetup)
	b.no(err)
	h.cmd = exec.Command(os.Args[0])
	h.cmd.Env, h.cmd.Stderr = append(os.Environ(), runnerEnv+"="+string(text)), h.log
	words, err := h.cmd.StdoutPipe()
	b.no(err)
	b.no(subprocess.Start(h.cmd, syscall.SIGKILL))
	h.is(func() { h.live = true })
	cmd := h.cmd
	go func() {
		lines := bufio.NewScanner(words)
		for lines.Scan() {
			word, at, _ := strings.Cut(lines.Text(), " ")
			h.is(func() {
				if h.cmd == cmd && (word == "begin" || word == "end") {
					h.at = at
				}
				if word == "begin" {
					h.began = time.Now()
				}
			})
		}
	}()
}

func (h *hand) is(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do()
}

func (h *hand) kill() {
	h.cmd.Process.Kill()
	h.is(func() { h.live, h.at = false, "" })
	h.cmd.Wait()
}

// pause stops the process, and lets it go on.
func (h *hand) pause(on bool) error {
	h.is(func() { h.live = !on })
	if on {
		return h.cmd.Process.Signal(syscall.SIGSTOP)
	}
	return h.cmd.Process.Signal(syscall.SIGCONT)
}

// tail keeps the end of what a process says.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text.Len() > 1<<20 {
		t.text.Next(1 << 19)
	}
	return t.text.Write(p)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	data, _ := io.ReadAll(bytes.NewReader(t.text.Bytes()))
	return string(data[max(0, len(data)-20000):])
}
