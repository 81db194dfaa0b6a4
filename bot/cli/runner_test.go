package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/jobs"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/runners/backend/gpus"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/protocol"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

// threeGPUs returns a folder with a fake management library that reports two L4 and an H200.
// Nothing can run on them.
func threeGPUs(t *testing.T) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler (cc) to build the fake library with")
	}
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), cc, "-shared", "-fPIC", "-std=c11", "-DFAKE_GPUS=3", `-DFAKE_NAMES={"NVIDIA L4","NVIDIA L4","NVIDIA H200"}`,
		`-DFAKE_UUID="GPU-`+rand.Text()+`-"`, "-o", filepath.Join(dir, "libnvidia-ml.so.1"), "runners/backend/cuda/nvml/testdata/fakenvml.c").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// runnerOf starts the program as a runner of a bot, on a host with that library.
func runnerOf(t *testing.T, ctx context.Context, bot, library string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "kernelgate", append([]string{"runner", "--server", bot, "--token-file", token, "--name", "box", "--state", t.TempDir()}, args...)...)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+library)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	return cmd, &said
}

// nobody receives results, which never come.
type nobody struct{ fleet.Results }

// TestRunnerOfThreeGPUs checks that a host with three GPUs is three runners, each with the label of
// its model. They get no jobs, because they cannot pass the self-test. A second process cannot use
// their GPUs. If a bot needs a newer runner, the runner ends and says what to install.
func TestRunnerOfThreeGPUs(t *testing.T) {
	if _, err := toolchain.FindCUDA(t.Context(), os.Getenv); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	library := threeGPUs(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	j, err := journal.Open(ctx, journal.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	queue, err := jobs.Open(ctx, j, jobs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer queue.Close()
	bot := &fleet.Server{Journal: j, Jobs: queue, Results: nobody{}, Tokens: map[string]fleet.Credential{"box": fleet.NewCredential("secret", "cpu", "gpu", "l4", "h200")}, Version: "kernelgate v9"}
	server := httptest.NewServer(bot.Handler())
	defer server.Close()
	defer server.CloseClientConnections()
	for _, label := range []string{"cpu", "l4", "h200"} {
		if err := queue.Enqueue(ctx, jobs.Job{Job: scheduler.Job{ID: "job-" + label, Labels: []string{label}, Kernel: "k"}, Bundle: "none"}); err != nil {
			t.Fatal(err)
		}
	}
	running, stop := context.WithCancel(ctx)
	cmd, said := runnerOf(t, running, server.URL, library)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	want := map[string]string{"box/0": "cpu gpu l4", "box/1": "gpu l4", "box/2": "gpu h200"}
	for found := 0; found < len(want); {
		select {
		case err := <-ended:
			t.Fatalf("the runner ended: %v\n%s", err, said)
		case <-ctx.Done():
			t.Fatalf("not all of them came: %+v", bot.Runners())
		case <-time.After(10 * time.Millisecond):
		}
		found = 0
		for _, r := range bot.Runners() {
			if r.Health != nil && r.Health.Test != nil && r.Availability.Quarantined != nil {
				found++
			}
		}
	}
	uuids := map[string]bool{}
	for _, r := range bot.Runners() {
		if got := strings.Join(r.Labels, " "); got != want[r.Name] {
			t.Errorf("%s takes %s", r.Name, got)
		}
		if test := r.Health.Test; test.Passed || !strings.Contains(test.Why, "no NVIDIA GPU was found") || test.Kernel != "known_cuda" {
			t.Errorf("%s was tested: %+v", r.Name, test)
		}
		if !strings.HasPrefix(r.Availability.Quarantined.Why, "its self-test failed: ") || r.Job != "" {
			t.Errorf("%s has %q and is in quarantine for %s", r.Name, r.Job, r.Availability.Quarantined.Why)
		}
		uuids[r.Health.GPU.UUID] = true
	}
	if len(uuids) != 3 {
		t.Errorf("the GPUs are %v", uuids)
	}

	beside, said2 := runnerOf(t, ctx, server.URL, library, "--gpus", "1")
	var exit *exec.ExitError
	if err := beside.Run(); !errors.As(err, &exit) || exit.ExitCode() != exitInput || !strings.Contains(said2.String(), "another runner measures on GPU 1 (NVIDIA L4, GPU-") {
		t.Errorf("a second runner: %v\n%s", err, said2)
	}
	stop()
	if err := <-ended; cmd.ProcessState.ExitCode() != exitPass {
		t.Errorf("the runner: %v\n%s", err, said)
	}

	later := &fleet.Server{Journal: j, Jobs: queue, Results: nobody{}, Tokens: bot.Tokens, Version: "kernelgate v9"}
	newer := httptest.NewServer(outdating(t, later.Handler()))
	defer newer.Close()
	old, said3 := runnerOf(t, ctx, newer.URL, library, "--gpus", "2")
	if err := old.Run(); !errors.As(err, &exit) || exit.ExitCode() != exitInput || !strings.Contains(said3.String(), "is too old for this bot") || !strings.Contains(said3.String(), "Install kernelgate v9 on the runner's host") {
		t.Errorf("an old runner: %v\n%s", err, said3)
	}
}

// outdating makes every runner look as if it spoke a protocol that is too old.
func outdating(t *testing.T, bot http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/lease") {
			var ask protocol.LeaseRequest
			if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
				t.Errorf("the request for a lease: %v", err)
			}
			ask.Protocol = protocol.Oldest - 1
			body, err := json.Marshal(ask)
			if err != nil {
				t.Error(err)
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		bot.ServeHTTP(rw, r)
	})
}

// TestWorkers checks that a runner with one GPU has the name of its host, and that with several
// GPUs each runner has its own name, folder and GPU.
func TestWorkers(t *testing.T) {
	all := []gpus.GPU{{Index: 0, UUID: "GPU-a", Name: "NVIDIA L4"}, {Index: 3, UUID: "GPU-b", Name: "NVIDIA H200"}}
	base := agent.Config{StateDir: "/state", Log: newLog(&bytes.Buffer{}, "info", "text")}
	here := measure.Config{Log: base.Log}
	for _, c := range []struct {
		name   string
		gpus   []gpus.GPU
		labels []string
		want   string
	}{
		{"none", nil, nil, "/state  cpu"},
		{"one", all[1:], nil, "/state GPU-b cpu gpu h200"},
		{"two", all, nil, "/state/gpu0 0 GPU-a cpu gpu l4; /state/gpu3 3 GPU-b gpu h200"},
		{"one of two by its label", all, []string{"h200"}, "/state GPU-b h200"},
		{"two without use", all, []string{"cpu"}, "/state  cpu"},
	} {
		base.Labels = c.labels
		var got []string
		for _, w := range workers(base, here, c.gpus) {
			got = append(got, strings.ReplaceAll(strings.Join([]string{w.agent.StateDir, w.agent.GPU, w.here.GPU.UUID, strings.Join(w.agent.Labels, " ")}, " "), "/state  GPU", "/state GPU"))
		}
		if text := strings.ReplaceAll(strings.Join(got, "; "), "   ", "  "); text != c.want {
			t.Errorf("%s: %q, want %q", c.name, text, c.want)
		}
	}
}
