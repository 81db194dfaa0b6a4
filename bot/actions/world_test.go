package actions_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/actions"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
)

const (
	manifest = scripted.Manifest + `shapes:
  mission: {N: 1000}
limits: {N: 1..100000}
`
	policyYAML = `version: 1
devices: [cpu]
gates:
  correctness: {shapes: all, seeds: [0], distributions: [normal], norm_error: "<= 1%"}
  performance:
    target: {shapes: [mission], speedup: ">= +10%"}
    rounds: {min: 6, max: 8}
    interims: [6, 8]
    pairs: 6
    budget: 1h
rules:
  - name: refactoring
    when: {labels: [refactoring]}
    gates:
      performance:
        target: {shapes: [mission], speedup: ">= -2%"}
  - name: default
`
)

// testKey is generated once, because generating RSA keys is slow under the race detector.
var testKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

var (
	mayWrite = map[string]string{"checks": "write", "contents": "read", "issues": "write", "metadata": "read", "pull_requests": "write", "statuses": "write"}
	mayRead  = map[string]string{"checks": "read", "contents": "read", "issues": "read", "metadata": "read", "pull_requests": "read", "statuses": "read"}
)

// A world is a GitHub with a repository that has one kernel, and users of all roles. It captures
// events as Actions would pass them to a job.
type world struct {
	*testing.T
	hub     *embedded.Server
	repo    *embedded.Repo
	hook    *embedded.Hook
	token   string
	dir     string
	jobs    int
	report  string            // the workflow's setting for how verdicts are reported
	instead map[string]string // replacements in the payloads of events
	later   atomic.Int64      // seconds by which GitHub's clock is ahead of ours
	measure func(context.Context, runners.Job, string, runners.Progress) (runners.Measured, error)
}

// A job is the result of one run of the program.
type job struct {
	actions.End
	err                  error
	log, summary, output string
}

func newWorld(t *testing.T, files map[string]string, may map[string]string) *world {
	t.Helper()
	t.Parallel()
	w := &world{T: t, dir: t.TempDir(), report: "checks", measure: measureScripted}
	var err error
	w.hub, err = embedded.New(embedded.Options{Dir: filepath.Join(w.dir, "hub"), Seed: 7, RetargetPulls: true, Clock: func() time.Time { return time.Now().Add(time.Duration(w.later.Load()) * time.Second) }})
	w.no(err)
	w.Cleanup(func() { w.hub.Close() })
	w.repo, err = w.hub.CreateRepo(embedded.RepoOptions{Owner: "olga", Name: "kernels"})
	w.no(err)
	for login, role := range map[string]embedded.Role{"walt": embedded.Write, "rita": embedded.Read, "eve": embedded.None} {
		w.hub.CreateUser(login)
		w.no(w.repo.Grant(login, role))
	}
	all := map[string]string{
		"kernels/scale/kernel.yaml": manifest, "kernels/scale/scale.c": "// speed 1.0\n", "kernels/scale/reference.c": "// the truth\n",
		".github/kernelgate.yaml": policyYAML, "README.md": "Kernels.\n",
	}
	for name, text := range files {
		if all[name] = text; text == "" {
			delete(all, name)
		}
	}
	_, err = w.repo.Push("main", all, "Scale")
	w.no(err)
	sink := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusAccepted) }))
	w.Cleanup(sink.Close)
	w.hook = w.repo.CreateHook(sink.URL, "secret", "*")
	w.token = w.tokenOf("github-actions", may)
	return w
}

// tokenOf returns the installation token of an App: of Actions itself, or of an App whose key the
// workflow has.
func (w *world) tokenOf(slug string, may map[string]string) string {
	w.Helper()
	key, err := testKey()
	w.no(err)
	app, err := w.hub.CreateApp(embedded.AppOptions{Slug: slug, Key: key, Permissions: may, Events: []string{"ping"}})
	w.no(err)
	in, err := app.Install(w.repo)
	w.no(err)
	return in.Token()
}

