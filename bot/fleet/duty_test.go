package fleet

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/compat"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/runners/protocol"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

// remote is an operator of this world.
func (w *world) remote(token string) Remote {
	client, base, err := agent.Dial("unix://"+w.socket, "")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(client.CloseIdleConnections)
	return Remote{HTTP: client, Base: base, Token: token}
}

// listed is one runner as the operator sees it.
func (w *world) listed(name string) (Listed, string) {
	w.t.Helper()
	all, err := w.remote("operator's").List(w.ctx())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, l := range all {
		if l.Name == name {
			return l, l.State(time.Now())
		}
	}
	w.t.Fatalf("%s is not in %+v", name, all)
	panic("unreachable")
}

// A runner that is drained goes on with its job, takes no more, before and after a restart of the bot, and takes jobs again
// once it is returned. Whoever waits for a job when it is drained is not given one.
func TestDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	w.enqueue("l4", "first")
	w.lease("ann", "l4", "first", 1)
	if l, state := w.listed("ann"); state != "busy" || l.Job != "first" || l.Kernel != "twice" {
		t.Errorf("%s: %+v", state, l)
	}
	operator := w.remote("operator's")
	for range 2 { // the second time for nothing
		if err := operator.Drain(w.ctx(), "ann", "new driver"); err != nil {
			t.Fatal(err)
		}
	}
	if l, state := w.listed("ann"); state != "draining" || l.Drained.Why != "new driver" || l.Drained.At.IsZero() {
		t.Errorf("%s: %+v", state, l)
	}
	status, answer := w.post("ann's", "jobs/first/result", resultOf(1))
	w.expect("the result of what it had", http.StatusOK, status, answer)
	w.stop()
	w.poll = 300 * time.Millisecond
	w.start()
	w.enqueue("l4", "second")
	asks := func(name string) (int, string) {
		return w.post(name+"'s", "lease", protocol.LeaseRequest{Protocol: protocol.Version, Runner: name, Labels: []string{"l4"}})
	}
	if status, answer = asks("ann"); status != http.StatusNoContent {
		t.Errorf("a drained runner asked: %d %s", status, answer)
	}
	if _, state := w.listed("ann"); state != "drained" {
		t.Errorf("ann is %s", state)
	}
	w.stop()
	w.poll = hang
	w.start()
	if err := w.remote("operator's").Return(w.ctx(), "ann"); err != nil {
		t.Fatal(err)
	}
	w.lease("ann", "l4", "second", 1)

	// A poll that was begun before the drain ends with it.
	over := make(chan int, 1)
	go func() {
		status, _ := asks("bob")
		over <- status
	}()
	for _, state := w.listed("bob"); state != "idle"; _, state = w.listed("bob") {
		if w.ctx().Err() != nil {
			t.Fatal("bob never came")
		}
	}
	if err := w.remote("operator's").Drain(w.ctx(), "bob", ""); err != nil {
		t.Fatal(err)
	}
	w.enqueue("l4", "third")
	if status := next(t, over, "the end of bob's poll"); status != http.StatusNoContent {
		t.Errorf("bob's poll ended with %d", status)
	}
	w.lease("ann", "l4", "third", 1)
}

func TestOperatorsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	for _, token := range []string{"", "ann's", "operator"} {
		if _, err := w.remote(token).List(w.ctx()); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("the token %q: %v", token, err)
		}
	}
	if err := w.remote("operator's").Drain(w.ctx(), "../ann", ""); err == nil || !strings.Contains(err.Error(), "404") || !strings.Contains(err.Error(), "no runner has the name") {
		t.Errorf("a runner that nobody knows: %v", err)
	}
	status, text := w.request("operator's", "POST", "lease", strings.NewReader(`{}`))
	w.expect("the operator as a runner", http.StatusUnauthorized, status, text)
	w.server.Operator = nil
	if _, err := w.remote("").List(w.ctx()); err == nil {
		t.Error("a fleet without an operator lets somebody in")
	}
}

// The list is read by other programs too.
func TestListedAsJSON(t *testing.T) {
	text, err := json.Marshal(Listed{Runner: Runner{Name: "ann", Labels: []string{"l4"}}, Availability: Availability{Drained: &Decision{At: time.Unix(0, 0).UTC(), Why: "w"}}})
	const want = `{"name":"ann","labels":["l4"],"drained":{"at":"1970-01-01T00:00:00Z","why":"w"}}`
	if err != nil || string(text) != want {
		t.Errorf("%s, want %s", text, want)
	}
}

// A runner that is at fault three times in a row is given no more jobs until somebody returns it; a result in between, or a
// kernel that fails everywhere, is no reason.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	judged := func(name string, kernels ...string) {
		for _, k := range kernels {
			fault := "the GPU has fallen off the bus"
			if k == "fine" {
				fault = ""
			}
			w.server.Judged(w.ctx(), name, "o/r "+k, fault)
		}
	}
	judged("ann", "a", "b", "fine", "a", "b") // no three in a row
	judged("bob", "a", "a", "a", "a")         // one kernel
	judged("nobody", "a", "b", "c")
	for _, name := range []string{"ann", "bob"} {
		if l, state := w.listed(name); !l.Takes() {
			t.Errorf("%s is %s: %+v", name, state, l.Quarantined)
		}
	}
	judged("ann", "c")
	l, _ := w.listed("ann")
	const why = "3 verdicts in a row were its fault, the last on o/r c: the GPU has fallen off the bus"
	if l.Takes() || l.Quarantined == nil || l.Quarantined.Why != why {
		t.Fatalf("ann: %+v", l.Quarantined)
	}
	w.put("job", "none", "l4")
	w.stop()
	w.poll = 300 * time.Millisecond
	w.start()
	status, answer := w.post("ann's", "lease", protocol.LeaseRequest{Protocol: protocol.Version, Runner: "ann", Labels: []string{"l4"}})
	w.expect("ann asks", http.StatusNoContent, status, answer)
	if _, state := w.listed("ann"); state != "quarantined" {
		t.Errorf("ann is %s", state)
	}
	w.stop()
	w.poll = hang
	w.start()
	if err := w.remote("operator's").Return(w.ctx(), "ann"); err != nil {
		t.Fatal(err)
	}
	judged("ann", "a", "b")
	w.lease("ann", "l4", "job", 1)
}

// A bot refuses an event about a runner as a whole if a newer bot has stored it with a kind or field that this bot does not
// know. The newer bot may have taken the runner out of service, and then the runner must not get jobs.
func TestUnknownDecisionIsRefused(t *testing.T) {
	from := compat.Writer{Version: "v0.2.0", Reader: "v0.1.0"}
	for name, e := range map[string]journal.Event{
		"kind":  {Seq: 2, Kind: "retired", Data: []byte(`{"why": "old"}`), Writer: from},
		"field": {Seq: 2, Kind: drainedKind, Data: []byte(`{"why": "old", "until": "tomorrow"}`), Writer: from},
	} {
		var d Availability
		if err := d.apply(e); !compat.IsUnknown(err) || d.seq != 0 || d.Drained != nil {
			t.Errorf("an unknown %s: %v, %+v", name, err, d)
		}
	}
}
