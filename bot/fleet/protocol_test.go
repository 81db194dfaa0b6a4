package fleet

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/jobs"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

func (w *world) expect(what string, want int, status int, answer string) {
	w.t.Helper()
	if status != want {
		w.t.Errorf("%s: %d %s, want %d", what, status, strings.TrimSpace(answer), want)
	}
}

// all sends everything that a runner may say about a job.
func (w *world) all(token, id string, attempt uint64, want int) {
	w.t.Helper()
	query := fmt.Sprintf("?token=%d", attempt)
	status, answer := w.post(token, "jobs/"+id+"/beat", protocol.Heartbeat{Token: attempt})
	w.expect("beat", want, status, answer)
	status, answer = w.request(token, "GET", "jobs/"+id+"/bundle"+query, nil)
	w.expect("bundle", want, status, answer)
	status, answer = w.request(token, "PUT", "jobs/"+id+"/artifacts/a"+query, strings.NewReader("a"))
	w.expect("artifact", want, status, answer)
	built := protocol.BuiltCode{Token: attempt, Code: runners.Code{Candidate: "c", Device: "d"}}
	status, answer = w.post(token, "jobs/"+id+"/earlier", built)
	w.expect("earlier", want, status, answer)
	status, answer = w.post(token, "jobs/"+id+"/begin", built)
	w.expect("begin", want, status, answer)
	status, answer = w.post(token, "jobs/"+id+"/result", resultOf(attempt))
	w.expect("result", want, status, answer)
	status, answer = w.post(token, "jobs/"+id+"/release", protocol.Release{Token: attempt})
	w.expect("release", want, status, answer)
}

func TestOthersAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	w.enqueue("l4", "job")
	w.lease("ann", "l4", "job", 1)
	w.all("", "job", 1, http.StatusUnauthorized)
	w.all("ann", "job", 1, http.StatusUnauthorized)
	w.all("bob's", "job", 1, http.StatusConflict) // a good token, and the job is ann's
	w.all("ann's", "job", 0, http.StatusConflict)
	w.all("ann's", "job", 2, http.StatusConflict)
	w.all("ann's", "none", 1, http.StatusConflict)
	w.all("ann's", "j.*", 1, http.StatusNotFound)
	if ok, err := w.jobs.Cancel(w.ctx(), "job"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	w.all("ann's", "job", 1, http.StatusGone)
	if len(w.results.finished) != 0 {
		t.Errorf("a result was taken: %+v", <-w.results.finished)
	}
}

func TestDeadRunnersJobGoesToAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 200*time.Millisecond)
	w.enqueue("l4", "job")
	w.lease("ann", "l4", "job", 1) // and is never heard of again, until
	w.lease("bob", "l4", "job", 2)
	w.all("ann's", "job", 1, http.StatusConflict)
	status, answer := w.post("bob's", "jobs/job/result", resultOf(2))
	w.expect("the heir's result", http.StatusOK, status, answer)
	if got := next(t, w.results.finished, "the result"); got.token != 2 || got.by.Name != "bob" || len(w.results.finished) != 0 {
		t.Errorf("%+v, and %d more", got, len(w.results.finished))
	}
	if n := w.unfinished(); n != 0 {
		t.Errorf("%d jobs are left", n)
	}
}

func TestResultTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	w.enqueue("l4", "job")
	w.lease("ann", "l4", "job", 1)
	for range 2 { // the first answer was lost
		status, answer := w.post("ann's", "jobs/job/result", resultOf(1))
		w.expect("result", http.StatusOK, status, answer)
	}
	if n := len(w.results.finished); n != 1 {
		t.Errorf("written down %d times", n)
	}
	status, answer := w.post("ann's", "jobs/job/beat", protocol.Heartbeat{Token: 1})
	w.expect("a beat too late", http.StatusConflict, status, answer)
}

