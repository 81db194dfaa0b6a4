package embedded_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

func TestProtectionHoldsAMergeUp(t *testing.T) {
	t.Parallel()
	type report struct{ kind, value string }
	tests := map[string]struct {
		reports []report
		merges  bool
	}{
		"nothing":                      {nil, false},
		"check succeeds":               {[]report{{"check", "success"}}, true},
		"check is neutral":             {[]report{{"check", "neutral"}}, true},
		"check is skipped":             {[]report{{"check", "skipped"}}, true},
		"check fails":                  {[]report{{"check", "failure"}}, false},
		"check is cancelled":           {[]report{{"check", "cancelled"}}, false},
		"check wants action":           {[]report{{"check", "action_required"}}, false},
		"check fails, then succeeds":   {[]report{{"check", "failure"}, {"check", "success"}}, true},
		"check succeeds, then fails":   {[]report{{"check", "success"}, {"check", "failure"}}, false},
		"status succeeds":              {[]report{{"status", "success"}}, true},
		"status is pending":            {[]report{{"status", "pending"}}, false},
		"check good, status bad":       {[]report{{"check", "success"}, {"status", "failure"}}, false},
		"check bad, status good":       {[]report{{"check", "failure"}, {"status", "success"}}, false},
		"check and status both good":   {[]report{{"check", "success"}, {"status", "success"}}, true},
		"a check of another name only": {[]report{{"other", "success"}}, false},
	}
	hub := newWorld(t, embedded.Options{})
	hub.repo.Protect("main", "kernelgate")
	c := hub.bot()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := hub.in(t)
			branch := strings.NewReplacer(" ", "-", ",", "").Replace(name)
			w.push(branch, map[string]string{branch + ".cu": "two\n"}, name)
			pr := w.open(embedded.PROptions{Title: name, Head: branch})
			for _, r := range tt.reports {
				switch r.kind {
				case "check":
					w.check(c, pr.HeadSHA(), "kernelgate", r.value)
				case "other":
					w.check(c, pr.HeadSHA(), "other", r.value)
				case "status":
					_, _, err := w.client(w.hub.CreateToken("alice")).Repositories.CreateStatus(w.ctx, "alice", "kernels", pr.HeadSHA(), &github.RepoStatus{State: &r.value, Context: github.String("kernelgate")})
					w.no(err)
				}
			}
			err := pr.Merge("alice")
			if tt.merges {
				w.no(err)
			} else if err == nil || !strings.Contains(err.Error(), `405 Required status check "kernelgate"`) {
				t.Errorf("refused with %v", err)
			}
			if got := pr.State().Merged; got != tt.merges {
				t.Errorf("merged is %v, want %v", got, tt.merges)
			}
		})
	}
}

func TestProtectionByApp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	w.repo.ProtectBranch("main", embedded.Protection{Checks: []embedded.RequiredCheck{{Context: "kernelgate", AppID: w.app.ID()}}, Strict: true})
	pr := w.opened()
	_, _, err := w.person("alice").Repositories.CreateStatus(w.ctx, "alice", "kernels", pr.HeadSHA(), &github.RepoStatus{State: github.String("success"), Context: github.String("kernelgate")})
	w.no(err)
	if err := pr.Merge("alice"); err == nil || !strings.Contains(err.Error(), "expected") {
		t.Errorf("a status by someone else let the merge through: %v", err)
	}
	w.check(w.bot(), pr.HeadSHA(), "kernelgate", "success")
	w.push("main", map[string]string{"z.cu": "z\n"}, "meanwhile")
	if err := pr.Merge("alice"); err == nil || !strings.Contains(err.Error(), "out of date") {
		t.Errorf("an outdated head was merged: %v", err)
	}
}

// queued returns a world with two pull requests in the merge queue.
func queued(t *testing.T) (w *world, first, second *embedded.PR) {
	w = newWorld(t, embedded.Options{})
	w.repo.ProtectBranch("main", embedded.Protection{Checks: []embedded.RequiredCheck{{Context: "kernelgate"}}, Queue: true})
	first = w.opened()
	w.push("other", map[string]string{"b.cu": "two\n"}, "other")
	second = w.open(embedded.PROptions{Title: "Other", Head: "other"})
	if err := w.repo.Enqueue("alice", first); err == nil {
		t.Error("a pull request without its check could be queued")
	}
	for _, pr := range []*embedded.PR{first, second} {
		w.check(w.bot(), pr.HeadSHA(), "kernelgate", "success")
		w.no(w.repo.Enqueue("alice", pr))
	}
	return w, first, second
}

func TestMergeQueueMerges(t *testing.T) {
	t.Parallel()
	w, first, second := queued(t)
	if err := first.Merge("alice"); err == nil || !strings.Contains(err.Error(), "merge queue") {
		t.Errorf("merge past the queue: %v", err)
	}
	heads := w.repo.QueueHeads()
	w.quiet()
	e := last[*github.MergeGroupEvent](w)
	if len(heads) != 2 || e.GetAction() != "checks_requested" || e.MergeGroup.GetHeadSHA() != heads[1] || e.MergeGroup.GetBaseSHA() != heads[0] ||
		!strings.HasPrefix(e.MergeGroup.GetHeadRef(), "refs/heads/gh-readonly-queue/main/pr-2-") {
		t.Fatalf("queue %v, event %v", heads, e)
	}
	w.check(w.bot(), heads[1], "kernelgate", "success")
	if first.State().Merged || second.State().Merged {
		t.Error("the second group merged before the first")
	}
	w.check(w.bot(), heads[0], "kernelgate", "success")
	if !first.State().Merged || !second.State().Merged || w.repo.Head("main") != heads[1] || len(w.repo.QueueHeads()) != 0 {
		t.Errorf("after both checks: %+v, %+v", first.State(), second.State())
	}
	w.quiet()
	if e := last[*github.MergeGroupEvent](w); e.GetAction() != "destroyed" {
		t.Errorf("the last event is %s", e.GetAction())
	}
}

func TestMergeQueueDropsWhatFails(t *testing.T) {
	t.Parallel()
	w, first, second := queued(t)
	before := w.repo.QueueHeads()
	w.check(w.bot(), before[0], "kernelgate", "failure")
	after := w.repo.QueueHeads()
	if len(after) != 1 || slices.Contains(before, after[0]) || first.State().Merged || !first.State().Open {
		t.Fatalf("queue %v became %v; first: %+v", before, after, first.State())
	}
	w.check(w.bot(), after[0], "kernelgate", "success")
	if first.State().Merged || !second.State().Merged {
		t.Errorf("first merged %v, second merged %v", first.State().Merged, second.State().Merged)
	}
	w.quiet()
	names := w.hooks.names()
	for event, want := range map[string]int{"merge_group.checks_requested": 3, "merge_group.destroyed": 3, "pull_request.dequeued": 1, "pull_request.enqueued": 2} {
		if got := count(names, event); got != want {
			t.Errorf("%d of %s, want %d", got, event, want)
		}
	}
}

func TestMergeQueueForgetsAChangedPullRequest(t *testing.T) {
	t.Parallel()
	w, first, second := queued(t)
	w.push("faster", map[string]string{"a.cu": "changed\n"}, "after enqueueing")
	if heads := w.repo.QueueHeads(); len(heads) != 1 {
		t.Fatalf("queue: %v", heads)
	}
	w.no(second.Close("alice"))
	if heads := w.repo.QueueHeads(); len(heads) != 0 || !first.State().Open {
		t.Errorf("queue: %v", heads)
	}
}

func count(names []string, want string) int {
	n := 0
	for _, name := range names {
		if name == want {
			n++
		}
	}
	return n
}