func (w *world) no(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// propose opens a pull request with these files.
func (w *world) propose(branch string, files map[string]string, opt embedded.PROptions) *embedded.PR {
	w.Helper()
	from := w.repo
	if opt.HeadRepo != nil {
		from = opt.HeadRepo
	}
	_, err := from.Push(branch, files, branch)
	w.no(err)
	opt.Head, opt.Title = branch, branch
	if opt.Author == "" {
		opt.Author = "walt"
	}
	pr, err := w.repo.OpenPR(opt)
	w.no(err)
	return pr
}

func source(text string) map[string]string {
	return map[string]string{"kernels/scale/scale.c": "// " + text + "\n"}
}

// act runs the program on the newest event of a kind, in a clone like the one that a workflow's
// checkout makes, which may be old.
func (w *world) act(event string) job { return w.actIn(w.Context(), event, nil) }

// newest returns the newest event of a kind, as GitHub passes it to a workflow.
func (w *world) newest(event string) []byte {
	w.Helper()
	w.no(w.hub.Quiet(w.Context()))
	for _, d := range w.hook.Deliveries() { // newest first
		if d.Event != event {
			continue
		}
		payload := d.Payload
		for was, is := range w.instead {
			payload = bytes.ReplaceAll(payload, []byte(was), []byte(is))
		}
		return payload
	}
	w.Fatalf("nobody sent a %s", event)
	return nil
}

func (w *world) actIn(ctx context.Context, event string, with func(*actions.Config)) job {
	w.Helper()
	payload := w.newest(event)
	w.jobs++
	at := func(name string) string { return filepath.Join(w.dir, strconv.Itoa(w.jobs)+"-"+name) }
	w.no(os.WriteFile(at("event.json"), payload, 0o600))
	tree := filepath.Join(w.dir, "tree")
	if w.jobs == 1 {
		if out, err := exec.CommandContext(ctx, "git", "clone", "--quiet", w.repo.Dir(), tree).CombinedOutput(); err != nil {
			w.Fatalf("git clone: %v: %s", err, out)
		}
	}
	env := map[string]string{
		"GITHUB_EVENT_NAME": event, "GITHUB_EVENT_PATH": at("event.json"), "GITHUB_REPOSITORY": "olga/kernels", "GITHUB_TOKEN": w.token,
		"GITHUB_API_URL": w.hub.URL(), "GITHUB_SERVER_URL": w.hub.URL(), "GITHUB_RUN_ID": strconv.Itoa(76 + w.jobs), "KERNELGATE_REPORT": w.report, "RUNNER_NAME": "lab", "RUNNER_TEMP": w.dir,
		"GITHUB_STEP_SUMMARY": at("summary.md"), "GITHUB_OUTPUT": at("output"),
	}
	var log strings.Builder
	config := actions.Config{
		Getenv: func(name string) string { return env[name] }, Dir: tree, Labels: []string{"cpu"}, Version: "kernelgate test",
		Stdout: &log, Now: time.Now, Random: func() string { return "unguessable" }, Measure: w.measure, Progress: silent{},
	}
	if with != nil {
		with(&config)
	}
	out, err := actions.Run(ctx, config)
	return job{End: out, err: err, log: log.String(), summary: read(at("summary.md")), output: read(at("output"))}
}

func read(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return string(data)
}

// must checks the verdict, reason and exit status of a job.
func (w *world) must(j job, verdict, reason string, exit int) {
	w.Helper()
	if j.err != nil {
		w.Fatalf("%v\n%s", j.err, j.log)
	}
	if string(j.Verdict) != verdict || j.Reason != reason || j.Exit != exit {
		w.Errorf("the job ended with %s (%s) and exit %d, want %s (%s) and exit %d\n%s", j.Verdict, j.Reason, j.Exit, verdict, reason, exit, j.log)
	}
	if want := "verdict=" + verdict + "\nreason=" + reason + "\nresults="; !strings.HasPrefix(j.output, want) {
		w.Errorf("the outputs are %q, want %q…", j.output, want)
	}
}

// check returns the newest check with a name.
func (w *world) check(sha, name, conclusion string) embedded.Check {
	w.Helper()
	c, ok := w.repo.Check(sha, name)
	if !ok || c.Status != "completed" || c.Conclusion != conclusion {
		w.Errorf("check %s is %s %s (%s), want %s", name, c.Status, c.Conclusion, c.Title, conclusion)
	}
	return c
}

func (w *world) holds(text string, parts ...string) {
	w.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			w.Errorf("%q is not in:\n%s", part, text)
		}
	}
}
