package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/result"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// past is a journal with its ledger.
type past struct {
	mu     sync.Mutex
	more   chan struct{}
	events []journal.Event
	runs   map[string]ledger.RunRow
}

func newPast() *past { return &past{more: make(chan struct{}), runs: map[string]ledger.RunRow{}} }

// finish appends the end of a run.
func (p *past) finish(row ledger.RunRow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if row.Job == "" {
		row.Job = fmt.Sprint("job", len(p.events)+1)
	}
	p.runs[row.Job] = row
	data, _ := json.Marshal(change.Finished{Job: row.Job}) // it has only strings
	p.events = append(p.events, journal.Event{Seq: uint64(len(p.events) + 1), Run: row.Change.String(), Kind: change.KindOf(change.Finished{}), At: epoch, Data: data})
	close(p.more)
	p.more = make(chan struct{})
}

func (p *past) Follow(ctx context.Context, after uint64, apply func(journal.Event) error) error {
	for {
		p.mu.Lock()
		events, more := p.events[min(after, uint64(len(p.events))):], p.more
		p.mu.Unlock()
		for _, e := range events {
			if err := apply(e); err != nil {
				return err
			}
			after = e.Seq
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *past) CaughtUp(context.Context) error        { return nil }
func (p *past) WaitFor(context.Context, uint64) error { return nil }

func (p *past) Seq() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return uint64(len(p.events))
}

func (p *past) Run(_ context.Context, job string) (ledger.RunRow, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	row, ok := p.runs[job]
	if !ok {
		return row, errors.New("the ledger is broken")
	}
	return row, nil
}

// A got is a received request.
type got struct {
	header http.Header
	body   string
}

// receiver answers with these statuses in turn, then with 200.
func receiver(t *testing.T, statuses ...int) (string, chan got) {
	t.Helper()
	all := make(chan got, 100)
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a partial body will not match
		mu.Lock()
		defer mu.Unlock()
		all <- got{r.Header, string(body)}
		if len(statuses) > 0 {
			w.Header().Set("Location", "http://169.254.169.254/latest/meta-data")
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(statuses[0])
			statuses = statuses[1:]
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/hooks/a-secret-in-the-address", all
}

// teller runs a Teller until the test ends or stop is called.
func teller(t *testing.T, p *past, dir string, hooks ...Hook) (log *bytes.Buffer, pauses chan time.Duration, stop func()) {
	t.Helper()
	log, pauses = &bytes.Buffer{}, make(chan time.Duration, 100)
	tell := &Teller{
		Hooks: hooks, Journal: p, Ledger: p, Dir: dir, Now: func() time.Time { return epoch.Add(time.Hour) },
		Page:  func(repo, job string) string { return "https://gate.example/runs/" + job },
		Pause: func(ctx context.Context, d time.Duration) error { pauses <- d; return ctx.Err() },
		Log:   slog.New(slog.NewTextHandler(log, nil)),
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tell.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return log, pauses, stop
}

var pull = change.ID{Kind: change.Pull, Repo: 1, Number: 7}

func row(id change.ID, o gates.Outcome, r gates.Reason) ledger.RunRow {
	return ledger.RunRow{Change: id, Repo: "org/kernels", Title: "Faster", Kernel: "sdpa", Folder: "kernels/sdpa", Head: strings.Repeat("a", 40), Attempt: 1, Outcome: o, Reason: r,
		Line: string(o) + " sdpa: +20 %", Device: "H200", Phase: change.Done}
}

// from makes a hook start at the beginning of the journal, like a hook that existed before.
func from(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name+".told"), []byte("0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTells(t *testing.T) {
	p, dir := newPast(), t.TempDir()
	secret := []byte("a secret that nobody guesses")
	plainURL, plain := receiver(t)
	slackURL, slack := receiver(t)
	main := change.ID{Kind: change.Push, Repo: 1, SHA: strings.Repeat("b", 40)}
	night := change.ID{Kind: change.Sweep, Repo: 1, SHA: strings.Repeat("b", 40)}
	watched := change.ID{Kind: change.Watch, Repo: 1, SHA: strings.Repeat("b", 40)}
	side := row(pull, gates.Pass, "")
	side.Extra = true
	other := row(pull, gates.Pass, "")
	other.Repo = "org/other"
	for _, r := range []ledger.RunRow{
		row(pull, gates.Pass, ""), side, other, row(main, gates.Pass, ""), row(main, gates.Defer, gates.ReasonTooSlow),
		row(main, gates.Defer, gates.ReasonRegression), row(pull, gates.Defer, gates.ReasonCorrectness),
		row(watched, gates.Defer, gates.ReasonCorrectness), row(night, gates.Pass, ""), row(night, gates.Defer, gates.ReasonRegression),
	} {
		p.finish(r)
	}
	from(t, dir, "plain")
	from(t, dir, "slack")
	teller(t, p, dir, Hook{Name: "plain", URL: plainURL, Secret: secret, Repositories: []string{"ORG/kernels"}}, Hook{Name: "slack", URL: slackURL, Slack: true, On: []string{Regression}})
	var events []string
	for range 4 {
		g := <-plain
		var n News
		if err := json.Unmarshal([]byte(g.body), &n); err != nil {
			t.Fatal(err)
		}
		if g.header.Get(HeaderSignature) != webhook.Sign(secret, []byte(g.body)) || g.header.Get(HeaderEvent) != n.Event || g.header.Get(HeaderDelivery) != n.ID || n.Page != "https://gate.example/runs/"+n.Job {
			t.Errorf("%v %s", g.header, g.body)
		}
		events = append(events, fmt.Sprintf("%s %s %s", n.Event, n.Result.Outcome, n.Result.Reason))
	}
	if want := []string{"verdict PASS ", "regression DEFER regression", "verdict DEFER correctness", "regression DEFER regression"}; !slices.Equal(events, want) {
		t.Errorf("%q was told", events)
	}
	if g := <-slack; g.body != `{"text":":x: DEFER sdpa: +20 % — on the default branch of \u003chttps://gate.example/runs/job6|org/kernels aaaaaaaaaaaa\u003e"}` || g.header.Get(HeaderSignature) != "" {
		t.Errorf("%s", g.body)
	}
}

// TestTriesAgain checks that an unavailable address is retried with growing delays and delays no
// other. An address that refuses is not retried, redirects are not followed, and no address is
// logged.
func TestTriesAgain(t *testing.T) {
	p, dir := newPast(), t.TempDir()
	slowURL, slow := receiver(t, 503, 429, 500)
	refusesURL, refuses := receiver(t, 404)
	leadsURL, leads := receiver(t, 302)
	fineURL, fine := receiver(t)
	log, pauses, stop := func() (*bytes.Buffer, chan time.Duration, func()) {
		for _, name := range []string{"slow", "refuses", "leads", "fine", "gone"} {
			from(t, dir, name)
		}
		p.finish(row(pull, gates.Pass, ""))
		p.finish(row(pull, gates.Defer, gates.ReasonTooSlow))
		return teller(t, p, dir, Hook{Name: "slow", URL: slowURL}, Hook{Name: "refuses", URL: refusesURL}, Hook{Name: "leads", URL: leadsURL}, Hook{Name: "fine", URL: fineURL})
	}()
	var ids []string
	for range 5 {
		ids = append(ids, (<-slow).header.Get(HeaderDelivery))
	}
	if !slices.Equal(ids, []string{"1", "1", "1", "1", "2"}) {
		t.Errorf("it was sent %q", ids)
	}
	for _, c := range []chan got{refuses, leads, fine} {
		for _, want := range []string{"1", "2"} {
			if id := (<-c).header.Get(HeaderDelivery); id != want {
				t.Errorf("it was sent %s, not %s", id, want)
			}
		}
	}
	stop()
	var waits []time.Duration
	for len(pauses) > 0 {
		waits = append(waits, <-pauses)
	}
	if want := []time.Duration{7 * time.Second, 7 * time.Second, 7 * time.Second}; !slices.Equal(waits, want) {
		t.Errorf("it waited %v", waits)
	}
	if text := log.String(); strings.Contains(text, "a-secret") || strings.Contains(text, "127.0.0.1") || !strings.Contains(text, "404") || !strings.Contains(text, "302") {
		t.Errorf("the log says\n%s", text)
	}
}

// TestGivesUp checks that an event that cannot be delivered is given up, and that the next one is
// still sent.
func TestGivesUp(t *testing.T) {
	p, dir := newPast(), t.TempDir()
	server := httptest.NewServer(http.NotFoundHandler())
	gone := server.URL
	server.Close()
	from(t, dir, "gone")
	p.finish(row(pull, gates.Pass, ""))
	log, pauses, stop := teller(t, p, dir, Hook{Name: "gone", URL: gone + "/a-secret"})
	var waits []time.Duration
	for range tries - 1 {
		waits = append(waits, <-pauses)
	}
	if want := []time.Duration{1, 2, 4, 8, 16, 32, 60}; !slices.EqualFunc(waits, want, func(a, b time.Duration) bool { return a == b*time.Second }) {
		t.Errorf("it waited %v", waits)
	}
	p.finish(row(pull, gates.Pass, ""))
	<-pauses // the next event is being sent
	stop()
	if text := log.String(); strings.Contains(text, "a-secret") || !strings.Contains(text, "tries=8") {
		t.Errorf("the log says\n%s", text)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "gone.told")); err != nil || string(text) != "1\n" && string(text) != "2\n" {
		t.Errorf("it remembers %q, %v", text, err)
	}
}

// TestRestart checks that a restart sends once what was not sent, that a new hook receives nothing
// from before, and that events of yesterday are dropped.
func TestRestart(t *testing.T) {
	p, dir := newPast(), t.TempDir()
	url, all := receiver(t)
	p.finish(row(pull, gates.Pass, ""))
	before := &Teller{Ledger: p, Dir: dir, Log: slog.New(slog.DiscardHandler)}
	if seq, err := before.begin(Hook{Name: "team"}); err != nil || seq != 1 {
		t.Fatalf("a new hook begins behind %d, %v", seq, err)
	}
	_, _, stop := teller(t, p, dir, Hook{Name: "team", URL: url})
	p.finish(row(pull, gates.Pass, ""))
	if g := <-all; g.header.Get(HeaderDelivery) != "2" {
		t.Errorf("the first that it hears is %s", g.header.Get(HeaderDelivery))
	}
	stop()
	p.finish(row(pull, gates.Defer, gates.ReasonTooSlow))
	old := row(pull, gates.Pass, "")
	p.finish(old)
	p.events[3].At = epoch.Add(-24 * time.Hour)
	p.finish(row(pull, gates.Error, gates.ReasonRunner))
	_, _, stop = teller(t, p, dir, Hook{Name: "team", URL: url})
	seen := []string{(<-all).header.Get(HeaderDelivery), (<-all).header.Get(HeaderDelivery)}
	if seen[0] == "2" { // an event that was in flight at the stop may arrive twice
		seen = []string{seen[1], (<-all).header.Get(HeaderDelivery)}
	}
	if !slices.Equal(seen, []string{"3", "5"}) {
		t.Errorf("after the restart it hears %q", seen)
	}
	stop()
	// A damaged file, or one from a different journal, is replaced.
	for _, text := range []string{"", "x", "99\n"} {
		if err := os.WriteFile(filepath.Join(dir, "team.told"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		tell := &Teller{Ledger: p, Dir: dir, Log: slog.New(slog.DiscardHandler)}
		if seq, err := tell.begin(Hook{Name: "team"}); err != nil || seq != 5 {
			t.Errorf("%q: it begins behind %d, %v", text, seq, err)
		}
	}
}

// TestStandsBy checks that of several bots the leader sends, and that a new leader sends what may
// not have been sent.
func TestStandsBy(t *testing.T) {
	p, dir := newPast(), t.TempDir()
	url, all := receiver(t)
	from(t, dir, "team")
	p.finish(row(pull, gates.Pass, ""))
	p.finish(row(pull, gates.Error, gates.ReasonRunner))
	p.events[1].At = epoch.Add(time.Hour)
	var leads atomic.Bool
	looked := make(chan struct{}, 100)
	tell := &Teller{
		Hooks: []Hook{{Name: "team", URL: url}}, Journal: p, Ledger: p, Dir: dir, Now: func() time.Time { return epoch.Add(time.Hour + time.Second) },
		Leads: func() bool { looked <- struct{}{}; return leads.Load() },
		Pause: func(ctx context.Context, _ time.Duration) error { <-looked; return ctx.Err() },
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tell.Run(ctx) }()
	for text := ""; text != "1\n"; { // the previous leader has sent the first event
		data, err := os.ReadFile(filepath.Join(dir, "team.told"))
		if err != nil {
			t.Fatal(err)
		}
		text = string(data)
	}
	if len(all) > 0 {
		t.Error("one that stands by has told something")
	}
	leads.Store(true)
	if g := <-all; g.header.Get(HeaderDelivery) != "2" {
		t.Errorf("the one that leads now tells of %s", g.header.Get(HeaderDelivery))
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestSlackStaysText checks that a title cannot create a link in Slack and notifies nobody.
func TestSlackStaysText(t *testing.T) {
	n := &News{Event: Verdict, Repo: "org/kernels", Pull: 7, Title: "<!channel> <https://evil.example|click> &\nx" + strings.Repeat("y", 5000), line: "PASS <@U1>: +1 %", Result: &result.Result{Outcome: gates.Pass}, Page: "https://gate.example/runs/1"}
	text := n.slack()
	if strings.Count(text, "<") != 1 || strings.Count(text, ">") != 1 || strings.Contains(text, "\n") || len(text) > 3000 || !strings.Contains(text, "<https://gate.example/runs/1|org/kernels #7>") {
		t.Errorf("%s", text)
	}
}
