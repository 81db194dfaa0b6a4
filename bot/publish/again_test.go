package publish_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/publish"
	"github.com/kernelgate/kernelgate/gates"
)

// running is a kernel that has to be measured.
var running = change.Kernel{KernelSpec: change.KernelSpec{Sources: "other", Labels: []string{"l4"}}}

// plan makes the kernel scale what the change is about, in one state.
func (w *world) plan(k change.Kernel) {
	f := w.state.Facts
	k.Name, k.Folder = "scale", "kernels/scale"
	w.apply(change.Planned{Plan: change.Plan{Key: f.PlanKey(), Head: f.Head, Check: "kernelgate", Kernels: []change.Kernel{k}}})
}

// planMistakes makes the policy one with so many mistakes, each of which is an annotation.
func (w *world) planMistakes(n int) {
	f := w.state.Facts
	p := change.Plan{Key: f.PlanKey(), Head: f.Head, Check: "kernelgate", PolicyFile: ".github/kernelgate.yaml"}
	for line := range n {
		p.Problems = append(p.Problems, gates.Diagnostic{File: p.PolicyFile, Line: line + 1, Severity: "error", Message: "is a mistake"})
	}
	w.apply(change.Planned{Plan: p})
}

// named lists the checks of a name on the head, oldest first.
func (w *world) named(name string) []embedded.Check {
	var all []embedded.Check
	for _, c := range w.repo.Checks(w.pr.HeadSHA()) {
		if c.Name == name {
			all = append(all, c)
		}
	}
	return all
}

// alterChecks has the next publication write every check again.
func alterChecks(s *change.State) {
	for key, c := range s.Checks {
		c.Digest = "of something else"
		s.Checks[key] = c
	}
}

// GitHub adds the annotations of an update to those before: whatever a check is written again for, each is there once.
func TestAnnotationsAreSentOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		noted bool // else the bot crashed after the first publication
		then  func(*world, *client.GitHub)
		want  int
	}{
		{"an update", true, func(w *world, _ *client.GitHub) { alterChecks(w.state) }, 2},
		{"in doubt", true, func(w *world, _ *client.GitHub) { w.apply(change.RepublishAsked{}) }, 2},
		{"in doubt, and there is a newer one", true, func(w *world, h *client.GitHub) {
			newer := client.Check{Name: "kernelgate", HeadSHA: w.pr.HeadSHA(), ExternalID: w.state.ID.String(), Status: "completed", Conclusion: "failure", Title: "Late", Summary: "Late.",
				Annotations: []client.Annotation{{Path: "a", StartLine: 1, EndLine: 1, Level: "failure", Message: "late"}}}
			_, err := h.CreateCheck(w.Context(), "olga/kernels", newer)
			w.no(err)
			w.apply(change.RepublishAsked{})
		}, 1},
		{"after a crash", false, func(*world, *client.GitHub) {}, 2},
		{"after a crash, with fewer mistakes", false, func(w *world, _ *client.GitHub) { w.planMistakes(1) }, 2},
		{"after a crash, with more mistakes", false, func(w *world, _ *client.GitHub) { w.planMistakes(3) }, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorldWithoutPlan(t)
			h := w.token("gate", nil)
			w.planMistakes(2)
			w.no(w.publish(&publish.Publisher{GitHub: h}, c.noted))
			c.then(w, h)
			w.no(w.publish(&publish.Publisher{GitHub: h}, true))
			all := w.named("kernelgate")
			newest := all[len(all)-1]
			if got := len(newest.Annotations); got != c.want || newest.Conclusion != "failure" {
				t.Errorf("%d annotations, want %d; the conclusion is %s", got, c.want, newest.Conclusion)
			}
			if got := w.state.Checks[change.CheckKey("kernelgate", w.pr.HeadSHA())].ID; got != newest.ID {
				t.Errorf("the check is noted as %d, want %d", got, newest.ID)
			}
		})
	}
	// A check that was running gets them when it concludes.
	t.Run("a check that concludes", func(t *testing.T) {
		w := newWorldWithoutPlan(t)
		p := &publish.Publisher{GitHub: w.token("gate", nil)}
		w.no(w.publish(p, true))
		w.planMistakes(2)
		w.no(w.publish(p, true))
		if all := w.named("kernelgate"); len(all) != 1 || len(all[0].Annotations) != 2 {
			t.Errorf("%+v", all)
		}
	})
}

