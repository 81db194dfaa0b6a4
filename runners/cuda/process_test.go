package cuda

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/runners/cuda/worker"
)

// shell is a backend whose worker is a script.
func shell(t *testing.T, script string) *Backend {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	return &Backend{config: Config{Program: []string{sh, "-c", script}, LaunchTimeout: time.Minute, Getenv: os.Getenv}}
}

// A worker that was started ahead and whose round never comes ends with its
// context, and so does everything that it has started.
func TestWorkersEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p, err := shell(t, "sleep 1000 & echo \"{\\\"progress\\\":\\\"$!\\\"}\" >&3; wait").spawn(ctx, worker.Request{})
	if err != nil {
		t.Fatal(err)
	}
	group := p.cmd.Process.Pid
	answer := make([]byte, 64)
	if _, err := p.answers.Read(answer); err != nil {
		t.Fatal(err)
	}
	cancel()
	p.wait()
	if err := syscall.Kill(-group, 0); !errors.Is(err, syscall.ESRCH) {
		// The worker's child is a zombie of init's, or about to be; it must not run.
		state, _ := os.ReadFile("/proc/" + strings.Trim(strings.SplitN(string(answer), ":", 2)[1], "\"}\n\x00") + "/stat")
		if fields := strings.Fields(string(state)); len(fields) > 2 && fields[2] != "Z" && fields[2] != "X" {
			t.Errorf("the worker's child lives on: %s", state)
		}
	}
}

// What a worker says and how it ends is told, and one that is held gets its start.
func TestFinish(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"does its work", `read request; read start; [ "$start" = "{}" ] && echo '{"done":true}' >&3`, ""},
		{"says what is wrong", `echo '{"error":"no such kernel"}' >&3`, "no such kernel"},
		{"dies", `echo "no driver" >&2; exit 3`, "the worker died (exit status 3\nit did not finish its answer): no driver"},
		{"talks nonsense", `echo 'hello' >&3`, "reading the worker's answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := shell(t, c.script)
			err := b.start(t.Context(), worker.Request{Hold: true}, func(worker.Reply) {})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
