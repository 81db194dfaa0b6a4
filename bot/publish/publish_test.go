package publish_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/publish"
	"github.com/kernelgate/kernelgate/gates"
)

// testKey is made once: RSA keys are slow to find under the race detector.
var testKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// A world is a GitHub with one pull request, of which a verdict and an answer to a
// command are to be told.
type world struct {
	*testing.T
	hub   *embedded.Server
	repo  *embedded.Repo
	pr    *embedded.PR
	state *change.State
	asked embedded.Comment
	lists lister
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := newWorldWithoutPlan(t)
	f := w.state.Facts
	w.apply(change.Planned{Plan: change.Plan{Key: f.PlanKey(), Head: f.Head, Check: "kernelgate", Kernels: []change.Kernel{
		{KernelSpec: change.KernelSpec{Name: "scale", Folder: "kernels/scale", Sources: "s"}, Result: &change.Result{Outcome: gates.Pass, Line: "PASS scale: faster"}},
	}}})
	w.apply(change.Asked{ID: "comment-1", Comment: w.asked.ID, By: "olga", Request: grammar.Read("/explain"), Head: f.Head})
	w.apply(change.Answered{ID: "comment-1", OK: true, Answer: change.Answer{Kind: change.AnswerExplainNoKernel}})
	return w
}

// newWorldWithoutPlan is one whose pull request was seen and not planned.
func newWorldWithoutPlan(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{T: t}
	var err error
	w.hub, err = embedded.New(embedded.Options{Dir: t.TempDir(), Seed: 7, Limits: embedded.Limits{PerHour: -1, ContentPerMinute: -1, ContentPerHour: -1, PointsPerMinute: -1, Concurrent: -1}})
	w.no(err)
	t.Cleanup(func() { w.hub.Close() })
	w.repo, err = w.hub.CreateRepo(embedded.RepoOptions{Owner: "olga", Name: "kernels"})
	w.no(err)
	for _, branch := range []string{"main", "faster"} {
		_, err = w.repo.Push(branch, map[string]string{"scale.c": branch}, branch)
		w.no(err)
	}
	w.pr, err = w.repo.OpenPR(embedded.PROptions{Title: "Faster", Head: "faster", Author: "olga"})
	w.no(err)
	w.asked, err = w.pr.Comment("olga", "/explain")
	w.no(err)
	w.state = change.New(change.ID{Kind: change.Pull, Repo: 7, Number: w.pr.Number()})
	w.apply(change.Seen{Facts: change.Facts{Repo: "olga/kernels", Head: w.pr.HeadSHA(), Base: "main", Open: true}})
	return w
}

func (w *world) no(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) apply(e change.Event) { w.state.Apply(w.state.Seq+1, time.Unix(1e9, 0), e) }

// token is that of a new App's installation, as a workflow has it.
func (w *world) token(slug string, may map[string]string) *client.GitHub { return w.jobs(slug, may)() }

// jobs are those of a workflow: each has a token of the same installation.
func (w *world) jobs(slug string, may map[string]string) func() *client.GitHub {
	w.Helper()
	key, err := testKey()
	w.no(err)
	app, err := w.hub.CreateApp(embedded.AppOptions{Slug: slug, Key: key, Permissions: may})
	w.no(err)
	in, err := app.Install(w.repo)
	w.no(err)
	return func() *client.GitHub {
		w.Helper()
		h, err := client.NewToken(in.Token(), client.Options{Checks: true, BaseURL: w.hub.URL(), Transport: &w.lists, Sleep: func(context.Context, time.Duration) error { return nil }})
		w.no(err)
		return h
	}
}

// publish tells what is known, and notes what was told unless the program has crashed
// before it could.
func (w *world) publish(p *publish.Publisher, noted bool) error {
	out, err := p.Publish(w.Context(), present.View{State: w.state})
	if noted {
		w.apply(out)
	}
	return err
}

// shows wants each check once, and so many comments.
func (w *world) shows(what string, comments int) {
	w.Helper()
	seen := map[string]int{}
	for _, c := range w.repo.Checks(w.pr.HeadSHA()) {
		seen[c.Name]++
		if c.Conclusion != "success" {
			w.Errorf("%s: %s is %s %s", what, c.Name, c.Status, c.Conclusion)
		}
	}
	if seen["kernelgate"] != 1 || seen["kernelgate / scale"] != 1 || len(seen) != 2 {
		w.Errorf("%s: checks %v", what, seen)
	}
	if n := len(w.pr.Comments()); n != comments {
		w.Errorf("%s: %d comments, want %d", what, n, comments)
	}
}

