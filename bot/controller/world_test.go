package controller_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/github/embedded/openapi"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/sweep"
	measuring "github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
)

const (
	manifestYAML = scripted.Manifest + `shapes:
  mission: {N: 1000}
  small: {N: 10}
limits: {N: 1..100000}
secret: {N: 1..500}
`
	policyYAML = `version: 1
devices: [cpu]
gates:
  correctness: {shapes: all, seeds: [0], distributions: [normal], secret_cases: 2, norm_error: "<= 1%"}
  performance:
    target: {shapes: [mission], speedup: ">= +10%"}
    guard: {shapes: all, speedup: ">= -2%"}
    rounds: {min: 6, max: 8}
    interims: [6, 8]
    pairs: 20
    budget: 1h
rules:
  - name: refactoring
    when: {labels: [refactoring]}
    gates:
      performance:
        target: {shapes: [mission], speedup: ">= -2%"}
  - name: default
`
	secret = "a secret that GitHub knows"
	token  = "the runner's token"
)

// patience is how long anything is waited for. A green run never waits that long, however
// much else the machine does.
const patience = 5 * time.Minute

// testKey is made once: RSA keys are slow to find under the race detector.
var testKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// A world is a GitHub with a repository of one kernel, people of all roles, and a
// bot with a runner that reads its measurements from the source.
type world struct {
	testing.TB
	ctx     context.Context
	hub     *embedded.Server
	app     *embedded.App
	repo    *embedded.Repo
	other   *embedded.Repo         // otto's
	inst    *embedded.Installation // otto's
	mine    *embedded.Installation // olga's
	dir     string
	addr    string
	hold    chan struct{}
	running *server
	opt     worldOptions
	groups  int      // of merge queues, that were delivered
	known   []string // commits that golden files may name by short ids alone
}

type worldOptions struct {
	pat      bool // a personal token and statuses in place of an App
	noPolicy bool
	mute     bool // the App may not write into conversations
	limits   embedded.Limits
	log      bool
	beat     time.Duration    // of the runner, where the usual is too fast
	lease    time.Duration    // as in setup
	absent   bool             // as in setup
	quota    scheduler.Limits // of repositories
	sweeps   []sweep.Schedule
	watch    []sweep.Schedule
	judged   func(ctx context.Context, runner, kernel, fault string)
	others   map[string]fleet.Credential // as in setup
	forgets  bool                        // the runner is of a version that has no attempt counted
	patient  bool                        // the bot keeps to GitHub's own limits, in real time
	writes   int                         // as in setup
	watchful bool                        // as in setup
	backoff  time.Duration               // as in setup
	refuse   func(*http.Request) *http.Response
	now      func() time.Time                                                                             // everybody's clock
	look     func(planner.Mirrors) planner.Mirrors                                                        // stands between the bot and what it fetches
	measure  func(context.Context, measuring.Job, string, measuring.Progress) (measuring.Measured, error) // as in setup
	retold   bool                                                                                         // no statement of the controller is reached that no other story reaches
	apart    bool                                                                                         // no bot is started with the world
	lag      bool                                                                                         // GitHub's replicas are behind; see everywhere
	retarget bool                                                                                         // as in embedded.Options
	two      bool                                                                                         // otto has a repository of the same kernel, in an installation of its own
}

// lagged is the test that tells some stories once more with lag. KERNELGATE_LAG=yes tells
// all of them so: make lag-test.
const lagged = "TestLagged"

// everywhere is a lag of everything that has one. It is as long as several of the bot's first
// pauses, and short beside its reconciliation.
var everywhere = embedded.Lag{Commits: 400 * time.Millisecond, Pulls: 300 * time.Millisecond, Refs: 200 * time.Millisecond, Clock: time.Now}

// met is how often bots met a lag.
var met atomic.Int64

