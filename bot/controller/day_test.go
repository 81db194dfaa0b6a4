//go:build !race

// The day is one long calculation, ten times as long under the race detector: make test-long
// runs it without. The stories run with it.

package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/jobs"

	"github.com/nats-io/nats-server/v2/server/ats"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/controller"
	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/planner/mirror"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/bundle"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
)

// watched is whether the race detector is at work.
const watched = false

// A day is a busy installation of three repositories on one account, whose limits are
// GitHub's own, in fake time: everything of the bot is within a bubble of
// testing/synctest, GitHub and git are outside and take no time. Webhooks come
// by hand, since a socket that listens would hold the clock.
type day struct {
	*testing.T
	hub        *embedded.Server
	app        *embedded.App
	dir        string
	now        atomic.Int64 // GitHub's clock, set by whoever speaks to it
	do         chan func()  // to be done outside
	done       chan struct{}
	mu         sync.Mutex
	hooks      []*http.Request
	evidence   map[string]time.Time     // by change: when the last of it came
	took       map[string]time.Duration // from there until the required check was concluded
	comments   map[string]time.Duration // and until the comment said so
	writes     []time.Time
	requests   []time.Time
	refused    []string // for a limit's sake
	journal    *journal.Journal
	jobs       *jobs.Queue
	controller *controller.Controller
}

// outside does something with GitHub while no time passes.
func (d *day) outside(do func()) {
	d.now.Store(time.Now().UnixNano())
	d.do <- do
	<-d.done
}

// latency is GitHub's, for each request.
const latency = 300 * time.Millisecond

// RoundTrip is the bot's way to GitHub. No connection stays: one that waits for the next
// request would hold the clock.
func (d *day) RoundTrip(rq *http.Request) (*http.Response, error) {
	time.Sleep(latency)
	d.now.Store(time.Now().UnixNano())
	var text []byte
	if rq.GetBody != nil {
		if body, err := rq.GetBody(); err == nil {
			text, _ = io.ReadAll(body)
		}
	}
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(rq)
	if err != nil {
		return nil, err
	}
	d.note(rq, text, answer)
	return answer, nil
}

var commentMark = regexp.MustCompile(`^<!-- kernelgate:(pr-[0-9]+-[0-9]+) -->`)

func (d *day) note(rq *http.Request, text []byte, answer *http.Response) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if answer.StatusCode == http.StatusTooManyRequests || answer.Header.Get("Retry-After") != "" || answer.Header.Get("X-RateLimit-Remaining") == "0" {
		d.refused = append(d.refused, rq.Method+" "+rq.URL.Path+" "+answer.Status)
	}
	d.requests = append(d.requests, now)
	if rq.Method == http.MethodGet || !strings.Contains(rq.URL.Path, "/repos/") {
		return
	}
	d.writes = append(d.writes, now)
	var body struct {
		Name, Status, Body string
		ExternalID         string `json:"external_id"`
	}
	if json.Unmarshal(text, &body) != nil || answer.StatusCode >= 300 {
		return
	}
	since := func(into map[string]time.Duration, id string) {
		if at, ok := d.evidence[id]; ok {
			into[id] = now.Sub(at)
		}
	}
	if body.Name == "kernelgate" && body.Status == "completed" {
		since(d.took, body.ExternalID)
	}
	if m := commentMark.FindStringSubmatch(body.Body); m != nil && strings.Contains(body.Body, "PASS") {
		since(d.comments, m[1])
	}
}

// most is the largest number of times within a span.
func most(times []time.Time, span time.Duration) (n int) {
	for i, t := range times {
		end, _ := slices.BinarySearchFunc(times, t.Add(span), time.Time.Compare)
		n = max(n, end-i)
	}
	return n
}

func (d *day) no(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// A record is the bot's, as an agent would ask for it.
type record struct {
	bot *controller.Controller
	l   *jobs.Lease
}

func (r record) Begin(ctx context.Context, c runners.Code) (runners.Attempt, error) {
	return r.bot.Begin(ctx, r.l.ID, r.l.Token, c)
}

func (r record) Earlier(ctx context.Context, c runners.Code) (runners.Earlier, error) {
	answer, err := r.bot.Earlier(ctx, r.l.ID, r.l.Token, c)
	if err != nil || len(answer.Evidence) == 0 {
		return runners.Earlier{Again: answer.Again}, err
	}
	e, err := gates.ParseEvidence("the bot's evidence", answer.Evidence)
	return runners.Earlier{Evidence: e, Head: answer.Head, Again: answer.Again}, err
}

// runner measures one job after the other, each for minutes, and says how far it is.
func (d *day) runner(ctx context.Context, name string, takes time.Duration) {
	for {
		l, err := d.jobs.Lease(ctx, name, "cpu")
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = d.measure(ctx, l, fleet.Runner{Name: name, Labels: []string{"cpu"}, Host: name}, takes)
		}
		if err != nil && ctx.Err() == nil {
			d.Errorf("%s: %v", name, err)
			return
		}
	}
}

