package serve_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/notify"
	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/internal/runnable"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

// TestLocalRunner: the server's own runner is a process that knows nothing of the
// bot's, takes a job, is started again when it dies, and ends with the server. Whoever
// is to be told hears of the verdict.
func TestLocalRunner(t *testing.T) {
	t.Setenv("KERNELGATE_GITHUB_TOKEN", "must stay here")
	w := newWorld(t)
	o := w.options()
	o.Runner.Local, o.Runner.Labels = true, []string{"cpu"}
	o.Program, o.RunnerEnv = []string{os.Args[0], asRunner}, []string{"WITH=this too"}
	told := make(chan string, 10)
	chat := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what did not come is not what was sent
		told <- r.Header.Get(notify.HeaderEvent) + " " + r.Header.Get(notify.HeaderSignature) + " " + string(body)
	}))
	t.Cleanup(chat.Close)
	o.Notify = []serve.Notify{{Name: "team"}}
	o.Secrets.Notify = map[string]serve.NotifySecret{"team": {URL: chat.URL, Secret: []byte("sixteen or more of them")}}
	s, stop := w.start(o)
	w.no(s.Ready(w.ctx))
	w.app.SetHook(s.URL()+"/webhook", secret)
	pr := w.propose("kernels/scale/scale.c", "this is no C\n")
	c := w.completed(pr.HeadSHA())
	if c.Conclusion != "failure" {
		t.Errorf("the check concludes %s %q", c.Conclusion, c.Title)
	}
	if support := sandbox.Probe(); support.Works() && !strings.Contains(strings.ToLower(c.Title), "build") {
		t.Errorf("the check's title is %q", c.Title)
	}
	if news := <-told; !strings.HasPrefix(news, "verdict sha256=") || !strings.Contains(news, `"repository":"olga/kernels"`) || !strings.Contains(news, `"outcome":"`) {
		t.Errorf("the team hears %s", news)
	}
	facts, err := os.ReadFile(filepath.Join(o.Data, "runner", "home", "facts"))
	w.no(err)
	env, fds, _ := strings.Cut(string(facts), "\n--\n")
	if strings.Contains(env, "KERNELGATE_") || strings.Contains(env, "must stay here") {
		t.Errorf("the runner's environment has the bot's secrets:\n%s", env)
	}
	if !strings.Contains(env, "WITH=this too") {
		t.Errorf("the runner's environment lacks what was added:\n%s", env)
	}
	// The Go runtime opens some of its own before main.
	for fd := range strings.Lines(fds) {
		if strings.HasPrefix(fd, "socket:") || strings.HasPrefix(fd, "pipe:") || strings.HasPrefix(fd, o.Data) {
			t.Errorf("the runner inherited %s", fd)
		}
	}
	pid := w.runnerPID()
	w.no(syscall.Kill(pid, syscall.SIGKILL))
	for w.runnerPID() == pid {
		w.no(w.ctx.Err())
	}
	pid = w.runnerPID()
	w.no(stop())
	if err := syscall.Kill(pid, 0); err == nil {
		t.Errorf("the runner %d is still there", pid)
	}
}

// TestLocalToolchains: a compiler that only the configuration names is the one that the server's own runner compiles with, where a
// policy pins it. It is a runner that compiles, so that there is a verdict without a GPU.
func TestLocalToolchains(t *testing.T) {
	if support := sandbox.Probe(); !support.Works() {
		t.Skip(support)
	}
	t.Parallel()
	w := newWorld(t)
	toolkit := filepath.Join(t.TempDir(), "cuda-12.9")
	w.no(os.MkdirAll(filepath.Join(toolkit, "bin"), 0o755))
	// It says its version, and refuses what it is given.
	w.no(runnable.Write(filepath.Join(toolkit, "bin", "nvcc"), []byte(`#!/bin/sh
[ "$1" = --version ] && echo "Cuda compilation tools, release 12.9, V12.9.41" && exit 0
echo 'twice.cu(1): error: the compiler of the configuration was here'
exit 2
`)))
	file := filepath.Join(t.TempDir(), "kernelgate.yaml")
	w.no(os.WriteFile(file, []byte("github: {app_id: 7, private_key_file: key, webhook_secret_file: secret}\nrunner: {builds: true, toolchains: ["+toolkit+"]}\n"), 0o600))
	read, err := serve.Load(serve.Sources{File: file, Getenv: func(string) string { return "" }})
	w.no(err)
	o := w.options()
	o.Runner = read.Runner
	o.Program = []string{os.Args[0], asRunner}
	_, err = w.repo.Push("main", map[string]string{
		".github/kernelgate.yaml": "version: 1\ndevices: [gpu]\ntoolchains:\n  nvcc: {version: 12.9.41}\ngates:\n  correctness: {shapes: all, seeds: [0], norm_error: \"<= 1%\"}\nrules: [{name: default}]\n",
	}, "Pin nvcc")
	w.no(err)
	s, _ := w.start(o)
	w.app.SetHook(s.URL()+"/webhook", secret)
	_, err = w.repo.Push("change", map[string]string{
		"kernels/twice/kernel.yaml": strings.NewReplacer("name: scale", "name: twice", "mode: cpu", "mode: cuda\narch: [sm_89]\nlaunch: {grid: [1], block: [32]}", "entry: scale", "entry: twice", "scale.c", "twice.cu",
			"reference: {source: reference.c, entry: reference}", "reference: {source: reference.cu, entry: reference, launch: {grid: [1], block: [32]}}").Replace(manifest),
		"kernels/twice/twice.cu": "// nothing\n", "kernels/twice/reference.cu": "// nothing\n",
	}, "Change")
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Author: "olga", Title: "Change", Head: "change"})
	w.no(err)
	c := w.completed(pr.HeadSHA())
	if !strings.Contains(c.Title, "DEFER (build)") || !strings.Contains(c.Title, "the compiler of the configuration was here") {
		t.Errorf("the check says %q\n%s", c.Title, c.Summary)
	}
}

// TestRemoteRunner: a runner with a token of its own connects over HTTP.
func TestRemoteRunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options()
	o.Config.Runners = []serve.RemoteRunner{{Name: "gpu1", Labels: []string{"l4"}}}
	o.Secrets.Runners = map[string]string{"gpu1": "a token of sixteen or more"}
	s, _ := w.start(o)
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- agent.Run(ctx, agent.Config{
			Servers: []string{s.URL()}, Token: o.Secrets.Runners["gpu1"], Name: "gpu1", Labels: []string{"l4"}, StateDir: t.TempDir(), Measure: measure.Config{}.Measure,
		})
	}()
	for w.figures(s)[`kernelgate_runner_connected{runner="gpu1"}`] == 0 {
		w.no(w.ctx.Err())
	}
	cancel()
	w.no(<-ended)
}

var startedLine = regexp.MustCompile(`started the local runner" pid=([0-9]+)`)

// runnerPID is the local runner that was started last.
func (w *world) runnerPID() int {
	w.Helper()
	all := startedLine.FindAllStringSubmatch(w.log.String(), -1)
	if len(all) == 0 {
		w.Fatal("no runner was started")
	}
	pid, err := strconv.Atoi(all[len(all)-1][1])
	w.no(err)
	return pid
}
