package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

// A runner whose self-test failed, or that finds its GPU faulty, gets no job and is told to test itself; the self-test that it
// passes returns it, whatever it was in quarantine for. What an operator has drained stays so.
func TestUnfitRunner(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		unfit func(w *world) protocol.Health // how it comes into quarantine, and what it says of itself
		why   string
	}{
		"a failed self-test": {func(*world) protocol.Health {
			return protocol.Health{At: at, Test: failed(at, "A/A differs by 12 %")}
		}, "its self-test failed: A/A differs by 12 %"},
		"an Xid": {func(*world) protocol.Health {
			return protocol.Health{At: at, Test: passed(at), Unfit: "GPU 0 reported Xid 79 (GPU has fallen off the bus)"}
		}, "GPU 0 reported Xid 79 (GPU has fallen off the bus)"},
		"verdicts": {func(w *world) protocol.Health {
			said := protocol.Health{At: at, Test: passed(at)}
			if err := w.server.recordHealth(w.ctx(), "ann", &said); err != nil {
				w.t.Fatal(err)
			}
			for _, k := range []string{"a", "b", "c"} {
				w.server.Judged(w.ctx(), "ann", k, "the worker died")
			}
			return said
		}, "3 verdicts in a row were its fault, the last on c: the worker died"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, time.Hour)
			w.server.Poll = 10 * time.Millisecond
			said := c.unfit(w)
			w.put("job", "none", "l4")
			for range 2 { // it says the same again
				status, text := w.says("ann", said)
				var answer protocol.LeaseResponse
				if status != http.StatusOK || json.Unmarshal([]byte(text), &answer) != nil || answer.Job != "" || answer.TestNow || answer.Test != "in quarantine: "+c.why {
					t.Fatalf("%d %s", status, text)
				}
				if l, state := w.listed("ann"); state != "quarantined" || l.Quarantined.Why != c.why {
					t.Errorf("%s: %+v", state, l.Quarantined)
				}
			}
			said.Test, said.Unfit = failed(at.Add(time.Minute), "again"), ""
			if _, text := w.says("ann", said); strings.Contains(text, `"job":"job"`) {
				t.Fatalf("after another failed test: %s", text)
			}
			if l, _ := w.listed("ann"); l.Quarantined == nil || l.Quarantined.Why != c.why {
				t.Errorf("the first reason is gone: %+v", l.Quarantined)
			}
			said.Test = passed(at.Add(time.Hour))
			status, text := w.says("ann", said)
			for range 1000 { // who polls for so short a time may be answered before the job is found
				if status != http.StatusNoContent {
					break
				}
				status, text = w.says("ann", said)
			}
			if status != http.StatusOK || !strings.Contains(text, `"job":"job"`) {
				t.Fatalf("after a passed test: %d %s", status, text)
			}
			if err := w.server.Drain(w.ctx(), "ann", "new driver"); err != nil {
				t.Fatal(err)
			}
			said.Test = passed(at.Add(2 * time.Hour))
			if err := w.server.recordHealth(w.ctx(), "ann", &said); err != nil {
				t.Fatal(err)
			}
			if l, _ := w.listed("ann"); l.Drained == nil {
				t.Error("a self-test has returned what an operator had drained")
			}
		})
	}
}

// An operator's wish for a self-test reaches the runner at once, once, whether or not it takes jobs. A runner that has never
// told of one is not asked.
func TestAskedToTest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	operator, at := w.remote("operator's"), time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	if err := operator.Test(w.ctx(), "ann"); err == nil || !strings.Contains(err.Error(), "409") || !strings.Contains(err.Error(), "has reported no self-test") {
		t.Errorf("a runner that is away: %v", err)
	}
	said := protocol.Health{At: at, Test: passed(at)}
	if err := w.server.recordHealth(w.ctx(), "ann", &said); err != nil {
		t.Fatal(err)
	}
	if err := w.server.Drain(w.ctx(), "ann", "new driver"); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan string, 1)
	go func() {
		_, text := w.says("ann", said)
		waiting <- text
	}()
	for polls := 0; polls == 0; <-time.After(time.Millisecond) {
		w.server.mu.Lock()
		polls = len(w.server.polls)
		w.server.mu.Unlock()
	}
	if err := operator.Test(w.ctx(), "ann"); err != nil {
		t.Fatal(err)
	}
	next(t, waiting, "the end of the poll")
	if _, text := w.says("ann", said); !strings.Contains(text, `"test":"an operator asks for it","test_now":true`) {
		t.Errorf("told %s", text)
	}
	said.Test = passed(at.Add(time.Minute))
	w.server.Poll = 10 * time.Millisecond
	if status, text := w.says("ann", said); status != http.StatusNoContent {
		t.Errorf("after the test: %d %s", status, text)
	}
}

