package trace_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/trace"
	"github.com/kernelgate/kernelgate/bot/trace/tracetest"
	"github.com/kernelgate/kernelgate/gates"
)

var (
	start = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	head  = trace.Head{Change: change.ID{Kind: change.Pull, Repo: 7, Number: 12}, SHA: strings.Repeat("a", 40), Repo: "olga/kernels"}
)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

// TestBotsAgree checks that two bots that know nothing about each other contribute to one trace,
// and that a different head has a different trace.
func TestBotsAgree(t *testing.T) {
	c := tracetest.New(t)
	other := head
	other.SHA = strings.Repeat("b", 40)
	run := change.Run{KernelSpec: change.KernelSpec{Name: "scale"}, Job: "pr-7-12-abc-1", Attempt: 1, Runner: "gpu1", Asked: at(1), Begun: at(2)}
	for i, told := range [][]trace.Span{{{Name: "plan", From: at(0), To: at(1)}}, trace.OfRun(run, nil, at(3), at(4), change.Result{Outcome: gates.Pass})} {
		bot, err := trace.Open(trace.Options{Endpoint: c.URL + "/", Header: http.Header{"X-Key": {"k"}}})
		if err != nil {
			t.Fatal(err)
		}
		bot.Tell(head, told...)
		if i == 1 {
			bot.Concluded(head, at(0.5), at(5), "PASS")
			bot.Tell(other, trace.Span{Name: "plan", From: at(6), To: at(7), Err: errors.New("the token ghp_secret is bad")})
			// A span without a head is dropped.
			bot.Tell(trace.Head{Change: head.Change}, trace.Span{Name: "look", From: at(6), To: at(7)})
		}
		bot.Close()
	}
	spans := c.Spans()
	if len(spans) != 7 {
		t.Fatalf("%d spans came: %v", len(spans), spans)
	}
	byID := map[string]tracetest.Span{}
	for _, s := range spans {
		byID[s.ID] = s
	}
	for _, s := range spans {
		parent := byID[s.Parent].Name
		want := map[string]string{"plan": "change", "run": "change", "queue": "run", "measure": "run", "judge": "run"}[s.Name]
		if s.Trace != head.TraceID().String() {
			if want = ""; s.Name != "plan" || !s.Failed || s.About["error.type"] != "failed" {
				t.Errorf("of another head comes %v", s)
			}
		}
		if parent != want {
			t.Errorf("%s is a part of %q, want %q", s.Name, parent, want)
		}
	}
	if c.Holds([]byte("ghp_secret")) {
		t.Error("an error's text was sent")
	}
	if c.Header("X-Key") != "k" {
		t.Error("the collector got no header")
	}
}

func spanNamed(spans []tracetest.Span, name string) tracetest.Span {
	for _, s := range spans {
		if s.Name == name {
			return s
		}
	}
	return tracetest.Span{}
}

// TestWholeCoversItsParts checks that the change's span includes spans from before the journal saw
// the head.
func TestWholeCoversItsParts(t *testing.T) {
	c := tracetest.New(t)
	bot, err := trace.Open(trace.Options{Endpoint: c.URL})
	if err != nil {
		t.Fatal(err)
	}
	bot.Tell(head, trace.Span{Name: "accept", From: at(0), To: at(3)})
	bot.Concluded(head, at(2), at(9), "none")
	bot.Close()
	if s := spanNamed(c.Spans(), "change"); s.From != uint64(at(0).UnixNano()) || s.To != uint64(at(9).UnixNano()) || s.Parent != "" || s.About["kernelgate.outcome"] != "none" {
		t.Errorf("the whole is %+v", s)
	}
}

