package fleet

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/runners/protocol"
)

// as posts what ann's host says for one of its GPUs.
func (w *world) as(gpu, path string, message any) (int, string) {
	w.t.Helper()
	return w.post("ann's", path, message, protocol.GPUHeader, gpu)
}

// A host with several GPUs is a runner for each: they have jobs at the same time, each its own, and a GPU that is put into
// quarantine leaves the others be. An operator means one of them by its name, and all by the host's.
func TestGPUsOfAHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	w.server.Poll = 10 * time.Millisecond
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	asks := func(gpu, unfit string) string {
		t.Helper()
		status, text := w.as(gpu, "lease", protocol.LeaseRequest{
			Runner: "ann", Labels: []string{"l4"}, Protocol: protocol.Version, Health: &protocol.Health{At: at, Test: passed(at), Unfit: unfit, GPU: &protocol.GPU{UUID: "GPU-" + gpu}},
		})
		var answer protocol.LeaseResponse
		switch {
		case status == http.StatusNoContent:
		case status != http.StatusOK || json.Unmarshal([]byte(text), &answer) != nil:
			t.Fatalf("GPU %s: %d %s", gpu, status, text)
		}
		return answer.Job
	}
	w.put("one", "none", "l4")
	w.put("two", "none", "l4")
	gets := func(gpu string) (job string) {
		for job == "" && t.Context().Err() == nil { // a poll is short, and may end before the queue has looked
			job = asks(gpu, "")
		}
		return job
	}
	if a, b, c := gets("0"), gets("1"), asks("2", ""); a != "one" || b != "two" || c != "" {
		t.Fatalf("they got %q, %q and %q", a, b, c)
	}
	status, text := w.as("1", "jobs/one/beat", protocol.Heartbeat{Token: 1})
	w.expect("another GPU's job", http.StatusConflict, status, text)
	status, text = w.as("0", "jobs/one/beat", protocol.Heartbeat{Token: 1})
	w.expect("its own job", http.StatusOK, status, text)
	var names []string
	for _, r := range w.server.Runners() {
		names = append(names, r.Name+" "+r.Job)
	}
	if want := []string{"ann/0 one", "ann/1 two", "ann/2 ", "bob "}; !slices.Equal(names, want) {
		t.Errorf("listed: %q", names)
	}
	if h := w.state("ann/1").Health; h == nil || h.GPU.UUID != "GPU-1" {
		t.Errorf("the health of the second is %+v", h)
	}

	w.put("three", "none", "l4")
	if got := asks("2", "Xid 79"); got != "" {
		t.Errorf("a GPU with a fault got %s", got)
	}
	for name, want := range map[string]string{"ann/0": "busy", "ann/2": "quarantined"} {
		if _, state := w.listed(name); state != want {
			t.Errorf("%s is %s", name, state)
		}
	}
	operator := w.remote("operator's")
	if err := operator.Drain(w.ctx(), "ann", "new driver"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"ann/0": "draining", "ann/1": "draining", "ann/2": "quarantined"} {
		if l, state := w.listed(name); state != want || l.Drained == nil || w.state(name).Availability.Takes() {
			t.Errorf("%s of a drained host is %s", name, state)
		}
	}
	if got := asks("3", ""); got != "" {
		t.Errorf("a GPU of a drained host got %s", got)
	}
	if err := operator.Return(w.ctx(), "ann"); err != nil {
		t.Fatal(err)
	}
	if l, _ := w.listed("ann/2"); !l.Takes() {
		t.Errorf("of a returned host: %+v", l.Availability)
	}
	if err := operator.Drain(w.ctx(), "ann/3", ""); err != nil {
		t.Fatal(err)
	}
	if got := asks("3", ""); got != "" {
		t.Errorf("a drained GPU got %s", got)
	}
	if got := gets("2"); got != "three" {
		t.Errorf("the GPU beside it got %q", got)
	}

	for _, gpu := range []string{"../1", "1/2", "-1", "1000"} {
		status, text := w.as(gpu, "lease", protocol.LeaseRequest{Protocol: protocol.Version, Runner: "ann", Labels: []string{"l4"}})
		w.expect("GPU "+gpu, http.StatusBadRequest, status, text)
	}
	if err := operator.Drain(w.ctx(), "ann/x", ""); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a GPU that cannot be: %v", err)
	}
}