func TestNothingIsSaidTwice(t *testing.T) {
	w := newWorld(t)
	p := &publish.Publisher{GitHub: w.token("gate", nil)}
	w.no(w.publish(p, false))
	w.shows("told", 3)
	w.no(w.publish(&publish.Publisher{GitHub: p.GitHub}, true))
	w.shows("after a crash", 3)
	if !w.state.Commands[0].Answered || w.state.Commands[0].Replied == 0 || w.state.Comment.ID == 0 || len(w.state.Checks) != 2 || w.state.NeedsPublish {
		t.Errorf("noted: %+v", w.state)
	}
	rq, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, fmt.Sprintf("%s/repos/olga/kernels/issues/comments/%d", w.hub.URL(), w.state.Comment.ID), nil)
	w.no(err)
	rq.Header.Set("Authorization", "Bearer "+w.hub.CreateToken("olga"))
	answer, err := http.DefaultClient.Do(rq)
	w.no(err)
	answer.Body.Close()
	if len(w.pr.Comments()) != 2 {
		t.Fatalf("deleting the comment: %s", answer.Status)
	}
	w.state.Comment.Digest = "of something else"
	w.no(w.publish(p, true))
	w.shows("after somebody deleted the comment", 3)
}

// What a bot has written that did not know that another leads is put right, once that is known: its check, which is newer,
// says what it should, and its second comment and reply are gone.
func TestDoubted(t *testing.T) {
	w := newWorld(t)
	h := w.token("gate", nil)
	w.no(w.publish(&publish.Publisher{GitHub: h}, true))
	w.shows("told", 3)
	ctx := t.Context()
	late := client.Check{Name: "kernelgate", HeadSHA: w.pr.HeadSHA(), ExternalID: w.state.ID.String(), Status: "in_progress", Title: "Reading the change", Summary: "Late."}
	for _, key := range []string{"kernelgate", "kernelgate / scale"} {
		have := w.state.Checks[change.CheckKey(key, w.pr.HeadSHA())]
		w.no(h.UpdateCheck(ctx, "olga/kernels", have.ID, client.Check{Status: "in_progress", Title: "Late", Summary: "Late."}))
	}
	_, err := h.CreateCheck(ctx, "olga/kernels", late)
	w.no(err)
	w.no(h.EditComment(ctx, "olga/kernels", w.state.Comment.ID, present.Marker(w.state.ID)+"\nLate."))
	for _, marker := range []string{present.Marker(w.state.ID), present.ReplyMarker("comment-1")} {
		_, err := h.CreateComment(ctx, "olga/kernels", w.pr.Number(), marker+"\nLate.")
		w.no(err)
	}
	w.no(w.publish(&publish.Publisher{GitHub: h}, true))
	if c, _ := w.repo.Check(w.pr.HeadSHA(), "kernelgate"); c.Title != "Reading the change" {
		t.Fatalf("nobody has doubts, and the check says %q", c.Title)
	}
	w.apply(change.RepublishAsked{})
	w.no(w.publish(&publish.Publisher{GitHub: h}, true))
	for _, name := range []string{"kernelgate", "kernelgate / scale"} {
		if c, _ := w.repo.Check(w.pr.HeadSHA(), name); c.Status != "completed" || c.Conclusion != "success" {
			t.Errorf("%s is %s %s: %s", name, c.Status, c.Conclusion, c.Title)
		}
	}
	if n := len(w.pr.Comments()); n != 3 || w.state.NeedsPublish || w.state.Republish {
		t.Errorf("%d comments, dirty %v, doubted %v", n, w.state.NeedsPublish, w.state.Republish)
	}
	for _, c := range w.pr.Comments() {
		if strings.Contains(c.Body, "Late.") {
			t.Errorf("a comment still says %s", c.Body)
		}
	}
}

// A lister counts how often checks and comments are listed, and every write.
type lister struct{ times, comments, writes atomic.Int64 }

func (l *lister) RoundTrip(rq *http.Request) (*http.Response, error) {
	if rq.Method == http.MethodGet && strings.HasSuffix(rq.URL.Path, "/check-runs") {
		l.times.Add(1)
	}
	if rq.Method == http.MethodGet && strings.HasSuffix(rq.URL.Path, "/comments") {
		l.comments.Add(1)
	}
	if rq.Method != http.MethodGet {
		l.writes.Add(1)
	}
	return http.DefaultTransport.RoundTrip(rq)
}

