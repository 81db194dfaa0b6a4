package publish_test

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/publish"
	"github.com/kernelgate/kernelgate/gates"
)

// fail has every request of a method whose path has a part answered with an error of a kind; heal ends that.
func (w *world) fail(kind embedded.FaultKind, method, part string) {
	w.hub.SetFaults(embedded.Faults{Rate: 1, Kinds: []embedded.FaultKind{kind}, Only: func(r *http.Request) bool {
		return r.Method == method && strings.Contains(r.URL.Path, part)
	}})
}

func (w *world) heal() { w.hub.SetFaults(embedded.Faults{}) }

// Whichever call fails, the publication is not complete, what was not written is not noted, and the next publication ends where
// one without a fault would have ended.
func TestFailedCalls(t *testing.T) {
	for _, c := range []struct {
		name         string
		kind         embedded.FaultKind
		method, part string
		lacks        string // what cannot have been noted
	}{
		{"listing checks", embedded.ServerError, http.MethodGet, "/check-runs", "checks"},
		{"creating checks", embedded.ServerError, http.MethodPost, "/check-runs", "checks"},
		{"listing comments", embedded.ServerError, http.MethodGet, "/comments", "comment replies"},
		{"creating comments", embedded.ServerError, http.MethodPost, "/comments", "comment replies"},
		{"reacting", embedded.ServerError, http.MethodPost, "/reactions", "replies"},
		{"connecting to list checks", embedded.Reset, http.MethodGet, "/check-runs", "checks"},
		{"connecting to list comments", embedded.Reset, http.MethodGet, "/comments", "comment replies"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			h := w.token("gate", nil)
			w.fail(c.kind, c.method, c.part)
			out, err := (&publish.Publisher{GitHub: h}).Publish(t.Context(), present.View{State: w.state})
			if err == nil || out.Complete {
				t.Errorf("complete: %v, %v", out.Complete, err)
			}
			for what, noted := range map[string]bool{"checks": len(out.Checks) > 0, "comment": out.Comment != nil, "replies": len(out.Replies) > 0} {
				if noted == strings.Contains(c.lacks, what) {
					t.Errorf("%s noted: %v", what, noted)
				}
			}
			w.apply(out)
			if !w.state.NeedsPublish {
				t.Error("nothing is left to publish")
			}
			w.heal()
			w.no(w.publish(&publish.Publisher{GitHub: h}, true))
			w.shows("after the fault", 3)
			if w.state.NeedsPublish {
				t.Error("something is left to publish")
			}
		})
	}
}

// After the first publication the same calls fail again: an update, or the list that tells who spoke last.
func TestFailedUpdates(t *testing.T) {
	for _, c := range []struct {
		name         string
		event        change.Event
		method, part string
		alter        func(*change.State)
		crashed      bool // before the first publication was noted
	}{
		{"listing checks that another may have overtaken", change.Published{AnnouncedDigest: "something"}, http.MethodGet, "/check-runs", nil, false},
		{"listing checks in doubt", change.RepublishAsked{}, http.MethodGet, "/check-runs", nil, false},
		{"updating checks in doubt", change.RepublishAsked{}, http.MethodPatch, "/check-runs", nil, false},
		{"editing the comment in doubt", change.RepublishAsked{}, http.MethodPatch, "/comments", nil, false},
		{"listing comments in doubt", change.RepublishAsked{}, http.MethodGet, "/comments", nil, false},
		{"listing checks that another may have overtaken, with news", change.Published{AnnouncedDigest: "something"}, http.MethodGet, "/check-runs", alterChecks, false},
		{"updating a check", nil, http.MethodPatch, "/check-runs", alterChecks, false},
		{"editing the comment", nil, http.MethodPatch, "/comments", func(s *change.State) { s.Comment.Digest = "of something else" }, false},
		{"updating a check that was found", nil, http.MethodPatch, "/check-runs", nil, true},
		{"editing a comment that was found", nil, http.MethodPatch, "/comments", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			h := w.token("gate", nil)
			w.no(w.publish(&publish.Publisher{GitHub: h}, !c.crashed))
			if c.event != nil {
				w.apply(c.event)
			}
			if c.alter != nil {
				c.alter(w.state)
			}
			w.fail(embedded.ServerError, c.method, c.part)
			out, err := (&publish.Publisher{GitHub: h}).Publish(t.Context(), present.View{State: w.state})
			if err == nil || out.Complete {
				t.Errorf("complete: %v, %v", out.Complete, err)
			}
			if _, noted := out.Checks[change.CheckKey("kernelgate", w.pr.HeadSHA())]; noted && c.part == "/check-runs" {
				t.Errorf("noted %+v", out.Checks)
			}
			if out.Comment != nil && c.part == "/comments" {
				t.Errorf("noted %+v", out.Comment)
			}
			w.heal()
			w.no(w.publish(&publish.Publisher{GitHub: h}, true))
			w.shows("after the fault", 3)
		})
	}
}

