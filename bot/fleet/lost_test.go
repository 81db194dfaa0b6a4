package fleet

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/runners/protocol"
)

// running has the server end lost jobs, until the test does.
func (w *world) running() {
	ctx, cancel := context.WithCancel(w.ctx())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := next(w.t, ended, "the end"); err != nil {
			w.t.Error(err)
		}
	})
}

// beats says what a runner says that is at work.
func (w *world) beats(token string, attempt uint64) {
	w.t.Helper()
	status, answer := w.post(token, "jobs/job/beat", protocol.Heartbeat{Token: attempt})
	w.expect("beat", http.StatusOK, status, answer)
}

// A job that every runner dies of ends as their fault, with what is known of each,
// and nobody gets it a fourth time. Giving it back does not count.
func TestJobThatLosesEveryRunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 150*time.Millisecond)
	w.running()
	w.enqueue("l4", "job")
	w.lease("bob", "l4", "job", 1)
	status, answer := w.post("bob's", "jobs/job/release", protocol.Release{Token: 1})
	w.expect("release", http.StatusOK, status, answer)
	w.lease("ann", "l4", "job", 2)
	w.beats("ann's", 2)
	w.lease("bob", "l4", "job", 3)
	w.beats("bob's", 3)
	// The bot is started again in between.
	fails := errors.New("the disk is full")
	w.results.set(nil, func(act) error { err := fails; fails = nil; return err }) // at first
	w.lease("ann", "l4", "job", 4)
	w.beats("ann's", 4)
	next(t, w.results.finished, "the first try to end it")
	got := next(t, w.results.finished, "its end")
	const time = `\d\d:\d\d:\d\d`
	says := regexp.MustCompile(`^the job has lost its runner 3 times and is not redelivered: ` +
		`ann had the job from ` + time + ` on and was last seen at ` + time + `, bob had the job .*, ann had the job .* UTC \(see the logs of the runners, then rebench\)$`)
	if got.job != "job" || got.token <= 4 || !says.MatchString(got.evidence.Fault) {
		t.Errorf("%+v", got)
	}
	w.all("ann's", "job", 4, http.StatusConflict)
	for w.unfinished() > 0 { // Done comes after the result
		if w.ctx().Err() != nil {
			t.Fatal("the job is still in the queue")
		}
	}
	if len(w.results.finished) != 0 {
		t.Errorf("and once more: %+v", <-w.results.finished)
	}
}

// Either of two runners may take a job of both their labels, and never both; the one
// whose label is wanted more goes first.
func TestJobOfSeveralLabels(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	w.put("wanted", "none", "cpu", "l4")
	w.put("other", "none", "cpu", "l4")
	w.lease("bob", "l4", "wanted", 1)
	w.lease("ann", "cpu", "other", 1)
	w.all("ann's", "wanted", 1, http.StatusConflict)
	status, answer := w.post("bob's", "jobs/wanted/result", resultOf(1))
	w.expect("result", http.StatusOK, status, answer)
	if n := w.unfinished(); n != 1 {
		t.Errorf("%d jobs are left", n)
	}
}