// A crash between writing the result down and taking the job off the queue.
func TestResultAfterACrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	w.enqueue("l4", "job")
	w.lease("ann", "l4", "job", 1)
	w.results.set(nil, func(act) error { return errors.New("the power went") })
	status, answer := w.post("ann's", "jobs/job/result", resultOf(1))
	w.expect("result", http.StatusServiceUnavailable, status, answer)
	if strings.Contains(answer, "power") {
		t.Errorf("the bot's inner life was told: %s", answer)
	}
	w.stop()
	w.results.set(nil, nil)
	w.start()
	status, answer = w.post("ann's", "jobs/job/result", resultOf(1))
	w.expect("result again", http.StatusOK, status, answer)
	if n := len(w.results.finished); n != 2 {
		t.Errorf("told %d times", n)
	}
	if n := w.unfinished(); n != 0 {
		t.Errorf("%d jobs are left", n)
	}
}

// What nobody needs any more leaves the queue, at its start or at its end.
func TestRefusedJobsLeaveTheQueue(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]int{jobs.ErrLeaseLost: http.StatusConflict, jobs.ErrCancelled: http.StatusGone} {
		t.Run(err.Error(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, time.Hour)
			w.results.set(func(a act) error {
				if a.job == "old" {
					return fmt.Errorf("starting: %w", err)
				}
				return nil
			}, func(act) error { return fmt.Errorf("finishing: %w", err) })
			w.enqueue("l4", "old")
			w.enqueue("l4", "job")
			w.lease("ann", "l4", "job", 1)
			status, answer := w.request("ann's", "PUT", "jobs/job/artifacts/a?token=1", strings.NewReader("a"))
			w.expect("artifact", http.StatusOK, status, answer)
			r := resultOf(1)
			r.Artifacts = []string{"a"}
			status, answer = w.post("ann's", "jobs/job/result", r)
			w.expect("result", want, status, answer)
			if n := w.unfinished(); n != 0 {
				t.Errorf("%d jobs are left", n)
			}
			if _, _, err := w.journal.Artifacts.Get(w.ctx(), ArtifactBlob("job", 1, "a")); !errors.Is(err, journal.ErrNotFound) {
				t.Errorf("the refused result's artifact: %v", err)
			}
		})
	}
}

func TestStartThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 90*time.Millisecond) // a third of it passes
	w.enqueue("l4", "job")
	w.results.set(func(act) error { return errors.New("no journal") }, nil)
	status, answer := w.post("ann's", "lease", protocol.LeaseRequest{Protocol: protocol.Version, Runner: "ann", Labels: []string{"l4"}})
	w.expect("lease", http.StatusServiceUnavailable, status, answer)
	w.results.set(nil, nil)
	w.lease("ann", "l4", "job", 2)
}

func TestNothingToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	w.server.Poll = time.Hour
	status, answer := w.post("ann's", "lease", protocol.LeaseRequest{Protocol: protocol.Version, Runner: "ann", Labels: []string{"l4", "cpu"}, Wait: 0.001})
	w.expect("lease of who is in a hurry", http.StatusNoContent, status, answer)
	w.server.Poll = time.Millisecond
	status, answer = w.post("ann's", "lease", protocol.LeaseRequest{Protocol: protocol.Version, Runner: "ann", Labels: []string{"l4", "cpu"}})
	w.expect("lease", http.StatusNoContent, status, answer)
	status, answer = w.post("ann's", "lease", protocol.LeaseRequest{Protocol: protocol.Version, Runner: "ann"})
	w.expect("lease without labels", http.StatusBadRequest, status, answer)
}

// A runner that hangs up while it waits is handed nothing.
func TestHangingUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	w.enqueue("l4", "job")
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	l, err := w.jobs.Lease(w.ctx(), "ann", "l4")
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := w.server.start(w.ctx(), gone, l, Runner{Name: "ann"}); answer != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", answer, err)
	}
	w.lease("bob", "l4", "job", 2)
	if got := next(t, w.results.started, "the start"); got.by.Name != "bob" {
		t.Errorf("started by %+v", got.by)
	}
	w.enqueue("l4", "other")
	if l, err = w.jobs.Lease(w.ctx(), "ann", "l4"); err != nil {
		t.Fatal(err)
	}
	during, hangUp := context.WithCancel(t.Context())
	w.results.set(func(act) error { hangUp(); return nil }, nil)
	if answer, err := w.server.start(w.ctx(), during, l, Runner{Name: "ann"}); answer != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("hung up while the start was noted: %+v, %v", answer, err)
	}
	w.results.set(nil, nil)
	w.lease("ann", "l4", "other", 2)
}