func (d *day) measure(ctx context.Context, l *jobs.Lease, who fleet.Runner, takes time.Duration) error {
	if err := d.controller.Started(ctx, l.ID, l.Token, who); err != nil {
		return err
	}
	packed, _, err := d.journal.Bundles.Get(ctx, l.Bundle)
	if err != nil {
		return err
	}
	defer packed.Close()
	job, err := bundle.Read(packed, d.TempDir())
	if err != nil {
		return err
	}
	const beat = 5 * time.Second
	for at := time.Duration(0); at < takes; at += beat {
		d.controller.Progress(l.ID, runners.Event{Gate: gates.GatePerformance, Text: "mission", Done: int(at / beat), Total: int(takes / beat), Unit: "rounds"})
		time.Sleep(beat)
		if at%(4*beat) != 0 {
			continue
		}
		if err := l.Extend(ctx); err != nil {
			return err
		}
	}
	job.Record = record{d.controller, l}
	job.Provenance.Time, job.Provenance.Host = time.Now().UTC(), who.Host
	found, err := scripted.Runner{}.Measure(ctx, job, "", nothing{})
	if err != nil {
		return err
	}
	evidence, err := json.Marshal(found.Evidence)
	if err != nil {
		return err
	}
	id, err := change.OfJob(l.ID)
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.evidence[id.String()] = time.Now()
	d.mu.Unlock()
	if err := d.controller.Finished(ctx, l.ID, l.Token, who, evidence, nil, nil); err != nil {
		return err
	}
	return l.Done(ctx)
}

type nothing struct{}

func (nothing) Report(runners.Event) {}

// deliver hands the webhooks that GitHub has sent to the bot, every other second.
func (d *day) deliver(ctx context.Context, h http.Handler) {
	for ctx.Err() == nil {
		d.mu.Lock()
		hooks := d.hooks
		d.hooks = nil
		d.mu.Unlock()
		for _, rq := range hooks {
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, rq.WithContext(ctx))
			if answer.Code >= 300 && ctx.Err() == nil {
				d.Errorf("a webhook was answered with %d", answer.Code)
			}
		}
		time.Sleep(2 * time.Second)
	}
}

// dayEnv makes the test binary the process of a day.
const dayEnv = "KERNELGATE_TEST_DAY"

// TestDay is the busiest hour of one, GitHub's longest limit being by the hour, and until all is measured: 40 pull
// requests, three runners, a repository whose conversations are locked, and one that is archived with its pull requests
// open. Every verdict is told within a minute of its evidence, and no limit of GitHub's is met.
func TestDay(t *testing.T) {
	long.Test(t)
	t.Parallel() // it does one thing after the other
	if os.Getenv(dayEnv) == "" {
		// Timers of its bubble stay in a pool of nats.go, from where they would end the process
		// of another test: it has one of its own.
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDay$", "-test.v")
		cmd.Env = append(os.Environ(), dayEnv+"=1")
		said, err := cmd.CombinedOutput()
		if t.Logf("%s", said); err != nil {
			t.Fatal(err)
		}
		return
	}
	d := &day{T: t, dir: t.TempDir(), do: make(chan func()), done: make(chan struct{}),
		evidence: map[string]time.Time{}, took: map[string]time.Duration{}, comments: map[string]time.Duration{}}
	d.now.Store(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()) // when a bubble's time begins
	go func() {
		for do := range d.do {
			do()
			d.done <- struct{}{}
		}
	}()
	defer close(d.do)
	inbox := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, rq *http.Request) {
		body, err := io.ReadAll(rq.Body)
		copied := httptest.NewRequest(rq.Method, "/webhook", strings.NewReader(string(body)))
		copied.Header = rq.Header.Clone()
		d.mu.Lock()
		defer d.mu.Unlock()
		if err == nil {
			d.hooks = append(d.hooks, copied)
		}
	}))
	defer inbox.Close()
	var err error
	d.hub, err = embedded.New(embedded.Options{Dir: filepath.Join(d.dir, "hub"), Seed: 7, Clock: func() time.Time { return time.Unix(0, d.now.Load()) }})
	d.no(err)
	defer d.hub.Close()
	repos := map[string]*embedded.Repo{}
	for _, name := range []string{"live", "locked", "archived"} {
		repos[name], err = d.hub.CreateRepo(embedded.RepoOptions{Owner: "olga", Name: name})
		d.no(err)
		_, err = repos[name].Push("main", map[string]string{
			"kernels/scale/kernel.yaml": manifestYAML, "kernels/scale/scale.c": "// speed 1.0\n", "kernels/scale/reference.c": "// the truth\n", ".github/kernelgate.yaml": policyYAML,
		}, "Scale")
		d.no(err)
	}
	key, err := testKey()
	d.no(err)
	d.app, err = d.hub.CreateApp(embedded.AppOptions{Slug: "kernelgate", Key: key, HookURL: inbox.URL, HookSecret: secret})
	d.no(err)
	_, err = d.app.Install(repos["live"], repos["locked"], repos["archived"])
	d.no(err)
	// The embedded NATS server keeps one clock for all its stores, which may not be one
	// of the bubble's.
	ats.Register()
	defer ats.Unregister()
	begun := time.Now()
	func() {
		defer func() { // a goroutine of nats.go's object store may wait for a nil channel, for good
			if r := recover(); r != nil && !strings.Contains(fmt.Sprint(r), "blocked goroutines remain") {
				panic(r)
			}
		}()
		synctest.Test(t, func(t *testing.T) {
			d.T = t
			d.run(repos)
		})
	}()
	d.T = t
	d.verdicts(opened, repos["archived"].ID())
	t.Logf("the day in %v", time.Since(begun).Round(time.Millisecond))
}