func newWorld(t testing.TB, opt worldOptions) *world {
	t.Helper()
	if strings.HasPrefix(t.Name(), lagged+"/") {
		opt.lag, opt.retold = true, true
	}
	opt.lag = opt.lag || os.Getenv("KERNELGATE_LAG") != ""
	if opt.retold && watched {
		t.Skip("the race detector sees in other stories all that this one does; make test runs it without")
	}
	if t, ok := t.(*testing.T); ok {
		t.Parallel() // a world mostly waits
	}
	w := &world{TB: t, ctx: t.Context(), dir: t.TempDir(), hold: make(chan struct{}), opt: opt}
	if opt.limits == (embedded.Limits{}) {
		opt.limits = embedded.Limits{PerHour: -1, ContentPerMinute: -1, ContentPerHour: -1, PointsPerMinute: -1, Concurrent: -1}
	}
	w.addr = w.freeAddress()
	var err error
	hub := embedded.Options{Dir: filepath.Join(w.dir, "hub"), Seed: 7, Limits: opt.limits, Clock: opt.now, RetargetPulls: opt.retarget}
	if opt.lag {
		hub.Lag = everywhere
	}
	w.hub, err = embedded.New(hub)
	w.no(err)
	w.Cleanup(func() { w.hub.Close() })
	w.repo, err = w.hub.CreateRepo(embedded.RepoOptions{Owner: "olga", Name: "kernels"})
	w.no(err)
	for login, role := range map[string]embedded.Role{"walt": embedded.Write, "mara": embedded.Maintain, "rita": embedded.Read, "eve": embedded.None} {
		w.hub.CreateUser(login)
		w.no(w.repo.Grant(login, role))
	}
	files := map[string]string{
		"kernels/scale/kernel.yaml": manifestYAML, "kernels/scale/scale.c": "// speed 1.0\n", "kernels/scale/reference.c": "// the truth\n",
		".github/kernelgate.yaml": policyYAML, "README.md": "Kernels.\n",
	}
	if opt.noPolicy {
		delete(files, ".github/kernelgate.yaml")
	}
	_, err = w.repo.Push("main", files, "Scale")
	w.no(err)
	w.repo.Protect("main", "kernelgate")
	hook := "http://" + w.addr + "/webhook"
	if opt.pat {
		w.repo.CreateHook(hook, secret, "*")
	} else {
		key, err := testKey()
		w.no(err)
		var may map[string]string
		if opt.mute {
			may = map[string]string{"checks": "write", "contents": "read", "issues": "read", "metadata": "read", "pull_requests": "read", "merge_queues": "read", "statuses": "write"}
		}
		w.app, err = w.hub.CreateApp(embedded.AppOptions{Slug: "kernelgate", Key: key, HookURL: hook, HookSecret: secret, Permissions: may})
		w.no(err)
		w.mine, err = w.app.Install(w.repo)
		w.no(err)
	}
	if opt.two {
		w.other, err = w.hub.CreateRepo(embedded.RepoOptions{Owner: "otto", Name: "kernels"})
		w.no(err)
		w.no(w.other.Grant("walt", embedded.Write))
		_, err = w.other.Push("main", files, "Scale")
		w.no(err)
		w.inst, err = w.app.Install(w.other)
		w.no(err)
	}
	if !opt.apart {
		w.start()
		w.Cleanup(func() {
			if w.running != nil { // it could not be started again
				met.Add(w.running.bot.Counts().Unseen)
				w.no(w.running.stop())
			}
		})
	}
	if w.app != nil {
		w.Cleanup(w.checkWebhooks)
	}
	return w
}

// checkWebhooks holds what the bot was sent against GitHub's schemas, if they are here:
// what it follows in tests is what GitHub would send.
func (w *world) checkWebhooks() {
	schemas, err := openapi.ReadSchemas()
	if err != nil {
		return // TestSchemasAreHere says so
	}
	said := map[string]bool{}
	for _, d := range w.app.Hook().Deliveries() {
		wrong, known := schemas.Check(d.Event, d.Payload)
		if !known {
			wrong = []string{": GitHub sends no such event"}
		}
		for _, line := range wrong {
			if line = d.Event + "." + d.Action + line; !said[line] {
				said[line] = true
				w.Error(line)
			}
		}
	}
}

// TestSchemasAreHere fails in CI, where every world's webhooks must be checked.
func TestSchemasAreHere(t *testing.T) {
	t.Parallel()
	openapi.LoadSchemas(t)
}

// A block of ports is one process's own: a bot that is started again must get its port back. They are below those that Linux
// gives to whoever asks for any, and the first is held for as long as the process runs.
type block struct {
	net.Listener
	first int
	given atomic.Int64
}

const blockSize = 500

var ports = sync.OnceValue(func() *block {
	for first := 20000; first < 32000; first += blockSize {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first)); err == nil {
			return &block{Listener: l, first: first}
		}
	}
	panic("all blocks of ports are taken")
})

func (w *world) freeAddress() string {
	w.Helper()
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", ports().first+1+int(ports().given.Add(1))%(blockSize-1))
		if listener, err := net.Listen("tcp", addr); err == nil {
			w.no(listener.Close())
			return addr
		}
	}
	w.Fatal("no port is free")
	return ""
}

