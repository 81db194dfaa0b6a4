package cuda

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/worker"
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
	p, err := shell(t, "sleep 1000 & echo \"{\\\"progress\\\":\\\"$!\\\"}\" >&3; wait").spawn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var said worker.Reply
	if err := json.NewDecoder(p.answers).Decode(&said); err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(said.Progress)
	if err != nil {
		t.Fatal(err)
	}
	end, err := unix.PidfdOpen(child, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(end)
	cancel()
	p.wait()
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(end), Events: unix.POLLIN}}, 10_000); n != 1 {
		t.Errorf("what the worker has started lives on (%v)", err)
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