// A runner of an older protocol is served and flagged, one that is too old, or newer than the bot, is refused with what to
// install: as the configuration's fault, which every runner takes for final.
func TestVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	var log bytes.Buffer
	w.server.Log, w.server.Version = slog.New(slog.NewTextHandler(&log, nil)), "kernelgate v9"
	w.server.Poll = 10 * time.Millisecond
	ask := func(number int, version string) (int, string) {
		return w.post("ann's", "lease", protocol.LeaseRequest{Runner: "ann", Labels: []string{"l4"}, Version: version, Protocol: number})
	}
	for _, c := range []struct {
		name, version string
		protocol      int
		status        int
		says          string // the refusal, or what the list says
	}{
		{"as the bot", "kernelgate v9", protocol.Version, http.StatusNoContent, ""},
		{"another build", "kernelgate v8", protocol.Version, http.StatusNoContent, "runs kernelgate v8, the bot kernelgate v9"},
		{"too old", "kernelgate v1", protocol.Oldest - 1, http.StatusForbidden, "kernelgate v1 is too old for this bot: it speaks version 2 of the runners' protocol, and the bot needs 3 or newer. Install kernelgate v9 on the runner's host and start the runner again"},
		{"newer", "kernelgate v10", protocol.Version + 1, http.StatusForbidden, "kernelgate v10 is newer than this bot: it speaks version 4 of the runners' protocol, and the bot supports up to 3. Update the bot first, or install kernelgate v9 on the runner's host"},
	} {
		log.Reset()
		for range 2 {
			status, text := ask(c.protocol, c.version)
			w.expect(c.name, c.status, status, text)
			if c.status == http.StatusForbidden && strings.TrimSpace(text) != c.says {
				t.Errorf("%s is told:\n%s", c.name, text)
			}
		}
		if l, _ := w.listed("ann"); c.status != http.StatusForbidden && l.Outdated != c.says {
			t.Errorf("%s is listed as %q", c.name, l.Outdated)
		}
		if n := strings.Count(log.String(), "a different version from the bot"); c.status != http.StatusForbidden && c.says != "" && n != 1 {
			t.Errorf("%s is told %d times in the log:\n%s", c.name, n, log.String())
		}
	}
	// A later version may speak an older protocol, too.
	if got, want := w.server.outdated(protocol.LeaseRequest{Version: "kernelgate v1", Protocol: 2}), "old: speaks version 2 of the protocol, the bot 3 (install kernelgate v9)"; got != want {
		t.Errorf("an old runner is listed as %q, want %q", got, want)
	}
}

// A runner whose GPU fails the self-test at its start gets nothing of what waits. It tries again by itself, and the first test
// that it passes brings it its job.
func TestSelfTestReturnsARunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	w.stop()
	w.poll = 20 * time.Millisecond
	w.start()
	w.enqueue("l4", "job")
	var mu sync.Mutex
	clock, tests := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC), 0
	stop := w.run("ann", func(ctx context.Context, job runners.Job, _ string, _ runners.Progress) (runners.Measured, error) {
		mu.Lock()
		defer mu.Unlock()
		return runners.Measured{Evidence: &gates.Evidence{Schema: gates.EvidenceSchema, Kernel: job.Manifest.Name, Notes: []string{fmt.Sprint("after ", tests, " tests")}}}, nil
	}, func(c *agent.Config) {
		c.Now = func() time.Time { // a look at the clock takes ten seconds
			mu.Lock()
			defer mu.Unlock()
			clock = clock.Add(10 * time.Second)
			return clock
		}
		c.Look = func(time.Time) (*protocol.GPU, string) { return &protocol.GPU{UUID: "GPU-a"}, "" }
		c.SelfTest = func(context.Context, string) protocol.SelfTest {
			mu.Lock()
			defer mu.Unlock()
			if tests++; tests < 3 {
				return protocol.SelfTest{Kernel: "known_cuda", Why: "A/A"}
			}
			return protocol.SelfTest{Kernel: "known_cuda", Passed: true, Micros: 100}
		}
	})
	got := next(t, w.results.finished, "the result")
	if got.evidence.Fault != "" || len(got.evidence.Notes) != 1 || got.evidence.Notes[0] != "after 3 tests" {
		t.Errorf("%+v", got.evidence)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	l, _ := w.listed("ann")
	var how []bool
	for _, test := range l.Tests {
		how = append(how, test.Passed)
	}
	if !slices.Equal(how, []bool{false, false, true}) || !l.Takes() {
		t.Errorf("its history: %+v", l.Availability)
	}
}