func TestOversize(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	w.enqueue("l4", "job")
	w.lease("ann", "l4", "job", 1)
	endless := func(n int64) io.Reader { return io.LimitReader(zeros{}, n) } // of unknown length
	for _, tt := range []struct {
		method, path string
		body         io.Reader
	}{
		{"POST", "lease", endless(small + 1)},
		{"POST", "lease", bytes.NewReader(make([]byte, small+1))},
		{"POST", "jobs/job/beat", endless(small + 1)},
		{"POST", "jobs/job/earlier", endless(small + 1)},
		{"POST", "jobs/job/begin", endless(small + 1)},
		{"PUT", "jobs/job/artifacts/a?token=1", endless(protocol.MaxArtifact + 1)},
		{"PUT", "jobs/job/artifacts/a?token=1", bytes.NewReader(make([]byte, protocol.MaxArtifact+1))},
	} {
		status, answer := w.request("ann's", tt.method, tt.path, tt.body)
		w.expect(tt.path, http.StatusRequestEntityTooLarge, status, answer)
	}
	if _, _, err := w.journal.Artifacts.Get(w.ctx(), ArtifactBlob("job", 1, "a")); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("the half artifact: %v", err)
	}
}

// zeros are spaces, which JSON may begin with.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestReadJSON(t *testing.T) {
	zip := func(text string) io.Reader {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
		return &b
	}
	for _, tt := range []struct {
		name, encoding string
		body           io.Reader
		want           int // 0 reads it
	}{
		{"plain", "", strings.NewReader(`{"token": 7}`), 0},
		{"gzipped", "gzip", zip(`{"token": 7}`), 0},
		{"a bomb", "gzip", zip(strings.Repeat(" ", 1000) + `{"token": 7}`), http.StatusRequestEntityTooLarge},
		{"too long", "", strings.NewReader(strings.Repeat(" ", 1000) + `{"token": 7}`), http.StatusRequestEntityTooLarge},
		{"not gzipped", "gzip", strings.NewReader(`{"token": 7}`), http.StatusBadRequest},
		{"another encoding", "br", strings.NewReader(`{"token": 7}`), http.StatusUnsupportedMediaType},
		{"not JSON", "", strings.NewReader(`token`), http.StatusBadRequest},
		{"another type", "", strings.NewReader(`{"token": "7"}`), http.StatusBadRequest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/", tt.body)
			r.Header.Set("Content-Encoding", tt.encoding)
			var rel protocol.Release
			err := readJSON(httptest.NewRecorder(), r, 100, &rel)
			if tt.want == 0 && (err != nil || rel.Token != 7) {
				t.Errorf("read %+v, %v", rel, err)
			}
			if tt.want != 0 && (err == nil || statusOf(err) != tt.want) {
				t.Errorf("%v, want status %d", err, tt.want)
			}
		})
	}
}

func TestResultsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	w.enqueue("l4", "job")
	w.lease("ann", "l4", "job", 1)
	for name, r := range map[string]protocol.Result{
		"no evidence":         {Token: 1},
		"evidence that is 1":  {Token: 1, Evidence: json.RawMessage("1")},
		"artifact never sent": {Token: 1, Evidence: json.RawMessage("{}"), Artifacts: []string{"a"}},
	} {
		status, answer := w.post("ann's", "jobs/job/result", r)
		w.expect(name, http.StatusBadRequest, status, answer)
	}
	for _, name := range []string{".hidden", "a%2Fb", "a%20b", strings.Repeat("a", 101)} {
		status, answer := w.request("ann's", "PUT", "jobs/job/artifacts/"+name+"?token=1", strings.NewReader("a"))
		w.expect(name, http.StatusBadRequest, status, answer)
	}
	for i := range protocol.MaxArtifacts + 1 {
		want := http.StatusOK
		if i == protocol.MaxArtifacts {
			want = http.StatusRequestEntityTooLarge
		}
		status, answer := w.request("ann's", "PUT", fmt.Sprintf("jobs/job/artifacts/a%d?token=1", i), strings.NewReader("a"))
		w.expect("one more artifact", want, status, answer)
	}
}