// One after whom another pull request with the same head has spoken speaks once more, and
// lists what is there once for that.
func TestOvertaken(t *testing.T) {
	w := newWorld(t)
	h := w.token("gate", nil)
	w.no(w.publish(&publish.Publisher{GitHub: h}, true))
	w.apply(change.Published{AnnouncedDigest: "something"})
	_, err := h.CreateCheck(t.Context(), "olga/kernels", client.Check{Name: "kernelgate", HeadSHA: w.pr.HeadSHA(), ExternalID: "pull.7.99", Status: "completed", Conclusion: "failure", Title: "Another's", Summary: "Another's"})
	w.no(err)
	was := w.lists.times.Load()
	w.no(w.publish(&publish.Publisher{GitHub: h}, true))
	if n := w.lists.times.Load() - was; n != 1 {
		t.Errorf("checks were listed %d times", n)
	}
	if c, ok := w.repo.Check(w.pr.HeadSHA(), "kernelgate"); !ok || c.Conclusion != "success" {
		t.Errorf("the last word is %+v", c)
	}
}

// An answer that is lost leaves open whether a thing was made. It is looked for at once,
// since a workflow has no second time.
func TestLostAnswers(t *testing.T) {
	w := newWorld(t)
	h := w.token("gate", nil)
	w.hub.SetFaults(embedded.Faults{Rate: 1, Kinds: []embedded.FaultKind{embedded.LostAnswer}, Only: func(r *http.Request) bool {
		return r.Method == http.MethodPost && !strings.Contains(r.URL.Path, "reactions")
	}})
	w.no(w.publish(&publish.Publisher{GitHub: h}, true))
	w.shows("with every answer lost", 3)
	var ids []int64
	for _, c := range w.pr.Comments() {
		ids = append(ids, c.ID)
	}
	if !slices.Contains(ids, w.state.Comment.ID) || !slices.Contains(ids, w.state.Commands[0].Replied) {
		t.Errorf("noted the comment %d and the reply %d, want two of %v", w.state.Comment.ID, w.state.Commands[0].Replied, ids)
	}
	for _, c := range w.repo.Checks(w.pr.HeadSHA()) {
		if got := w.state.Checks[change.CheckKey(c.Name, w.pr.HeadSHA())].ID; got != c.ID {
			t.Errorf("%s is noted as %d, want %d", c.Name, got, c.ID)
		}
	}
}

// What the token may not do is tried once where there is another way to tell the verdict;
// where there is none, it stays an error.
func TestDenied(t *testing.T) {
	w := newWorld(t)
	h := w.token("reader", map[string]string{"checks": "read", "contents": "read", "issues": "read", "metadata": "read", "pull_requests": "read"})
	lenient := &publish.Publisher{GitHub: h, Lenient: true}
	for range 2 {
		out, err := lenient.Publish(t.Context(), present.View{State: w.state})
		if err != nil || len(out.Checks) > 0 || out.Comment != nil || len(out.Replies) > 0 {
			t.Errorf("nothing may be written, and %+v is noted (%v)", out, err)
		}
		w.apply(out)
	}
	if len(lenient.Denied) != 2 || lenient.MayCheck() {
		t.Errorf("denied: %v, want one for checks and one for comments", lenient.Denied)
	}
	if out, err := (&publish.Publisher{GitHub: h}).Replies(t.Context(), present.View{State: w.state}); err != nil || len(out.Replies) > 0 {
		t.Errorf("no reply may be written, and %v is noted (%v)", out.Replies, err)
	}
	if err := w.publish(&publish.Publisher{GitHub: h}, true); err == nil || w.state.Commands[0].Replied != 0 {
		t.Errorf("without checks there is no verdict, and this is %v", err)
	}
}

// A comment with our marker may be another program's. Where it is not known who we are,
// that is found out by trying.
func TestAnothersComment(t *testing.T) {
	w := newWorld(t)
	other := w.token("parrot", nil)
	_, err := other.CreateComment(t.Context(), "olga/kernels", w.pr.Number(), present.Marker(w.state.ID)+"\nPolly wants a cracker.")
	w.no(err)
	job := w.jobs("mute", map[string]string{"checks": "read", "contents": "read", "issues": "write", "metadata": "read", "pull_requests": "write"})
	for range 3 {
		w.no(w.publish(&publish.Publisher{GitHub: job(), Lenient: true}, false))
	}
	var by []string
	for _, c := range w.pr.Comments() {
		by = append(by, c.Author)
	}
	if got := strings.Join(by, " "); got != "olga parrot[bot] mute[bot] mute[bot]" {
		t.Errorf("comments by %s, want our sticky one and one reply", got)
	}
}