// A concluded check stays as it is. What is measured again gets a new one, and an update none.
func TestConcludedChecksStay(t *testing.T) {
	w := newWorld(t)
	p := &publish.Publisher{GitHub: w.token("gate", nil)}
	w.no(w.publish(p, true))
	old, lists := w.named("kernelgate")[0], w.lists.times.Load()
	alterChecks(w.state)
	w.no(w.publish(p, true))
	if all := w.named("kernelgate"); len(all) != 1 || w.lists.times.Load() != lists {
		t.Errorf("an update made %d checks and listed %d times", len(all), w.lists.times.Load()-lists)
	}
	w.plan(running)
	w.no(w.publish(p, true))
	all := w.named("kernelgate")
	if len(all) != 2 || all[0].Conclusion != "success" || all[0].Title != old.Title || all[1].Status != "in_progress" {
		t.Fatalf("%+v", all)
	}
	if got := w.state.Checks[change.CheckKey("kernelgate", w.pr.HeadSHA())]; got.ID != all[1].ID || got.Done {
		t.Errorf("noted %+v, want %d", got, all[1].ID)
	}
}

// A check of the same name and commit may be another pull request's. It is left alone, and ours is written after it once.
func TestAnothersCheck(t *testing.T) {
	const repo = "olga/kernels"
	another := func(w *world, h *client.GitHub) {
		_, err := h.CreateCheck(w.Context(), repo, client.Check{Name: "kernelgate", HeadSHA: w.pr.HeadSHA(), ExternalID: "pull.7.99", Status: "completed", Conclusion: "failure", Title: "Another's", Summary: "Another's"})
		w.no(err)
	}
	conclusions := func(w *world) string {
		var all []string
		for _, c := range w.named("kernelgate") {
			all = append(all, c.Conclusion)
		}
		return strings.Join(all, " ")
	}
	for _, c := range []struct {
		name  string
		story func(w *world, h *client.GitHub)
		want  string
		lists int64 // in the last publication
	}{
		{"it was there first", another, "failure success", 2},
		{"it came later", func(w *world, h *client.GitHub) {
			w.no(w.publish(&publish.Publisher{GitHub: h}, true))
			another(w, h)
			w.apply(change.Published{AnnouncedDigest: "something"})
		}, "success failure success", 1},
		{"it came later, and we crashed after we wrote ours", func(w *world, h *client.GitHub) {
			w.no(w.publish(&publish.Publisher{GitHub: h}, true))
			another(w, h)
			w.apply(change.Published{AnnouncedDigest: "something"})
			w.no(w.publish(&publish.Publisher{GitHub: h}, false))
		}, "success failure success", 1},
		{"it came later, and ours is not listed any more", func(w *world, h *client.GitHub) {
			w.no(w.publish(&publish.Publisher{GitHub: h}, true))
			key := change.CheckKey("kernelgate", w.pr.HeadSHA())
			c := w.state.Checks[key]
			c.ID = 1
			w.state.Checks[key] = c
			w.apply(change.Published{AnnouncedDigest: "something"})
		}, "success", 1},
		{"it came later, and nobody has asked", func(w *world, h *client.GitHub) {
			w.no(w.publish(&publish.Publisher{GitHub: h}, true))
			another(w, h)
		}, "success failure", 0},
		{"it came later, and ours is closed", func(w *world, h *client.GitHub) {
			w.no(w.publish(&publish.Publisher{GitHub: h}, true))
			another(w, h)
			w.apply(change.Published{AnnouncedDigest: "something"})
			f := w.state.Facts
			f.Open = false
			w.apply(change.Seen{Facts: f})
		}, "success failure", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			h := w.token("gate", nil)
			c.story(w, h)
			lists := w.lists.times.Load()
			w.no(w.publish(&publish.Publisher{GitHub: h}, true))
			if got := conclusions(w); got != c.want {
				t.Errorf("the checks are %s, want %s", got, c.want)
			}
			if got := w.lists.times.Load() - lists; got != c.lists {
				t.Errorf("checks were listed %d times, want %d", got, c.lists)
			}
			all := w.named("kernelgate")
			if last := all[len(all)-1]; c.lists > 0 && w.state.Checks[change.CheckKey("kernelgate", w.pr.HeadSHA())].ID != last.ID {
				t.Errorf("noted %+v, want %d", w.state.Checks, last.ID)
			}
		})
	}
}