// Replies writes only replies, and Publish the rest.
func TestPartsOfAPublication(t *testing.T) {
	w := newWorld(t)
	p := &publish.Publisher{GitHub: w.token("gate", nil)}
	out, err := p.Replies(t.Context(), present.View{State: w.state})
	w.no(err)
	if out.Replies["comment-1"] == 0 || len(out.Checks) != 0 || out.Comment != nil || len(w.pr.Comments()) != 2 {
		t.Errorf("noted %+v", out)
	}
	w.apply(out)
	w.no(w.publish(p, true))
	w.shows("in the end", 3)
	// Nothing is left to write.
	before := w.lists.writes.Load()
	out, err = p.Publish(t.Context(), present.View{State: w.state})
	w.no(err)
	if n := w.lists.writes.Load() - before; n != 0 || !out.Complete || len(out.Checks) != 0 || out.Comment != nil || len(out.Replies) != 0 {
		t.Errorf("%d writes, noted %+v", n, out)
	}
}

// Progress updates running checks that are there. It does not touch a concluded one.
func TestProgress(t *testing.T) {
	w := newWorldWithoutPlan(t)
	h := w.token("gate", nil)
	p := &publish.Publisher{GitHub: h}
	before := w.lists.writes.Load()
	w.no(p.Progress(t.Context(), present.View{State: w.state})) // nothing was published yet
	if n := w.lists.writes.Load() - before; n != 0 {
		t.Errorf("%d writes to checks that are not there", n)
	}
	w.plan(change.Kernel{Result: &change.Result{Outcome: gates.Pass, Line: "PASS scale: faster"}})
	w.no(w.publish(p, true))
	before = w.lists.writes.Load()
	w.no(p.Progress(t.Context(), present.View{State: w.state}))
	if n := w.lists.writes.Load() - before; n != 0 {
		t.Errorf("%d writes though everything has concluded", n)
	}
	w.plan(running)
	w.no(p.Progress(t.Context(), present.View{State: w.state}))
	if n := w.lists.writes.Load() - before; n != 0 {
		t.Errorf("%d writes to checks that have concluded", n)
	}
	w.no(w.publish(p, true)) // creates new ones that run
	before = w.lists.writes.Load()
	w.no(p.Progress(t.Context(), present.View{State: w.state}))
	if n := w.lists.writes.Load() - before; n != 1 {
		t.Errorf("%d updates, want one of the check that is in progress and none of the one that is queued", n)
	}
	before = w.lists.writes.Load()
	w.no(w.publish(p, true)) // the digests say that all is there
	if n := w.lists.writes.Load() - before; n != 0 {
		t.Errorf("%d writes of what GitHub shows", n)
	}
	w.no(w.publish(&publish.Publisher{GitHub: h, Progressed: true}, true))
	if n := w.lists.writes.Load() - before; n != 2 {
		t.Errorf("%d writes, want both checks again: GitHub may show the progress of an earlier runner", n)
	}
	var updated []string
	w.hub.SetFaults(embedded.Faults{Rate: 1, Only: func(r *http.Request) bool {
		updated = append(updated, path.Base(r.URL.Path))
		return false
	}})
	w.no(p.Progress(t.Context(), present.View{State: w.state}))
	if want := fmt.Sprint(w.state.Checks[change.CheckKey("kernelgate", w.pr.HeadSHA())].ID); len(updated) != 1 || updated[0] != want {
		t.Errorf("the checks %v were updated, want %s", updated, want)
	}
	w.heal()
	w.apply(change.Started{Job: w.state.Runs[0].Job, Token: 1, Runner: "gpu1"})
	w.no(w.publish(p, true))
	before = w.lists.writes.Load()
	w.no(p.Progress(t.Context(), present.View{State: w.state}))
	if n := w.lists.writes.Load() - before; n != 2 {
		t.Errorf("%d updates, want one of each check that is in progress", n)
	}
	w.fail(embedded.LostAnswer, http.MethodPatch, "/check-runs")
	w.no(p.Progress(t.Context(), present.View{State: w.state})) // the next text replaces it
	w.heal()
	reader := &publish.Publisher{GitHub: w.token("reader", map[string]string{"checks": "read", "metadata": "read"})}
	if err := reader.Progress(t.Context(), present.View{State: w.state}); err == nil {
		t.Error("a refused update is no error")
	}
}

