package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

func annotations(n int) []client.Annotation {
	var out []client.Annotation
	for i := range n {
		out = append(out, client.Annotation{Path: "a.cu", StartLine: i + 1, EndLine: i + 1, StartColumn: 1, EndColumn: 2, Level: "warning",
			Message: fmt.Sprintf("mark %d", i), Title: "registers", Full: "all of it"})
	}
	return out
}

func TestCheckFromQueuedToCompleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	sha, start := w.pr.HeadSHA(), w.clock.Now()
	c := client.Check{Name: "kernelgate", HeadSHA: sha, ExternalID: "run-1", DetailsURL: "https://example.com/runs/1", Status: "queued"}
	id, err := w.bot.CreateCheck(w.ctx, repo, c)
	w.no(err)
	c.Status, c.StartedAt, c.Title, c.Summary = "in_progress", start.Add(time.Minute), "Measuring", "round 1"
	w.no(w.bot.UpdateCheck(w.ctx, repo, id, c))
	c.Status, c.Conclusion, c.CompletedAt, c.Title, c.Text = "completed", "failure", start.Add(time.Hour), "DEFER", "table"
	c.Annotations = annotations(120)
	c.Actions = []client.Action{{Label: "Measure again", Description: "More rounds", Identifier: "rebench"}}
	w.no(w.bot.UpdateCheck(w.ctx, repo, id, c))

	got, ok := w.repo.Check(sha, "kernelgate")
	if !ok || got.ID != id || got.ExternalID != "run-1" || got.DetailsURL != c.DetailsURL || got.Status != "completed" || got.Conclusion != "failure" ||
		got.Title != "DEFER" || got.Summary != "round 1" || got.Text != "table" || !got.StartedAt.Equal(c.StartedAt) || !got.CompletedAt.Equal(c.CompletedAt) {
		t.Errorf("the check is %+v", got)
	}
	if len(got.Actions) != 1 || got.Actions[0].Identifier != "rebench" {
		t.Errorf("the buttons are %v", got.Actions)
	}
	seen := map[string]int{}
	for _, a := range got.Annotations {
		seen[a.GetMessage()]++
	}
	if len(got.Annotations) != 120 || len(seen) != 120 {
		t.Errorf("%d annotations, %d different, want 120", len(got.Annotations), len(seen))
	}

	// One more annotation: the update must send only this one.
	c.Annotations, c.AnnotationsSent = annotations(121), 120
	w.no(w.bot.UpdateCheck(w.ctx, repo, id, c))
	list, err := w.bot.ListChecks(w.ctx, repo, sha, "kernelgate")
	w.no(err)
	if len(list) != 1 || list[0].ID != id || list[0].Annotations != 121 || list[0].ExternalID != "run-1" || list[0].Conclusion != "failure" || list[0].Title != "DEFER" {
		t.Errorf("listed: %+v", list)
	}
}

func TestCreatedAtOnceWithManyAnnotations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	c := client.Check{Name: "kernelgate", HeadSHA: w.pr.HeadSHA(), Status: "completed", Conclusion: "success", Title: "PASS", Summary: "fine", Annotations: annotations(51)}
	_, err := w.bot.CreateCheck(w.ctx, repo, c)
	w.no(err)
	got, _ := w.repo.Check(w.pr.HeadSHA(), "kernelgate")
	if len(got.Annotations) != 51 || got.Conclusion != "success" {
		t.Errorf("%d annotations, %s", len(got.Annotations), got.Conclusion)
	}
	if n := w.wire.count("PATCH"); n != 1 {
		t.Errorf("%d updates, want 1", n)
	}
}

// TestAnnotationsThatWereLostHalfWay checks that after a failure between requests the caller can
// find out which annotations GitHub has, and continue.
func TestAnnotationsThatWereLostHalfWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	w.hub.SetFaults(embedded.Faults{Rate: 1, Kinds: []embedded.FaultKind{embedded.LostAnswer}, Only: func(r *http.Request) bool { return r.Method == "PATCH" }})
	c := client.Check{Name: "kernelgate", HeadSHA: w.pr.HeadSHA(), Status: "completed", Conclusion: "success", Title: "PASS", Summary: "fine", Annotations: annotations(150)}
	id, err := w.bot.CreateCheck(w.ctx, repo, c)
	if id == 0 || !errors.Is(err, client.ErrUnknown) {
		t.Fatalf("got %d, %v", id, err)
	}
	w.hub.SetFaults(embedded.Faults{})
	list, err := w.bot.ListChecks(w.ctx, repo, c.HeadSHA, c.Name)
	w.no(err)
	c.AnnotationsSent = list[0].Annotations
	w.no(w.bot.UpdateCheck(w.ctx, repo, id, c))
	if got, _ := w.repo.Check(c.HeadSHA, c.Name); len(got.Annotations) != 150 {
		t.Errorf("%d annotations, want 150", len(got.Annotations))
	}
}

func TestListChecksSeesItsOwnAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	key, err := testKey()
	w.no(err)
	other, err := w.hub.CreateApp(embedded.AppOptions{Slug: "other", Key: key})
	w.no(err)
	_, err = other.Install(w.repo)
	w.no(err)
	theirs, err := client.NewApp(other.ID(), other.PrivateKeyPEM(), w.options(client.Options{}))
	w.no(err)
	sha := w.pr.HeadSHA()
	var ids []int64
	for i, h := range []*client.GitHub{w.bot, theirs, w.bot} {
		id, err := h.CreateCheck(w.ctx, repo, client.Check{Name: "kernelgate", HeadSHA: sha, ExternalID: fmt.Sprint(i)})
		w.no(err)
		ids = append(ids, id)
	}
	_, err = w.bot.CreateCheck(w.ctx, repo, client.Check{Name: "another name", HeadSHA: sha})
	w.no(err)
	list, err := w.bot.ListChecks(w.ctx, repo, sha, "kernelgate")
	w.no(err)
	var got []int64
	for _, c := range list {
		got = append(got, c.ID)
	}
	if diff := cmp.Diff([]int64{ids[2], ids[0]}, got); diff != "" {
		t.Errorf("newest first (-want +got):\n%s", diff)
	}
	all, err := w.bot.ListChecks(w.ctx, repo, sha, "")
	w.no(err)
	if len(all) != 3 {
		t.Errorf("%d checks of any name, want 3", len(all))
	}
}

func TestChecksThatGitHubWouldRefuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	long := strings.Repeat("ä", client.MaxCheckText/2+2) // fewer characters than bytes
	button := client.Action{Label: "a", Description: "b", Identifier: "c"}
	mark := annotations(1)[0]
	tests := map[string]func(*client.Check){
		"no name":             func(c *client.Check) { c.Name = "" },
		"a short SHA":         func(c *client.Check) { c.HeadSHA = "abc123" },
		"an unknown status":   func(c *client.Check) { c.Status = "done" },
		"no conclusion":       func(c *client.Check) { c.Conclusion = "" },
		"a wrong conclusion":  func(c *client.Check) { c.Conclusion = "pass" },
		"concluded too early": func(c *client.Check) { c.Status = "queued" },
		"completed too early": func(c *client.Check) {
			c.Status, c.Conclusion, c.CompletedAt = "in_progress", "", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		},
		"no title":          func(c *client.Check) { c.Title = "" },
		"no summary":        func(c *client.Check) { c.Summary = "" },
		"a long summary":    func(c *client.Check) { c.Summary = long },
		"a long text":       func(c *client.Check) { c.Text = long },
		"a link to nowhere": func(c *client.Check) { c.DetailsURL = "javascript:alert(1)" },
		"four buttons":      func(c *client.Check) { c.Actions = []client.Action{button, button, button, button} },
		"a long label": func(c *client.Check) {
			c.Actions = []client.Action{{Label: strings.Repeat("a", 21), Description: "b", Identifier: "c"}}
		},
		"a long description": func(c *client.Check) {
			c.Actions = []client.Action{{Label: "a", Description: strings.Repeat("b", 41), Identifier: "c"}}
		},
		"a long identifier": func(c *client.Check) {
			c.Actions = []client.Action{{Label: "a", Description: "b", Identifier: strings.Repeat("c", 21)}}
		},
		"an empty button": func(c *client.Check) { c.Actions = []client.Action{{}} },
		"too many sent":   func(c *client.Check) { c.AnnotationsSent = 1 },
		"no line":         func(c *client.Check) { m := mark; m.StartLine = 0; c.Annotations = []client.Annotation{m} },
		"lines backwards": func(c *client.Check) {
			m := mark
			m.StartLine, m.EndLine = 3, 2
			c.Annotations = []client.Annotation{m}
		},
		"columns of two":   func(c *client.Check) { m := mark; m.EndLine = 9; c.Annotations = []client.Annotation{m} },
		"no path":          func(c *client.Check) { m := mark; m.Path = ""; c.Annotations = []client.Annotation{m} },
		"an unknown level": func(c *client.Check) { m := mark; m.Level = "error"; c.Annotations = []client.Annotation{m} },
		"no message":       func(c *client.Check) { m := mark; m.Message = ""; c.Annotations = []client.Annotation{m} },
		"a huge message":   func(c *client.Check) { m := mark; m.Message = long; c.Annotations = []client.Annotation{m} },
	}
	for name, spoil := range tests {
		c := client.Check{Name: "kernelgate", HeadSHA: w.pr.HeadSHA(), Status: "completed", Conclusion: "success", Title: "t", Summary: "s"}
		spoil(&c)
		if _, err := w.bot.CreateCheck(w.ctx, repo, c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if n := w.wire.count("POST /repos"); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	fits := client.Check{Name: "kernelgate", HeadSHA: w.pr.HeadSHA(), Status: "completed", Conclusion: "success", Title: "t", Summary: strings.Repeat("ä", client.MaxCheckText/2)}
	_, err := w.bot.CreateCheck(w.ctx, repo, fits)
	w.no(err)
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	h := w.newToken(w.hub.CreateToken("alice"), client.Options{})
	if h.UsesChecks() || !w.bot.UsesChecks() || !w.newToken("ghs_x", client.Options{Checks: true}).UsesChecks() {
		t.Error("checks are for Apps, statuses for personal tokens")
	}
	sha := w.pr.HeadSHA()
	w.no(h.SetStatus(w.ctx, repo, sha, client.Status{Context: "kernelgate", State: "pending"}))
	long := strings.Repeat("ü", 200)
	w.no(h.SetStatus(w.ctx, repo, sha, client.Status{Context: "kernelgate", State: "failure", Description: long, TargetURL: "https://example.com"}))
	got := w.repo.Statuses(sha)
	if s := got[0]; s.Context != "kernelgate" || s.State != "failure" || s.Description != strings.Repeat("ü", 139)+"…" || s.TargetURL != "https://example.com" {
		t.Errorf("the newest of %d statuses is %+v", len(got), s)
	}
	for name, s := range map[string]client.Status{"no context": {State: "success"}, "an unknown state": {Context: "c", State: "pass"}, "a bad link": {Context: "c", State: "success", TargetURL: "x"}} {
		if h.SetStatus(w.ctx, repo, sha, s) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	_, err := h.CreateCheck(w.ctx, repo, client.Check{Name: "kernelgate", HeadSHA: sha})
	w.refusal(err, 403)
}