// The comment is first written where the plan is one of the head that GitHub shows; one that is there is kept up to date.
func TestCommentOfAnOldPlan(t *testing.T) {
	for name, known := range map[string]bool{"no comment yet": false, "a comment": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := &publish.Publisher{GitHub: w.token("gate", nil)}
			if known {
				w.no(w.publish(p, true))
			}
			f := w.state.Facts
			f.Head, f.Open = strings.Repeat("d", 40), false
			w.apply(change.Seen{Facts: f})
			out, err := p.Publish(t.Context(), present.View{State: w.state})
			if err != nil || (out.Comment != nil) != known {
				t.Errorf("noted %+v, %v", out.Comment, err)
			}
		})
	}
}

// What the conversation holds is asked for once in a publication.
func TestCommentsAreListedOnce(t *testing.T) {
	w := newWorld(t)
	w.no(w.publish(&publish.Publisher{GitHub: w.token("gate", nil)}, true))
	if n := w.lists.comments.Load(); n != 1 {
		t.Errorf("comments were listed %d times", n)
	}
}

// While a measurement runs, an edit of the comment is left out where writes are few.
func TestSpareComment(t *testing.T) {
	w := newWorld(t)
	w.no(w.publish(&publish.Publisher{GitHub: w.token("gate", nil)}, true))
	w.plan(running)
	few := func(lenient bool) (change.Published, error) {
		key, err := testKey()
		w.no(err)
		app, err := w.hub.CreateApp(embedded.AppOptions{Slug: map[bool]string{false: "bot", true: "workflow"}[lenient], Key: key})
		w.no(err)
		in, err := app.Install(w.repo)
		w.no(err)
		h, err := client.NewToken(in.Token(), client.Options{Checks: true, BaseURL: w.hub.URL(), ContentPerHour: 6, Sleep: func(context.Context, time.Duration) error { return nil }})
		w.no(err)
		return (&publish.Publisher{GitHub: h, Lenient: lenient}).Publish(t.Context(), present.View{State: w.state})
	}
	if out, err := few(false); !errors.Is(err, client.ErrShed) || out.Comment != nil || len(out.Checks) == 0 {
		t.Errorf("noted %+v, %v", out, err)
	}
	if out, err := few(true); errors.Is(err, client.ErrShed) {
		t.Errorf("a workflow: noted %+v, %v", out, err)
	}
}

// Where a different bot may have written, a pending check that a newer one has replaced is ended: nobody would write to it again.
// A different change's check of the same name stays as it is.
func TestReplacedChecksAreEnded(t *testing.T) {
	w := newWorld(t)
	h := w.token("gate", nil)
	create := func(external, status string) {
		c := client.Check{Name: "kernelgate", HeadSHA: w.pr.HeadSHA(), ExternalID: external, Status: status, Title: "Earlier", Summary: "Earlier."}
		if status == "completed" {
			c.Conclusion = "failure"
		}
		_, err := h.CreateCheck(t.Context(), "olga/kernels", c)
		w.no(err)
	}
	create(w.state.ID.String(), "in_progress")
	create("pr-1-99", "in_progress")
	create(w.state.ID.String(), "completed")
	w.apply(change.RepublishAsked{})
	w.no(w.publish(&publish.Publisher{GitHub: h}, true))
	var got []string
	for _, c := range w.named("kernelgate") {
		got = append(got, c.Status+" "+c.Conclusion)
	}
	if want := []string{"completed cancelled", "in_progress ", "completed success"}; !slices.Equal(got, want) {
		t.Errorf("the checks are %q, want %q", got, want)
	}
}