// The report of a search is written once, after the reply to its command.
func TestReportOfASearch(t *testing.T) {
	w := newWorld(t)
	h := w.token("gate", nil)
	w.no(w.publish(&publish.Publisher{GitHub: h}, true))
	w.shows("before the search", 3)
	w.apply(change.Asked{ID: "comment-2", Comment: w.asked.ID, By: "olga", Request: grammar.Read("/tune"), Head: w.state.Facts.Head})
	w.apply(change.Answered{ID: "comment-2", OK: true, Answer: change.Answer{Kind: change.AnswerTuning}, Effect: change.Effect{Search: &change.Search{Folder: "kernels/scale", Bundle: "b", Request: grammar.Read("/tune")}}})
	w.no(w.publish(&publish.Publisher{GitHub: h}, true))
	w.shows("while it runs", 4)
	w.apply(change.Finished{Job: w.state.Searches[0].Job, Result: change.Result{Outcome: gates.Pass, Report: "found"}})
	for _, noted := range []bool{false, true, true} { // the program may crash before it notes the first
		w.no(w.publish(&publish.Publisher{GitHub: h}, noted))
		w.shows("after the search", 5)
	}
}

// Reactions tell an author that a command was read, and how it ended.
func TestReactions(t *testing.T) {
	w := newWorld(t)
	h := w.token("gate", nil)
	p := &publish.Publisher{GitHub: h}
	asked := w.state.Commands[0].Asked
	w.no(p.Acknowledge(t.Context(), "olga/kernels", asked))
	w.no(w.publish(p, true))
	if got := w.pr.Comments()[0].Reactions; len(got) != 2 || len(got["eyes"]) != 1 || len(got["rocket"]) != 1 {
		t.Errorf("reactions: %v", got)
	}
	before := w.lists.writes.Load()
	for _, c := range []change.Asked{{By: "olga"}, {Comment: asked.Comment, On: change.InReview}} {
		w.no(p.Acknowledge(t.Context(), "olga/kernels", c)) // there is nothing to react to
	}
	if n := w.lists.writes.Load() - before; n != 0 {
		t.Errorf("%d writes", n)
	}
	w.no(p.Acknowledge(t.Context(), "olga/kernels", change.Asked{Comment: 999999})) // deleted in the meantime
	line, err := w.pr.CommentOn("olga", "scale.c", 1, "/explain")
	w.no(err)
	w.no(p.Acknowledge(t.Context(), "olga/kernels", change.Asked{Comment: line.ID, On: change.OnLine}))
	if got := w.pr.LineComments()[0].Reactions; len(got["eyes"]) != 1 {
		t.Errorf("reactions on a line: %v", got)
	}
	w.fail(embedded.ServerError, http.MethodPost, "/reactions")
	if err := p.Acknowledge(t.Context(), "olga/kernels", asked); err == nil {
		t.Error("a failed reaction is no error")
	}
}

// A refused command gets another reaction, a command that was not answered none, and a button no reply.
func TestReplies(t *testing.T) {
	w := newWorld(t)
	p := &publish.Publisher{GitHub: w.token("gate", nil)}
	for _, body := range []string{"/cancel", "/rebench"} {
		c, err := w.pr.Comment("olga", body)
		w.no(err)
		w.apply(change.Asked{ID: body, Comment: c.ID, By: "olga", Head: w.pr.HeadSHA()})
	}
	w.apply(change.Asked{ID: "button", By: "olga", Head: w.pr.HeadSHA()})
	w.apply(change.Answered{ID: "/cancel", Answer: change.Answer{Kind: change.AnswerRole, Command: "cancel", Needs: "write", Has: "read"}})
	w.apply(change.Answered{ID: "button", OK: true, Answer: change.Answer{Kind: change.AnswerCancelled}})
	out, err := p.Replies(t.Context(), present.View{State: w.state})
	w.no(err)
	if len(out.Replies) != 2 || out.Replies["comment-1"] == 0 || out.Replies["/cancel"] == 0 {
		t.Errorf("replies: %v", out.Replies)
	}
	comments := w.pr.Comments()
	if len(comments) != 3+2 || len(comments[1].Reactions["confused"]) != 1 || len(comments[2].Reactions) != 0 {
		t.Errorf("comments: %+v", comments)
	}
	if body := comments[4].Body; !strings.Contains(body, "and you have `read`") {
		t.Errorf("the reply says %s", body)
	}
}

