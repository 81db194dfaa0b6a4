package publish_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/publish"
)

// A refusal answers requests of a method whose path has a part, as GitHub's replicas do
// after a push, so many times.
type refusal struct {
	method, part string
	status       int
	message      string
	left         int
}

func (l *refusal) RoundTrip(rq *http.Request) (*http.Response, error) {
	if rq.Method != l.method || !strings.Contains(rq.URL.Path, l.part) || l.left == 0 {
		return http.DefaultTransport.RoundTrip(rq)
	}
	l.left--
	body := `{"message":"` + l.message + `","documentation_url":"https://docs.github.com/rest"}`
	return &http.Response{Status: http.StatusText(l.status), StatusCode: l.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: rq}, nil
}

var (
	noCommit = refusal{method: http.MethodPost, part: "/check-runs", status: 422, message: "No commit found for SHA: abc"}
	notFound = refusal{method: http.MethodPost, part: "/check-runs", status: 404, message: "Not Found"}
)

// through is a client of a new App, behind a refusal; with a personal token it writes statuses.
func (w *world) through(l *refusal, checks bool) *client.GitHub {
	w.Helper()
	opt := client.Options{Checks: checks, BaseURL: w.hub.URL(), Transport: l, Sleep: func(context.Context, time.Duration) error { return nil }}
	token := w.hub.CreateToken("olga")
	if checks {
		key, err := testKey()
		w.no(err)
		app, err := w.hub.CreateApp(embedded.AppOptions{Slug: "gate", Key: key})
		w.no(err)
		in, err := app.Install(w.repo)
		w.no(err)
		token = in.Token()
	}
	h, err := client.NewToken(token, opt)
	w.no(err)
	return h
}

// unseen wants a publication that failed because GitHub did not show the commit or the pull
// request, and that is made again.
func (w *world) unseen(p *publish.Publisher) change.Published {
	w.Helper()
	out, err := p.Publish(w.Context(), present.View{State: w.state})
	if !errors.Is(err, publish.ErrNotVisible) || out.Complete {
		w.Errorf("complete: %v, %v", out.Complete, err)
	}
	w.apply(out)
	if !w.state.NeedsPublish {
		w.Error("nothing is left to publish")
	}
	return out
}

// GitHub's replicas do not know a commit for some time after a push. The check is created
// once they do, and nothing is noted before that.
func TestLag(t *testing.T) {
	for name, answer := range map[string]refusal{"422": noCommit, "404": notFound} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			answer.left = 6 // two checks, three times
			p := &publish.Publisher{GitHub: w.through(&answer, true)}
			for range 3 {
				if out := w.unseen(p); len(out.Checks) != 0 || len(w.state.Checks) != 0 {
					t.Errorf("noted %+v", w.state.Checks)
				}
			}
			w.no(w.publish(p, true))
			w.shows("once GitHub knows the commit", 3)
			for key, c := range w.state.Checks {
				if c.ID <= 1 {
					t.Errorf("%s is noted as %d", key, c.ID)
				}
			}
			if w.state.NeedsPublish {
				t.Error("something is left to publish")
			}
		})
	}
}

// The same is true of commit statuses, of the comment and of replies. None of them keeps the
// others from being written.
func TestLagOfOtherWrites(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer refusal
		checks bool
		lacks  string
	}{
		{"statuses", refusal{method: http.MethodPost, part: "/statuses/", status: 422, message: "No commit found for SHA: abc", left: 2}, false, "checks"},
		{"listing checks", refusal{method: http.MethodGet, part: "/check-runs", status: 422, message: "No commit found for SHA: abc", left: 2}, true, "checks"},
		{"comments", refusal{method: http.MethodPost, part: "/issues/1/comments", status: 404, message: "Not Found", left: 2}, true, "comment replies"},
		{"listing comments", refusal{method: http.MethodGet, part: "/issues/1/comments", status: 404, message: "Not Found", left: 2}, true, "comment replies"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			p := &publish.Publisher{GitHub: w.through(&c.answer, c.checks)}
			out := w.unseen(p)
			for what, noted := range map[string]bool{"checks": len(out.Checks) > 0, "comment": out.Comment != nil, "replies": len(out.Replies) > 0} {
				if noted == strings.Contains(c.lacks, what) {
					t.Errorf("%s noted: %v", what, noted)
				}
			}
			w.no(w.publish(p, true))
			if w.state.NeedsPublish || len(w.pr.Comments()) != 3 || len(w.state.Checks) != 2 || w.state.Commands[0].Replied <= 0 {
				t.Errorf("dirty: %v, %d comments, noted %+v %+v", w.state.NeedsPublish, len(w.pr.Comments()), w.state.Checks, w.state.Commands)
			}
		})
	}
}

// A conversation that GitHub says was deleted is no lag.
func TestDeletedConversation(t *testing.T) {
	w := newWorld(t)
	answer := refusal{method: http.MethodGet, part: "/issues/1/comments", status: 410, message: "This issue was deleted", left: -1}
	out, err := (&publish.Publisher{GitHub: w.through(&answer, true)}).Publish(t.Context(), present.View{State: w.state})
	if err != nil || !out.Complete || out.Comment != nil || out.Replies["comment-1"] != -1 || len(out.Checks) != 2 {
		t.Errorf("noted %+v, %v", out, err)
	}
}

