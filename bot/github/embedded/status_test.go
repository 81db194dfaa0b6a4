package embedded_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// TestStatuses checks that the newest status of a context counts, that all statuses are listed, and
// that the hub refuses the same statuses as GitHub, with the same codes.
func TestStatuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	sha, alice := w.repo.Head("main"), w.person("alice")
	set := func(c *github.Client, s github.RepoStatus) error {
		_, _, err := c.Repositories.CreateStatus(w.ctx, "alice", "kernels", sha, &s)
		return err
	}
	text := func(s string) *string { return &s }
	for _, state := range []string{"pending", "failure"} {
		w.no(set(alice, github.RepoStatus{State: &state, Context: text("kernelgate"), TargetURL: text("https://example.com")}))
	}
	list, _, err := alice.Repositories.ListStatuses(w.ctx, "alice", "kernels", sha, nil)
	w.no(err)
	if len(list) != 2 || list[0].GetState() != "failure" || list[1].GetState() != "pending" || list[0].GetCreator().GetLogin() != "alice" {
		t.Errorf("listed: %v", list)
	}
	if now := w.repo.Statuses(sha); len(now) != 1 || now[0].State != "failure" {
		t.Errorf("what counts: %v", now)
	}
	for name, test := range map[string]struct {
		status      github.RepoStatus
		field, code string
	}{
		"a state":      {github.RepoStatus{State: text("passed")}, "state", "invalid"},
		"a long text":  {github.RepoStatus{State: text("success"), Description: text(strings.Repeat("ü", 141))}, "description", "invalid"},
		"a long name":  {github.RepoStatus{State: text("success"), Context: text(strings.Repeat("x", 256))}, "context", "invalid"},
		"a web script": {github.RepoStatus{State: text("success"), TargetURL: text("javascript:alert(1)")}, "target_url", "invalid"},
	} {
		if refusal := w.wantStatus(set(alice, test.status), 422); len(refusal.Errors) != 1 || refusal.Errors[0].Field != test.field || refusal.Errors[0].Code != test.code {
			t.Errorf("%s: refused for %+v, want %s %s", name, refusal.Errors, test.field, test.code)
		}
	}
	w.no(set(alice, github.RepoStatus{State: text("success"), Description: text(strings.Repeat("ü", 140)), Context: text("characters")}))
	w.wantStatus(set(w.person("bob"), github.RepoStatus{State: text("success")}), 403)
	_, _, err = alice.Repositories.CreateStatus(w.ctx, "alice", "kernels", strings.Repeat("1", 40), &github.RepoStatus{State: text("success")})
	w.wantStatus(err, 422)
}

// TestStatusesEnd checks that a commit takes at most 1,000 statuses per context.
func TestStatusesEnd(t *testing.T) {
	t.Parallel()
	none := embedded.Limits{PerHour: -1, ContentPerMinute: -1, ContentPerHour: -1, PointsPerMinute: -1}
	w := newWorld(t, embedded.Options{Limits: none})
	sha, alice := w.repo.Head("main"), w.person("alice")
	set := func(context string) error {
		_, _, err := alice.Repositories.CreateStatus(w.ctx, "alice", "kernels", sha, &github.RepoStatus{State: github.String("pending"), Context: &context})
		return err
	}
	for n := range 1000 {
		if err := set("kernelgate"); err != nil {
			t.Fatal(fmt.Errorf("status %d: %w", n, err))
		}
	}
	if refusal := w.wantStatus(set("kernelgate"), 422); !strings.Contains(refusal.Error(), "maximum number of statuses") {
		t.Error(refusal)
	}
	w.no(set("another"))
}