// A repository that is gone is told nothing, and nothing is noted, once the change is closed.
// While the change is open, GitHub may only be late.
func TestGone(t *testing.T) {
	for _, open := range []bool{true, false} {
		t.Run(fmt.Sprintf("open=%v", open), func(t *testing.T) {
			w := newWorld(t)
			h := w.token("gate", nil)
			w.state.Facts.Repo, w.state.Facts.Open = "olga/gone", open
			out, err := (&publish.Publisher{GitHub: h}).Publish(t.Context(), present.View{State: w.state})
			if out.Complete == open || errors.Is(err, publish.ErrNotVisible) != open || len(out.Checks) != 0 || out.Comment != nil {
				t.Errorf("noted %+v, %v", out, err)
			}
			if want := map[bool]int64{true: 0, false: -1}[open]; out.Replies["comment-1"] != want {
				t.Errorf("the reply is noted as %d, want %d", out.Replies["comment-1"], want)
			}
		})
	}
}

// A commit that GitHub does not know is recognised by what GitHub says about it.
func TestUnknownCommit(t *testing.T) {
	w := newWorld(t)
	f := w.state.Facts
	f.Head = strings.Repeat("d", 40)
	w.apply(change.Seen{Facts: f})
	w.apply(change.Planned{Plan: change.Plan{Key: f.PlanKey(), Head: f.Head, Check: "kernelgate"}})
	out, err := (&publish.Publisher{GitHub: w.token("gate", nil)}).Publish(t.Context(), present.View{State: w.state})
	if !errors.Is(err, publish.ErrNotVisible) || out.Complete || len(out.Checks) != 0 {
		t.Errorf("noted %+v, %v", out.Checks, err)
	}
}

// Checks that GitHub does not list were overtaken by nobody.
func TestNothingIsListed(t *testing.T) {
	w := newWorld(t)
	for _, c := range present.Checks(present.View{State: w.state}) {
		w.apply(change.Published{AnnouncedDigest: "something", Checks: map[string]change.Posted{change.CheckKey(c.Name, c.HeadSHA): {ID: 7, Digest: c.Digest, Done: true}}})
	}
	out, err := (&publish.Publisher{GitHub: w.token("gate", nil)}).Publish(t.Context(), present.View{State: w.state})
	if err != nil || len(out.Checks) != 0 || len(w.repo.Checks(w.pr.HeadSHA())) != 0 {
		t.Errorf("noted %+v, %v", out.Checks, err)
	}
}

// The comment may be extended.
func TestComment(t *testing.T) {
	w := newWorld(t)
	p := &publish.Publisher{GitHub: w.token("gate", nil), Extend: func(body string) string { return body + "\nand more" }}
	w.no(w.publish(p, true))
	found := false
	for _, c := range w.pr.Comments() {
		found = found || strings.HasPrefix(c.Body, present.Marker(w.state.ID)) && strings.HasSuffix(c.Body, "and more")
	}
	if !found {
		t.Error("the comment was not extended")
	}
}

// The comment waits for a plan.
func TestCommentWaitsForAPlan(t *testing.T) {
	w := newWorldWithoutPlan(t)
	out, err := (&publish.Publisher{GitHub: w.token("gate", nil)}).Publish(t.Context(), present.View{State: w.state})
	w.no(err)
	if out.Comment != nil || len(w.pr.Comments()) != 1 {
		t.Errorf("there is no plan, and the comment is %+v", out.Comment)
	}
}

// Without the permission to write checks the verdict is a commit status.
func TestStatuses(t *testing.T) {
	w := newWorld(t)
	h, err := client.NewToken(w.hub.CreateToken("olga"), client.Options{BaseURL: w.hub.URL()})
	w.no(err)
	p := &publish.Publisher{GitHub: h}
	w.no(w.publish(p, true))
	statuses := w.repo.Statuses(w.pr.HeadSHA())
	if len(statuses) != 2 || len(w.repo.Checks(w.pr.HeadSHA())) != 0 {
		t.Fatalf("statuses: %+v", statuses)
	}
	for _, s := range statuses {
		if s.State != "success" {
			t.Errorf("%+v", s)
		}
	}
	if w.state.NeedsPublish || len(w.state.Checks) != 2 {
		t.Errorf("noted %+v", w.state.Checks)
	}
	for key, c := range w.state.Checks {
		if c.ID != 1 {
			t.Errorf("%s is noted as %d", key, c.ID) // 0 would be one that was never written
		}
	}
	// GitHub does not say who set a status. Where another pull request may have, the required one is set again.
	out, err := p.Publish(t.Context(), present.View{State: w.state})
	if err != nil || len(out.Checks) != 0 {
		t.Errorf("noted %+v, %v", out.Checks, err)
	}
	w.apply(change.Published{AnnouncedDigest: "something"})
	out, err = p.Publish(t.Context(), present.View{State: w.state})
	if _, again := out.Checks[change.CheckKey("kernelgate", w.pr.HeadSHA())]; err != nil || !again || len(out.Checks) != 1 {
		t.Errorf("noted %+v, %v", out.Checks, err)
	}
}