// A reply that was written and not noted stays the only one, also where another bot may have written too.
func TestReplyInDoubt(t *testing.T) {
	w := newWorld(t)
	h := w.token("gate", nil)
	w.no(w.publish(&publish.Publisher{GitHub: h}, false))
	w.apply(change.RepublishAsked{})
	w.no(w.publish(&publish.Publisher{GitHub: h}, true))
	w.shows("in doubt", 3)
	found := false
	for _, c := range w.pr.Comments() {
		found = found || c.ID == w.state.Commands[0].Replied && strings.HasPrefix(c.Body, present.ReplyMarker("comment-1"))
	}
	if !found {
		t.Errorf("the reply is noted as %d, which is not there", w.state.Commands[0].Replied)
	}
}

// Where nothing may be said, one attempt shows it: no second reply is removed either.
func TestMuteInDoubt(t *testing.T) {
	w := newWorld(t)
	h := w.token("gate", nil)
	w.apply(change.Asked{ID: "comment-2", Comment: w.asked.ID, By: "olga", Head: w.pr.HeadSHA()})
	w.apply(change.Answered{ID: "comment-2", OK: true, Answer: change.Answer{Kind: change.AnswerExplainNoKernel}})
	w.no(w.publish(&publish.Publisher{GitHub: h}, true))
	for _, id := range []string{"comment-1", "comment-2"} {
		_, err := h.CreateComment(t.Context(), "olga/kernels", w.pr.Number(), present.ReplyMarker(id)+"\nLate.")
		w.no(err)
	}
	w.apply(change.RepublishAsked{})
	reader := &publish.Publisher{GitHub: w.token("reader", map[string]string{"issues": "read", "metadata": "read", "pull_requests": "read"})}
	out, err := reader.Replies(t.Context(), present.View{State: w.state})
	if err != nil || len(reader.Denied) != 1 || len(out.Replies) > 0 {
		t.Errorf("noted %+v, denied %v, %v", out, reader.Denied, err)
	}
}

// A comment that we know and may not edit is tried once.
func TestKnownCommentIsAnothers(t *testing.T) {
	w := newWorld(t)
	id, err := w.token("parrot", nil).CreateComment(t.Context(), "olga/kernels", w.pr.Number(), present.Marker(w.state.ID)+"\nPolly wants a cracker.")
	w.no(err)
	w.apply(change.Published{Comment: &change.Posted{ID: id, Digest: "of something else"}})
	edits := 0
	w.hub.SetFaults(embedded.Faults{Rate: 1, Only: func(r *http.Request) bool {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/comments/") {
			edits++
		}
		return false
	}})
	w.no(w.publish(&publish.Publisher{GitHub: w.token("gate", nil)}, true))
	w.shows("beside another's comment", 4)
	if edits != 1 {
		t.Errorf("it was edited %d times", edits)
	}
}

// Where an answer is lost and it cannot be found out what became of the comment, the publication failed.
func TestLostAnswerAndNoList(t *testing.T) {
	w := newWorld(t)
	h := w.token("gate", nil)
	lists := 0
	fail := func(r *http.Request) bool {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/comments") {
			lists++
			return lists > 1 // the first asks what is there
		}
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/comments")
	}
	w.hub.SetFaults(embedded.Faults{Rate: 1, Kinds: []embedded.FaultKind{embedded.LostAnswer}, Only: fail})
	out, err := (&publish.Publisher{GitHub: h}).Publish(t.Context(), present.View{State: w.state})
	if err == nil || out.Complete || out.Comment != nil || len(out.Replies) > 0 {
		t.Errorf("noted %+v, %v", out, err)
	}
	w.heal()
	w.no(w.publish(&publish.Publisher{GitHub: h}, true))
	w.shows("after the fault", 3)
}
