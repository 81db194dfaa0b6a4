package client_test

import (
	"bytes"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/github/embedded/openapi"
)

var byNumber = regexp.MustCompile(`^/repositories/\d+`)

// An inspector compares each request with GitHub's description before it sends it.
type inspector struct {
	t    *testing.T
	d    *openapi.Description
	next http.RoundTripper
	mu   sync.Mutex
	seen map[string]bool
}

func (i *inspector) RoundTrip(rq *http.Request) (*http.Response, error) {
	var body []byte
	if rq.Body != nil {
		var err error
		if body, err = io.ReadAll(rq.Body); err != nil {
			return nil, err
		}
		rq = rq.Clone(rq.Context())
		rq.Body = io.NopCloser(bytes.NewReader(body))
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	path := strings.TrimPrefix(rq.URL.Path, "/api/v3")
	if path == "/api/graphql" { // the description covers REST only
		return i.next.RoundTrip(rq)
	}
	// GitHub redirects to a repository's number, and describes only the form with its name.
	path = byNumber.ReplaceAllString(path, "/repos/"+repo)
	operation := i.d.Operation(rq.Method, path)
	if operation == nil {
		i.t.Errorf("GitHub has no %s %s", rq.Method, path)
		return i.next.RoundTrip(rq)
	}
	i.seen[rq.Method+" "+operation.Path] = true
	for _, wrong := range operation.Request(rq.URL.Query(), body) {
		i.t.Errorf("%s %s: %s", rq.Method, operation.Path, wrong)
	}
	return i.next.RoundTrip(rq)
}

// TestRequestsMatchGitHubsDescription calls every method of the client once.
func TestRequestsMatchGitHubsDescription(t *testing.T) {
	t.Parallel()
	d := openapi.Load(t)
	w := newWorld(t, client.Options{}, embedded.Limits{})
	eye := &inspector{t: t, d: d, next: w.wire, seen: map[string]bool{}}
	h := w.newApp(client.Options{Transport: eye})
	personal := w.newToken(w.hub.CreateToken("alice"), client.Options{Transport: eye})
	w.app.SetHook(w.hub.URL()+"/no/such/page", "secret") // this page answers 404
	w.no(w.hub.Quiet(w.ctx))

	sha, n := w.pr.HeadSHA(), w.pr.Number()
	theirs, err := w.pr.Comment("alice", "/rebench")
	w.no(err)
	remark, err := w.pr.CommentOn("alice", "a.cu", 1, "/rebench")
	w.no(err)
	w.no(w.hub.Quiet(w.ctx))
	full := client.Check{Name: "kernelgate", HeadSHA: sha, ExternalID: "1", DetailsURL: "https://example.com", Status: "completed", Conclusion: "failure",
		StartedAt: w.clock.Now(), CompletedAt: w.clock.Now(), Title: "DEFER", Summary: "s", Text: "t", Annotations: annotations(101),
		Actions: []client.Action{{Label: "Measure again", Description: "More rounds", Identifier: "rebench"}}}
	var check, comment int64
	issue := 0
	steps := []struct {
		method string
		call   func() error
	}{
		{"Me", func() error { _, err := h.Me(w.ctx); return err }},
		{"Me", func() error { _, err := personal.Me(w.ctx); return err }},
		{"Installations", func() error { _, err := h.Installations(w.ctx); return err }},
		{"WithoutIssues", func() error { _, err := h.WithoutIssues(w.ctx); return err }},
		{"Repositories", func() error { _, err := h.Repositories(w.ctx, w.inst.ID()); return err }},
		{"Number", func() error { _, err := h.Number(w.ctx, repo); return err }},
		{"Repository", func() error { _, err := h.Repository(w.ctx, repo); return err }},
		{"Reaches", func() error { _, err := h.Reaches(w.ctx, repo, w.repo.ID()); return err }},
		{"CreateCheck", func() (err error) { check, err = h.CreateCheck(w.ctx, repo, full); return err }},
		{"UpdateCheck", func() error { return h.UpdateCheck(w.ctx, repo, check, full) }},
		{"UpdateCheck", func() error { return h.UpdateCheck(w.ctx, repo, check, client.Check{Status: "in_progress"}) }},
		{"ListChecks", func() error { _, err := h.ListChecks(w.ctx, repo, sha, "kernelgate"); return err }},
		{"SetStatus", func() error {
			return personal.SetStatus(w.ctx, repo, sha, client.Status{Context: "c", State: "success", Description: "d", TargetURL: "https://example.com"})
		}},
		{"ListStatuses", func() error {
			all, err := personal.ListStatuses(w.ctx, repo, sha, "c")
			if err == nil && len(all) != 1 {
				t.Errorf("%d statuses, want 1", len(all))
			}
			return err
		}},
		{"CreateComment", func() (err error) { comment, err = h.CreateComment(w.ctx, repo, n, "x"); return err }},
		{"EditComment", func() error { return h.EditComment(w.ctx, repo, comment, "y") }},
		{"DeleteComment", func() error { return h.DeleteComment(w.ctx, repo, comment) }},
		{"ListComments", func() error { _, err := h.ListComments(w.ctx, repo, n); return err }},
		{"CreateIssue", func() (err error) { issue, err = h.CreateIssue(w.ctx, repo, "t", "b", "kernelgate"); return err }},
		{"CreateIssue", func() error { _, err := personal.CreateIssue(w.ctx, repo, "t", "b"); return err }},
		{"EditIssue", func() error { return h.EditIssue(w.ctx, repo, issue, "t", "c") }},
		{"Issue", func() error { _, err := h.Issue(w.ctx, repo, issue); return err }},
		{"CloseIssue", func() error { return h.CloseIssue(w.ctx, repo, issue) }},
		{"MyIssues", func() error {
			all, err := h.MyIssues(w.ctx, repo, "kernelgate")
			if err == nil && len(all) != 1 {
				t.Errorf("%d issues, want 1", len(all))
			}
			return err
		}},
		{"React", func() error { return h.React(w.ctx, repo, theirs.ID, "eyes") }},
		{"ReactOnLine", func() error { return h.ReactOnLine(w.ctx, repo, remark.ID, "eyes") }},
		{"Permission", func() error { _, err := h.Permission(w.ctx, repo, "alice"); return err }},
		{"PermissionByID", func() error {
			_, user, err := h.PermissionByID(w.ctx, w.repo.ID(), repo, "alice")
			if err == nil && user == 0 {
				t.Error("GitHub does not say the user's number")
			}
			return err
		}},
		{"Pull", func() error { _, err := h.Pull(w.ctx, repo, n); return err }},
		{"OpenPulls", func() error { _, err := h.OpenPulls(w.ctx, repo); return err }},
		{"Reviews", func() error { _, err := h.Reviews(w.ctx, repo, n); return err }},
		{"Pushers", func() error {
			by, err := h.Pushers(w.ctx, repo, n, sha)
			if err == nil && len(by) != 1 {
				t.Errorf("%s was pushed by %q", sha, by)
			}
			return err
		}},
		{"MergeQueue", func() error { _, err := h.MergeQueue(w.ctx, repo, "main"); return err }},
		{"Retargeted", func() error { _, err := h.Retargeted(w.ctx, repo, n); return err }},
		{"Check", func() error { return h.Check(w.ctx) }},
		{"GitCredential", func() error { _, _, err := h.GitCredential(w.ctx, repo); return err }},
		{"FailedDeliveries", func() error {
			failed, _, err := h.FailedDeliveries(w.ctx, "")
			if err == nil && len(failed) == 0 {
				t.Error("no delivery has failed")
			}
			return err
		}},
		{"Redeliver", func() error { return h.Redeliver(w.ctx, w.app.Hook().Deliveries()[0].ID) }},
	}
	called := map[string]bool{"UsesChecks": true, "CloneURL": true, "Stats": true, "Ours": true, "Account": true, "ListsAll": true, "Shed": true, "GitRefused": true} // these send nothing
	for _, s := range steps {
		called[s.method] = true
		if err := s.call(); err != nil {
			t.Errorf("%s: %v", s.method, err)
		}
	}
	for m := range reflect.TypeFor[*client.GitHub]().Methods() {
		if !called[m.Name] {
			t.Errorf("%s was not compared", m.Name)
		}
	}
	if len(eye.seen) < 20 {
		t.Errorf("only %d kinds of requests were compared", len(eye.seen))
	}
}
