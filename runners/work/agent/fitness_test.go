package agent

import (
	"context"
	"errors"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// A host is what a runner checks and tests, with its own clock.
type host struct {
	mu    sync.Mutex
	now   time.Time
	tests int
	looks int
	fails string // why a self-test fails; "" passes
	unfit string // what a check finds
}

func (h *host) set(change func(*host)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

func (h *host) pass(d time.Duration) { h.set(func(h *host) { h.now = h.now.Add(d) }) }

func (h *host) counts() (tests, looks int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tests, h.looks
}

func (h *host) on(c *Config) {
	c.Now = func() time.Time {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.now
	}
	c.Look = func(now time.Time) (*protocol.GPU, string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.looks++
		return &protocol.GPU{UUID: "GPU-a", Celsius: h.looks}, h.unfit
	}
	c.SelfTest = func(_ context.Context, scratch string) protocol.SelfTest {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.tests++
		if _, err := os.Stat(scratch); err != nil {
			return protocol.SelfTest{Why: err.Error()}
		}
		return protocol.SelfTest{Passed: h.fails == "", Why: h.fails, Micros: 100}
	}
}

// TestWhenARunnerTestsItself checks that a runner tests its host before it asks for its first job,
// once a day while it is idle, a little later if jobs never pause, when the server asks for it,
// less and less often, and at once if a person asks for it.
func TestWhenARunnerTestsItself(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	h := &host{now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
	c := f.config()
	h.on(&c)
	stop, _ := f.run(c)
	job := uint64(0)
	told, now := protocol.LeaseResponse{Test: "in quarantine: bad"}, protocol.LeaseResponse{Test: "asked", TestNow: true}
	none, work := protocol.LeaseResponse{}, protocol.LeaseResponse{Job: "x"}
	if first := next(t, f.asked, "the first question"); first.Health == nil || first.Health.Test == nil || !first.Health.Test.Passed || first.Protocol != protocol.Version {
		t.Fatalf("it asks for jobs before it was tested: %+v", first.Health)
	}
	want := 1
	for i, s := range []struct {
		name   string
		answer protocol.LeaseResponse
		later  time.Duration
		fails  string
		tests  int
	}{
		{"nothing to do", none, time.Hour, "", 0},
		{"not yet a day", none, 22 * time.Hour, "", 0},
		{"a day", none, time.Hour, "", 1},
		{"right after", none, 0, "", 0},
		{"a busy day", work, 24 * time.Hour, "", 0},
		{"still busy", work, time.Hour, "", 0},
		{"busy for too long", work, time.Hour, "", 1},
		{"told", told, 0, "A/A", 1},
		{"told again at once", told, 0, "A/A", 0},
		{"told a minute later", told, time.Minute, "A/A", 1},
		{"told a minute after that", told, time.Minute, "A/A", 0},
		{"and another", told, time.Minute, "A/A", 1},
		{"asked for", now, 0, "", 1},
		{"asked for again", now, 0, "", 1},
		{"told again in the same day", told, time.Minute, "", 0},
		{"a day later", told, 24 * time.Hour, "A/A", 1},
		{"a minute later it begins anew", told, time.Minute, "", 1},
	} {
		h.set(func(h *host) { h.fails = s.fails })
		if s.answer.Job != "" {
			job++
			f.hand("job", job)
			if r, _ := f.result(); r.Token != job {
				t.Errorf("%s: the result of %d", s.name, r.Token)
			}
			// The next request is on its way or has arrived. The following takes effect after the
			// next answer.
			next(t, f.asked, "the question after the job")
			h.pass(s.later)
			job++
			f.hand("job", job)
			f.result()
		} else {
			h.pass(s.later)
			f.jobs <- s.answer
		}
		r := next(t, f.asked, "the question after "+s.name)
		want += s.tests
		if got, _ := h.counts(); got != want {
			t.Fatalf("%d %s: %d tests, want %d", i, s.name, got, want)
		}
		if s.tests > 0 && (r.Health.Test.Passed != (s.fails == "") || r.Health.Test.Why != s.fails) {
			t.Errorf("%s: it tells of %+v", s.name, r.Health.Test)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestLooks checks that a problem that a check finds is reported until a self-test passes, and that
// no self-test passes while the problem persists. A running job has checks as well.
func TestLooks(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	h := &host{now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
	c := f.config()
	h.on(&c)
	begun, end := make(chan struct{}), make(chan struct{})
	c.Measure = func(ctx context.Context, j runners.Job, s string, p runners.Progress) (runners.Measured, error) {
		close(begun)
		<-end
		return quick(ctx, j, s, p)
	}
	stop, _ := f.run(c)
	told := protocol.LeaseResponse{Test: "asked", TestNow: true}
	says := func(what string) *protocol.Health { t.Helper(); return next(t, f.asked, what).Health }
	if got := says("the first question"); got.Unfit != "" || got.GPU == nil || got.GPU.UUID != "GPU-a" {
		t.Fatalf("%+v", got)
	}
	_, before := h.counts()
	f.jobs <- protocol.LeaseResponse{}
	says("a question at once")
	if _, looks := h.counts(); looks != before {
		t.Error("it looks more often than it should")
	}
	h.pass(lookEvery)
	h.set(func(h *host) { h.unfit = "Xid 79" })
	f.jobs <- protocol.LeaseResponse{}
	if got := says("a question after half a minute"); got.Unfit != "Xid 79" {
		t.Errorf("%+v", got)
	}
	f.jobs <- told
	if got := says("a question after a test"); got.Test.Passed || got.Test.Why != "Xid 79" || got.Unfit != "Xid 79" {
		t.Errorf("a test beside a fault: %+v", got.Test)
	}
	h.set(func(h *host) { h.unfit = "" })
	h.pass(lookEvery)
	f.jobs <- protocol.LeaseResponse{}
	if got := says("a question after another look"); got.Unfit != "Xid 79" {
		t.Errorf("it has forgotten: %+v", got)
	}
	f.jobs <- told
	if got := says("a question after a passed test"); !got.Test.Passed || got.Unfit != "" {
		t.Errorf("%+v", got)
	}

	f.hand("job", 1)
	next(t, begun, "the measuring")
	if b := next(t, f.beats, "a beat"); b.Health != nil {
		t.Errorf("a beat without news says %+v", b.Health)
	}
	h.set(func(h *host) { h.unfit = "slowed down" })
	h.pass(lookEvery)
	for b := next(t, f.beats, "a beat"); ; b = next(t, f.beats, "a beat with news") {
		if b.Health != nil {
			if b.Health.Unfit != "slowed down" {
				t.Errorf("%+v", b.Health)
			}
			break
		}
	}
	close(end)
	f.result()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestStopsWhileTesting checks that a runner that is stopped during its self-test ends, and that a
// runner that knows nothing about its host reports nothing.
func TestStopsWhileTesting(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.config()
	begun := make(chan struct{})
	c.SelfTest = func(ctx context.Context, _ string) protocol.SelfTest {
		close(begun)
		<-ctx.Done()
		return protocol.SelfTest{Why: "stopped"}
	}
	stop, _ := f.run(c)
	next(t, begun, "the test")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if len(f.asked) != 0 {
		t.Error("it has asked for a job")
	}
	stop, _ = f.run(f.config())
	if ask := next(t, f.asked, "a question"); ask.Health != nil {
		t.Errorf("%+v", ask.Health)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestTooOld checks that a runner that is too old is refused permanently: it does not ask again.
func TestTooOld(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.answer("lease", http.StatusForbidden)
	_, ended := f.run(f.config())
	if err := next(t, ended, "the end"); !errors.Is(err, ErrRefused) {
		t.Errorf("%v", err)
	}
	if n := len(f.asked); n != 1 {
		t.Errorf("it has asked %d times", n)
	}
}