// run is what happens in the bubble.
func (d *day) run(repos map[string]*embedded.Repo) {
	ctx, cancel := context.WithCancel(d.Context())
	var err error
	d.journal, err = journal.Open(ctx, journal.Options{Dir: filepath.Join(d.dir, "journal")})
	d.no(err)
	d.jobs, err = jobs.Open(ctx, d.journal, jobs.Options{LeaseFor: time.Minute})
	d.no(err)
	l, err := ledger.Open(ctx, filepath.Join(d.dir, "ledger.db"), ledger.Options{})
	d.no(err)
	github, err := client.NewApp(d.app.ID(), d.app.PrivateKeyPEM(), client.Options{BaseURL: d.hub.URL(), GitURL: d.hub.URL(), Transport: d})
	d.no(err)
	d.controller = controller.New(controller.Config{Journal: d.journal, Jobs: d.jobs, Ledger: l, GitHub: github, Planner: &planner.Planner{
		Mirrors: &mirror.Store{Dir: filepath.Join(d.dir, "mirrors"), Origin: github}, Bundles: d.journal.Bundles, Scratch: d.dir, Version: "kernelgate test", Now: time.Now}})
	var all sync.WaitGroup
	work := func(do func() error) {
		all.Go(func() {
			if err := do(); err != nil && ctx.Err() == nil {
				d.Error(err)
			}
		})
	}
	work(func() error { return l.Follow(ctx, d.journal) })
	work(func() error { return d.controller.Run(ctx) })
	all.Go(func() { d.deliver(ctx, &webhook.Handler{Secrets: [][]byte{[]byte(secret)}, Store: d.controller.Store}) })
	for i, takes := range []time.Duration{4 * time.Minute, 5 * time.Minute, 6 * time.Minute} {
		all.Go(func() { d.runner(ctx, fmt.Sprint("runner-", i), takes) })
	}
	d.people(repos)
	cancel()
	all.Wait()
	d.no(l.Close())
	d.jobs.Close()
	d.no(d.journal.Close())
}

// opened is how many pull requests are, in the two repositories that live: 36 within an hour.
const opened = 40

// people open a pull request every 100 seconds, one of four in the repository where
// conversations are locked. Ten more are open in the one that is archived.
func (d *day) people(repos map[string]*embedded.Repo) {
	open := func(repo *embedded.Repo, i int, lock bool) {
		branch := fmt.Sprintf("faster%d", i)
		_, err := repo.Push(branch, map[string]string{"kernels/scale/scale.c": fmt.Sprintf("// speed 1.3%d\n", i)}, branch)
		d.no(err)
		pr, err := repo.OpenPR(embedded.PROptions{Title: branch, Head: branch, Author: "olga"})
		d.no(err)
		if lock {
			d.no(pr.Lock("olga", ""))
		}
	}
	d.outside(func() {
		for i := range 10 {
			open(repos["archived"], i, false)
		}
		repos["archived"].Archive()
	})
	begun := time.Now()
	for i := range opened {
		d.outside(func() {
			if i%4 == 3 {
				open(repos["locked"], i, true)
			} else {
				open(repos["live"], i, false)
			}
		})
		time.Sleep(100 * time.Second)
	}
	time.Sleep(90*time.Minute - time.Since(begun))
}

// verdicts looks back at the day.
func (d *day) verdicts(want int, archived int64) {
	d.Helper()
	var checks, comments []time.Duration
	for id := range d.evidence {
		if strings.HasPrefix(id, fmt.Sprintf("pr-%d-", archived)) {
			continue // begun before the bot heard of it: nobody can be told
		}
		took, ok := d.took[id]
		if !ok || took > time.Minute {
			d.Errorf("the verdict on %s was told after %v (%v)", id, took, ok)
		}
		checks = append(checks, took)
		if said, ok := d.comments[id]; ok {
			comments = append(comments, said)
		}
	}
	slices.Sort(checks)
	slices.Sort(comments)
	if len(checks) != want || len(comments) != want*3/4 {
		d.Errorf("%d verdicts and %d comments for %d pull requests, of which a quarter are locked", len(checks), len(comments), want)
	}
	if len(d.refused) > 0 {
		d.Errorf("%d requests were refused for a limit's sake:\n%s", len(d.refused), strings.Join(d.refused, "\n"))
	}
	d.Logf("%d verdicts, the last check %v after its evidence, the last comment %v; %d requests, at most %d an hour; %d writes, at most %d a minute and %d an hour",
		len(checks), slices.Max(checks), slices.Max(comments), len(d.requests), most(d.requests, time.Hour), len(d.writes), most(d.writes, time.Minute), most(d.writes, time.Hour))
}