func (w *world) no(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// start brings the bot and its runner up on the world's address.
func (w *world) start() {
	w.Helper()
	setup := w.setup()
	log := slog.New(slog.DiscardHandler)
	if w.opt.log {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	var err error
	w.running, err = setup.start(log, w.hold)
	w.no(err)
}

// setup is what a bot needs to know of the world.
func (w *world) setup() setup {
	s := setup{Dir: w.dir, Addr: w.addr, GitHub: w.hub.URL(), Beat: w.opt.beat, Lease: w.opt.lease, Absent: w.opt.absent, Forgetful: w.opt.forgets, Patient: w.opt.patient, Writes: w.opt.writes, Watchful: w.opt.watchful, Backoff: w.opt.backoff, Everywhere: w.opt.two, refuse: w.opt.refuse, now: w.opt.now, limits: w.opt.quota, sweeps: w.opt.sweeps, watch: w.opt.watch, judged: w.opt.judged, others: w.opt.others, look: w.opt.look, measure: w.opt.measure}
	if w.opt.pat {
		w.hub.CreateUser("gatekeeper")
		w.no(w.repo.Grant("gatekeeper", embedded.Write))
		s.PAT = w.hub.CreateToken("gatekeeper")
		return s
	}
	s.App, s.Key = w.app.ID(), w.app.PrivateKeyPEM()
	return s
}

// propose opens a pull request that changes the kernel's source.
func (w *world) propose(branch, source string, opt embedded.PROptions) *embedded.PR {
	w.Helper()
	return w.proposeIn(w.repo, branch, source, opt)
}

func (w *world) proposeIn(repo *embedded.Repo, branch, source string, opt embedded.PROptions) *embedded.PR {
	w.Helper()
	_, err := repo.Push(branch, map[string]string{"kernels/scale/scale.c": source}, branch)
	w.no(err)
	opt.Head = branch
	if opt.Title == "" {
		opt.Title = branch
	}
	if opt.Author == "" {
		opt.Author = "walt"
	}
	pr, err := repo.OpenPR(opt)
	w.no(err)
	return pr
}

// until waits for something to be so on GitHub.
func (w *world) until(what string, cond func() bool) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	if err := w.hub.WaitFor(ctx, cond); err != nil {
		var have []string
		for _, pr := range w.repo.PRs() {
			for _, c := range w.repo.Checks(pr.HeadSHA()) {
				have = append(have, strings.Join([]string{c.Name, c.Status, c.Conclusion, c.Title}, " | "))
			}
			for _, c := range pr.Comments() {
				have = append(have, c.Author+": "+c.Body[:min(len(c.Body), 300)])
			}
		}
		w.Fatalf("waiting for %s: %v\n%s", what, err, strings.Join(have, "\n"))
	}
}

// poll waits for something to be so that GitHub does not show.
func (w *world) poll(what string, cond func() bool) {
	w.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			w.Fatalf("waited in vain for %s", what)
		}
	}
}

// concluded waits for the required check of a commit, and for all that follows
// from it, so that what comes next finds the world the same in every run.
func (w *world) concluded(sha, conclusion string) embedded.Check {
	w.Helper()
	var c embedded.Check
	w.until(conclusion+" at "+sha, func() bool {
		c, _ = w.repo.Check(sha, "kernelgate")
		return c.Status == "completed" && c.Conclusion == conclusion
	})
	w.settle()
	return c
}

// said waits for a comment of the bot that holds a text.
func (w *world) said(pr *embedded.PR, text string) {
	w.Helper()
	w.until("a comment with "+text, func() bool {
		return slices.ContainsFunc(pr.Comments(), func(c embedded.Comment) bool {
			return strings.Contains(c.Author, "kernelgate") && strings.Contains(c.Body, text)
		})
	})
}

func (w *world) comment(pr *embedded.PR, who, text string) embedded.Comment {
	w.Helper()
	c, err := pr.Comment(who, text)
	w.no(err)
	return c
}

// settle waits until the bot has nothing left to do.
func (w *world) settle() {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	var left []change.ID
	for calm := 0; calm < 2; {
		w.no(w.hub.Quiet(ctx))
		calm++
		if !w.running.bot.Idle() {
			calm = 0
		} else {
			list, err := w.running.ledger.Unsettled(ctx)
			if ctx.Err() == nil { // what was left before tells more than the end of patience
				w.no(err)
				left = list
			}
			if len(left) > 0 {
				calm = 0
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.Fatalf("the bot does not come to rest: %v, %+v", left, w.running.bot.Counts())
		}
	}
}
