package fleet

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// A runner hears what is known of the code that it has built, and has its attempt
// counted, however often it must ask.
func TestRecordGoesThrough(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	w.results.known = protocol.PriorEvidence{Evidence: json.RawMessage(`{"schema":"` + gates.EvidenceSchema + `","kernel":"twice"}`), Head: "abc", Again: true}
	w.enqueue("l4", "job-1")
	code := runners.Code{Baseline: "a", Candidate: "b", Compiler: "cc", Device: "d", Arch: "x"}
	w.run("ann", func(ctx context.Context, job runners.Job, _ string, _ runners.Progress) (runners.Measured, error) {
		e := evidence(job)
		was, err := job.Record.Earlier(ctx, code)
		if err != nil || was.Evidence == nil || was.Evidence.Kernel != "twice" || was.Head != "abc" || !was.Again {
			t.Errorf("earlier: %+v, %v", was, err)
		}
		if a, err := job.Record.Begin(ctx, code); a != (runners.Attempt{Number: 2, CodeNumber: 7}) || err != nil {
			t.Errorf("begin: %+v, %v", a, err)
		}
		return runners.Measured{Evidence: e}, nil
	})
	next(t, w.results.finished, "the result")
	if got := strings.Join(w.results.begun, ", "); got != "job-1 1 b, job-1 1 b" {
		t.Errorf("counted %s", got)
	}
}

// A job that nobody wants any more ends when the runner asks about it, without a
// result.
func TestRecordOfACancelledJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	w.enqueue("l4", "job-1")
	stopped := make(chan error, 1)
	w.run("ann", func(ctx context.Context, job runners.Job, _ string, _ runners.Progress) (runners.Measured, error) {
		_, err := job.Record.Earlier(ctx, runners.Code{Candidate: "gone", Device: "d"})
		stopped <- context.Cause(ctx)
		return runners.Measured{}, err
	})
	if err := next(t, stopped, "the end"); err == nil || !strings.Contains(err.Error(), "cancelled") {
		t.Errorf("the job goes on: %v", err)
	}
	if len(w.results.finished) > 0 {
		t.Error("a result was sent")
	}
}

func TestBuiltNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	w.enqueue("l4", "job")
	w.lease("ann", "l4", "job", 1)
	for _, path := range []string{"jobs/job/earlier", "jobs/job/begin"} {
		status, answer := w.post("ann's", path, protocol.BuiltCode{Token: 1})
		w.expect(path, http.StatusBadRequest, status, answer)
	}
}
