package fleet

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/runners/protocol"
)

// says has a runner ask for a job with something to say of its host.
func (w *world) says(name string, h protocol.Health) (status int, answer string) {
	w.t.Helper()
	return w.post(name+"'s", "lease", protocol.LeaseRequest{Runner: name, Labels: []string{"l4"}, Protocol: protocol.Version, Health: &h})
}

// state is what pages see of a runner.
func (w *world) state(name string) RunnerState {
	w.t.Helper()
	for _, r := range w.server.Runners() {
		if r.Name == name {
			return r
		}
	}
	w.t.Fatalf("%s is not listed", name)
	panic("unreachable")
}

func passed(at time.Time) *protocol.SelfTest {
	return &protocol.SelfTest{At: at, Seconds: 2, Passed: true, Kernel: "known", Difference: 0.001, Low: -0.002, High: 0.004, Micros: 120}
}

func failed(at time.Time, why string) *protocol.SelfTest {
	return &protocol.SelfTest{At: at, Why: why, Kernel: "known"}
}

// What a runner says of its host, when it asks for a job and with its beats, is in the list and on the pages. Its self-tests
// are its history: each is written once, and is there after a restart of the bot.
func TestHealth(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	ecc := uint64(0)
	said := protocol.Health{At: at, Test: passed(at), GPU: &protocol.GPU{
		Index: 2, UUID: "GPU-c", Name: "NVIDIA L4", Driver: "580.82.07", SMClock: 2040, MaxSMClock: 2100, MemoryClock: 6251, Celsius: 61, Watts: 71.5,
		Throttled: []string{"sw-power-cap"}, ECCErrors: &ecc, Xids: []protocol.Xid{{At: at, Text: "Xid 31 (GPU memory page fault)"}},
	}}
	w.put("job", "none", "l4")
	if status, answer := w.says("ann", said); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	if diff := cmp.Diff(&said, w.state("ann").Health); diff != "" {
		t.Errorf("as pages see it (-said +seen):\n%s", diff)
	}
	if l, _ := w.listed("ann"); cmp.Diff(&said, l.Health) != "" || len(l.Tests) != 1 || !l.Takes() {
		t.Errorf("as it is listed: %+v", l)
	}
	said.At, said.GPU.Celsius = at.Add(30*time.Second), 72
	status, answer := w.post("ann's", "jobs/job/beat", protocol.Heartbeat{Token: 1, Health: &said})
	w.expect("a beat with news", http.StatusOK, status, answer)
	status, answer = w.post("ann's", "jobs/job/beat", protocol.Heartbeat{Token: 1})
	w.expect("a beat without", http.StatusOK, status, answer)
	if got := w.state("ann").Health.GPU.Celsius; got != 72 {
		t.Errorf("after a beat it has %d degrees", got)
	}
	said.Test = passed(at.Add(time.Hour))
	status, answer = w.post("ann's", "jobs/job/beat", protocol.Heartbeat{Token: 1, Health: &said})
	w.expect("a beat with a test", http.StatusOK, status, answer)
	w.stop()
	w.start()
	l, _ := w.listed("ann")
	if diff := cmp.Diff([]protocol.SelfTest{*passed(at), *passed(at.Add(time.Hour))}, l.Tests); diff != "" {
		t.Errorf("its history after a restart (-want +got):\n%s", diff)
	}
}

// A runner's history and its words are bounded.
func TestHealthIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	long := strings.Repeat("ä", 10000)
	said := protocol.Health{At: at, GPU: &protocol.GPU{Name: long, UUID: "GPU\x1b[2J\n\u202ea", Throttled: make([]string, 1000)}}
	for i := range 100 {
		said.GPU.Xids = append(said.GPU.Xids, protocol.Xid{Text: fmt.Sprint(i)})
	}
	for i := range keptTests + 5 {
		said.Test = passed(at.Add(time.Duration(i) * time.Hour))
		if err := w.server.recordHealth(w.ctx(), "ann", &said); err != nil {
			t.Fatal(err)
		}
	}
	h := w.state("ann").Health
	if n := len([]rune(h.GPU.Name)); n > 501 || len(h.GPU.Throttled) > 16 || len(h.GPU.Xids) != protocol.MaxXids || h.GPU.Xids[0].Text != "92" {
		t.Errorf("%d letters, %d reasons, %v", n, len(h.GPU.Throttled), h.GPU.Xids)
	}
	if h.GPU.UUID != "GPU [2J  a" {
		t.Errorf("a terminal would be told %q", h.GPU.UUID)
	}
	if l, _ := w.listed("ann"); len(l.Tests) != keptTests || !l.Tests[0].At.Equal(at.Add(5*time.Hour)) {
		t.Errorf("%d tests from %v on", len(l.Tests), l.Tests[0].At)
	}
}