// TestCollectorHangs checks that a collector that never answers blocks neither Tell nor Close. If
// one of them waited for it, this test would not end.
func TestCollectorHangs(t *testing.T) {
	over := make(chan struct{})
	asked := make(chan struct{})
	once := sync.OnceFunc(func() { close(asked) })
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { once(); <-over }))
	defer s.Close()
	defer close(over)
	bot, err := trace.Open(trace.Options{Endpoint: s.URL, Every: time.Millisecond, Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	bot.Tell(head, trace.Span{Name: "plan", From: at(0), To: at(1)})
	<-asked
	for range 20_000 { // many times the size of the queue
		bot.Tell(head, trace.Span{Name: "plan", From: at(0), To: at(1)})
	}
	bot.Close()
}

// TestCollectorAway checks that the log has one line each for a collector that is missing, refuses,
// or answers again.
func TestCollectorAway(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	log := &lines{}
	bot, err := trace.Open(trace.Options{Endpoint: "http://" + address + "/a-key-in-the-path", Every: time.Millisecond, Log: slog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		bot.Tell(head, trace.Span{Name: "plan", From: at(0), To: at(1)})
		log.wait(t, 1)
	}
	bot.Close()
	if all := log.all(); len(all) != 1 || !strings.Contains(all[0], "cannot be sent") || strings.Contains(all[0], "a-key-in-the-path") {
		t.Errorf("the log says %q", all)
	}

	log, refuses := &lines{}, make(chan bool, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if <-refuses {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer s.Close()
	if bot, err = trace.Open(trace.Options{Endpoint: s.URL, Every: time.Millisecond, Log: slog.New(log)}); err != nil {
		t.Fatal(err)
	}
	for i, refused := range []bool{true, false} {
		refuses <- refused
		bot.Tell(head, trace.Span{Name: "plan", From: at(0), To: at(1)})
		log.wait(t, i+1)
	}
	bot.Close()
	if all := log.all(); len(all) != 2 || !strings.Contains(all[0], "429") || !strings.Contains(all[1], "sent again") {
		t.Errorf("the log says %q", all)
	}
	if _, err := trace.Open(trace.Options{Endpoint: "collector:4318"}); err == nil || !strings.Contains(err.Error(), "write e.g.") {
		t.Errorf("an address without a scheme: %v", err)
	}
}

// TestNobody checks that a nil Tracer can be used.
func TestNobody(t *testing.T) {
	var bot *trace.Tracer
	bot.Tell(head, trace.Span{Name: "plan"})
	bot.Concluded(head, at(0), at(1), "none")
	bot.Close()
}

// lines records log lines with their attributes.
type lines struct {
	mu   sync.Mutex
	text []string
	news chan struct{}
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *lines) WithGroup(string) slog.Handler            { return l }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	l.text = append(l.text, text)
	if l.news != nil {
		close(l.news)
		l.news = nil
	}
	return nil
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.text...)
}

func (l *lines) wait(t *testing.T, n int) {
	t.Helper()
	for {
		l.mu.Lock()
		if len(l.text) >= n {
			l.mu.Unlock()
			return
		}
		if l.news == nil {
			l.news = make(chan struct{})
		}
		news := l.news
		l.mu.Unlock()
		select {
		case <-news:
		case <-t.Context().Done():
			t.Fatal("the log says nothing")
		}
	}
}

// FuzzRun checks that a runner's evidence is placed within what the bot saw, whatever it contains.
func FuzzRun(f *testing.F) {
	f.Add(int64(0), 1.0, 2.0, int64(3), 1.0, int64(20))
	f.Add(int64(-1e9), math.NaN(), math.Inf(1), int64(-5), -1.0, int64(3))
	f.Add(int64(1<<60), 1e300, 0.0, int64(1<<62), 1e300, int64(-7))
	f.Fuzz(func(t *testing.T, told int64, build, correct float64, round int64, took float64, came int64) {
		e := &gates.Evidence{
			Provenance: gates.Provenance{Time: start.Add(time.Duration(told))}, Candidate: &gates.Build{Seconds: build}, Baseline: &gates.Build{Seconds: took},
			Correctness: &gates.Correctness{Seconds: correct}, Sanitize: &gates.Sanitize{Seconds: took}, Profile: &gates.Profile{Seconds: build},
			Performance: &gates.Performance{Rounds: []gates.Round{{Started: time.Unix(round, 0), Seconds: took}, {Started: at(1), Seconds: took}, {Started: time.Unix(0, round), Seconds: build}}},
		}
		run := change.Run{Job: "pr-7-12-abc-1", Asked: at(-1), Begun: at(0)}
		end := start.Add(time.Duration(came) % time.Hour)
		for _, s := range trace.OfRun(run, e, end, end, change.Result{}) {
			last := end
			if end.Before(at(0)) {
				last = at(0)
			}
			if s.From.Before(at(-1)) || s.From.After(last) || s.To.After(last) {
				t.Errorf("%s lasts from %v to %v, and the bot saw %v to %v", s.Name, s.From, s.To, at(-1), last)
			}
		}
	})
}