// A workflow has no later publication, so it waits for GitHub, and does not write a second
// time what was written in between.
func TestLagInWorkflow(t *testing.T) {
	for name, c := range map[string]struct {
		left int
		want error
	}{"short": {left: 3}, "for ever": {left: -1, want: publish.ErrNotVisible}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			answer := noCommit
			answer.left = c.left
			waited := time.Duration(0)
			p := &publish.Publisher{GitHub: w.through(&answer, true), Lenient: true, Sleep: func(_ context.Context, d time.Duration) error {
				waited += d
				return nil
			}}
			if err := w.publish(p, true); !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if c.want == nil {
				w.shows("once GitHub knows the commit", 3)
				return
			}
			if waited < 2*time.Minute || len(w.state.Checks) != 0 {
				t.Errorf("waited %v, noted %+v", waited, w.state.Checks)
			}
		})
	}
}

// A workflow that is cancelled while it waits does not try again.
func TestLagInACancelledWorkflow(t *testing.T) {
	w := newWorldWithoutPlan(t)
	w.plan(running)
	answer := noCommit
	answer.left = -1
	asked := 0
	p := &publish.Publisher{GitHub: w.through(&answer, true), Lenient: true, Sleep: func(context.Context, time.Duration) error {
		asked++
		return context.Canceled
	}}
	if err := w.publish(p, true); !errors.Is(err, publish.ErrNotVisible) || asked != 1 {
		t.Errorf("%v, after %d pauses", err, asked)
	}
}

// A check whose creation got no answer, and that GitHub does not list, is not noted and not updated.
func TestCheckInDoubt(t *testing.T) {
	w := newWorldWithoutPlan(t)
	w.plan(running)
	h := w.token("gate", nil)
	updates := 0
	w.hub.SetFaults(embedded.Faults{Rate: 1, Kinds: []embedded.FaultKind{embedded.Reset}, Only: func(r *http.Request) bool {
		if r.Method == http.MethodPatch {
			updates++
		}
		return r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/check-runs")
	}})
	err := w.publish(&publish.Publisher{GitHub: h}, true)
	w.heal()
	if err == nil || updates != 0 || len(w.state.Checks) != 0 {
		t.Errorf("%v, %d updates, noted %+v", err, updates, w.state.Checks)
	}
}

// A check that GitHub does not know any more is created again, with its annotations.
func TestLostCheck(t *testing.T) {
	w := newWorld(t)
	answer := refusal{}
	p := &publish.Publisher{GitHub: w.through(&answer, true)}
	w.no(w.publish(p, true))
	before := w.state.Checks[change.CheckKey("kernelgate", w.pr.HeadSHA())]
	alterChecks(w.state)
	answer = refusal{method: http.MethodPatch, part: "/check-runs/", status: 404, message: "Not Found", left: -1}
	w.apply(change.HeadShared{})
	w.no(w.publish(p, true))
	after := w.state.Checks[change.CheckKey("kernelgate", w.pr.HeadSHA())]
	if c, _ := w.repo.Check(w.pr.HeadSHA(), "kernelgate"); after.ID <= before.ID || c.ID != after.ID || c.Conclusion != "success" || w.state.NeedsPublish {
		t.Errorf("check %d became %d; GitHub shows %d %s", before.ID, after.ID, c.ID, c.Conclusion)
	}
}

// A change whose verdicts were shown as commit statuses gets checks as soon as the bot may create them.
func TestCheckAfterStatus(t *testing.T) {
	w := newWorld(t)
	for _, c := range present.Checks(present.View{State: w.state}) {
		w.apply(change.Published{Checks: map[string]change.Posted{change.CheckKey(c.Name, c.HeadSHA): {ID: 1, Digest: c.Digest, Done: true}}})
	}
	w.no(w.publish(&publish.Publisher{GitHub: w.through(&refusal{}, true)}, true))
	w.shows("in place of statuses", 3)
}

// Nobody waits for a check on a commit that is not the head any more, or of a change that
// is closed: where GitHub does not know it, that is the end of it.
func TestLagOfWhatNobodyWaitsFor(t *testing.T) {
	w := newWorld(t)
	answer := refusal{}
	p := &publish.Publisher{GitHub: w.through(&answer, true)}
	w.no(w.publish(p, true))
	for key, c := range w.state.Checks {
		c.Done = false // it still ran when the head moved
		w.state.Checks[key] = c
	}
	old := w.state.Checks[change.CheckKey("kernelgate", w.pr.HeadSHA())]
	f := w.state.Facts
	f.Head, f.Open = strings.Repeat("d", 40), false
	w.apply(change.Seen{Facts: f})
	answer = refusal{method: http.MethodPatch, part: "/check-runs/", status: 404, message: "Not Found", left: -1}
	out, err := p.Publish(t.Context(), present.View{State: w.state})
	if noted := out.Checks[change.CheckKey("kernelgate", w.pr.HeadSHA())]; err != nil || !out.Complete || noted.ID != old.ID || !noted.Done {
		t.Errorf("noted %+v, %v", out.Checks, err)
	}
	if _, noted := out.Checks[change.CheckKey("kernelgate", f.Head)]; noted {
		t.Errorf("noted a check that was never there: %+v", out.Checks)
	}
}
