package serve_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/bot/store/journal/natstest"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

// The test binary is the local runner too: that is how the server starts it here.
const asRunner = "as-runner"

func TestMain(m *testing.M) {
	natstest.Main()
	botMain()
	if len(os.Args) > 2 && os.Args[1] == asRunner {
		if err := runRunner(os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func runRunner(args []string) error {
	f := flag.NewFlagSet("runner", flag.ContinueOnError)
	server, file, name := f.String("server", "", ""), f.String("token-file", "", ""), f.String("name", "", "")
	labels, state := f.String("labels", "", ""), f.String("state", "", "")
	_, _ = f.String("log-level", "", ""), f.String("log-format", "", "")
	var here measure.Config
	f.Func("toolchain", "", func(path string) error { here.Toolchains = append(here.Toolchains, path); return nil })
	builds := f.Bool("builds", false, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	token, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	// What the test wants to know of this process.
	var fds []string
	for fd := 3; fd < 64; fd++ {
		if to, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && !strings.HasPrefix(to, "anon_inode:") {
			fds = append(fds, to)
		}
	}
	facts := strings.Join(os.Environ(), "\n") + "\n--\n" + strings.Join(fds, "\n")
	if err := os.WriteFile(filepath.Join(os.Getenv("HOME"), "facts"), []byte(facts), 0o600); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c := agent.Config{
		Servers: []string{*server}, Token: string(token), Name: *name, Labels: strings.Split(*labels, ","), StateDir: *state, Measure: here.Measure,
	}
	if *builds {
		c.Measure, c.Build = nil, here.Build
	}
	return agent.Run(ctx, c)
}

const (
	manifest = scripted.Manifest + `shapes:
  mission: {N: 1000}
limits: {N: 1..100000}
secret: {N: 1..500}
`
	policy = `version: 1
devices: [cpu]
gates:
  correctness: {shapes: all, seeds: [0], distributions: [normal], secret_cases: 2, norm_error: "<= 1%"}
rules:
  - name: default
`
	kernel = `void %s(const float *x, float *y, int n) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }` + "\n"
	secret = "a secret that GitHub knows"
)

// testKey is made once: RSA keys are slow to find under the race detector.
var testKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// A world is a GitHub with an App in a repository of one kernel.
type world struct {
	testing.TB
	ctx  context.Context
	hub  *embedded.Server
	app  *embedded.App
	repo *embedded.Repo
	inst *embedded.Installation
	log  *lockedBuffer
}

func newWorld(t testing.TB) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	w := &world{TB: t, ctx: ctx, log: &lockedBuffer{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.log.String())
		}
	})
	var err error
	w.hub, err = embedded.New(embedded.Options{Dir: t.TempDir(), Seed: 7})
	w.no(err)
	t.Cleanup(func() { w.hub.Close() })
	w.repo, err = w.hub.CreateRepo(embedded.RepoOptions{Owner: "olga", Name: "kernels"})
	w.no(err)
	_, err = w.repo.Push("main", map[string]string{
		"kernels/scale/kernel.yaml": manifest, "kernels/scale/scale.c": fmt.Sprintf(kernel, "scale"),
		"kernels/scale/reference.c": fmt.Sprintf(kernel, "reference"), ".github/kernelgate.yaml": policy, "README.md": "Kernels.\n",
	}, "Scale")
	w.no(err)
	key, err := testKey()
	w.no(err)
	w.app, err = w.hub.CreateApp(embedded.AppOptions{Slug: "kernelgate", Key: key})
	w.no(err)
	w.inst, err = w.app.Install(w.repo)
	w.no(err)
	return w
}

func (w *world) no(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// options is a server for this world, without a local runner.
func (w *world) options() serve.Options {
	return optionsFor(serve.GitHub{AppID: w.app.ID(), APIURL: w.hub.URL(), GitURL: w.hub.URL()}, w.app.PrivateKeyPEM(), w.TempDir(), w.log)
}

func optionsFor(github serve.GitHub, key []byte, data string, log io.Writer) serve.Options {
	c := serve.Defaults(func(string) string { return "" })
	c.Data, c.Listen, c.Runner.Local, c.GitHub = data, "127.0.0.1:0", false, github
	return serve.Options{
		Config: c, Secrets: serve.Secrets{PrivateKey: key, Webhooks: [][]byte{[]byte(secret)}},
		Version: "kernelgate test", Stderr: log, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Poll: time.Second, Heartbeat: 50 * time.Millisecond, LeaseFor: 3 * time.Second,
	}
}

// start runs a server until the test, or stop, ends it.
func (w *world) start(o serve.Options) (s *serve.Server, stop func() error) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	s, err := serve.Start(ctx, o)
	if err != nil {
		cancel()
		w.Fatal(err)
	}
	stop = sync.OnceValue(func() error { cancel(); return s.Wait() })
	w.Cleanup(func() {
		if err := stop(); err != nil {
			w.Error(err)
		}
	})
	return s, stop
}

func (w *world) get(url string) (int, string) {
	w.Helper()
	rq, err := http.NewRequestWithContext(w.ctx, http.MethodGet, url, nil)
	w.no(err)
	return w.do(rq)
}

func (w *world) do(rq *http.Request) (int, string) {
	w.Helper()
	resp, err := http.DefaultClient.Do(rq)
	w.no(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	w.no(err)
	return resp.StatusCode, string(body)
}

// propose opens a pull request with one file changed.
func (w *world) propose(file, text string) *embedded.PR {
	w.Helper()
	_, err := w.repo.Push("change", map[string]string{file: text}, "Change")
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Author: "olga", Title: "Change", Head: "change"})
	w.no(err)
	return pr
}

// completed waits for a commit's check.
func (w *world) completed(sha string) embedded.Check {
	w.Helper()
	return w.completedCheck(sha, "kernelgate")
}

func (w *world) completedCheck(sha, name string) embedded.Check {
	w.Helper()
	var c embedded.Check
	w.no(w.hub.WaitFor(w.ctx, func() bool {
		var ok bool
		c, ok = w.repo.Check(sha, name)
		return ok && c.Status == "completed"
	}))
	return c
}

// lockedBuffer is written by a process and read by a test.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
