package controller_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/bot/sweep"
	watching "github.com/kernelgate/kernelgate/bot/watch"
	measuring "github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
	"github.com/kernelgate/kernelgate/runners/work/search/perform"
)

// A watchedWorld is a world with a watch of the default branch, every night at 02:00. The watch compares
// with the release v1.0.0, which is the first commit.
type watchedWorld struct {
	*world
	clock  *atomic.Int64
	nights int
	runs   int // how many runs of watches should be done by now
}

func watchedNightly(t *testing.T, opt worldOptions) *watchedWorld {
	w := newWatched(t, opt)
	w.begin()
	w.Cleanup(func() { w.no(w.running.stop()) })
	w.measured(1)
	return w
}

// newWatched is such a world before its bot begins.
func newWatched(t *testing.T, opt worldOptions) *watchedWorld {
	clock := &atomic.Int64{}
	clock.Store(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC).UnixNano())
	opt.now = func() time.Time { return time.Unix(0, clock.Load()).UTC() }
	opt.watch = []sweep.Schedule{{Repository: "*", At: 2 * time.Hour, Every: 24 * time.Hour, Watch: &sweep.Watch{Against: watching.Release, Slower: 0.01}}}
	opt.apart = true
	w := &watchedWorld{world: newWorld(t, opt), clock: clock}
	w.no(w.repo.Tag("v1.0.0", w.repo.Head("main"), "the first release"))
	return w
}

// begin starts the bot and waits until the bot knows the repositories. If the clock jumped before that, the
// bot's tokens would expire while it uses them, and it would need longer.
func (w *watchedWorld) begin() {
	w.Helper()
	w.start()
	w.poll("the first look at GitHub", func() bool { return !w.running.bot.Counts().Reconciled.IsZero() })
}

// night pushes a source to the default branch, lets a day pass, and waits until the watch has measured the
// source.
func (w *watchedWorld) night(source string) {
	w.Helper()
	if source != "" {
		_, err := w.repo.Push("main", map[string]string{sourceFile: source}, "Change")
		w.no(err)
		w.settle()
	}
	w.clock.Add(int64(24 * time.Hour))
	w.measured(1)
}

// measured waits until the watch of this night has measured this number of kernels, and until the bot has
// nothing left to do.
func (w *watchedWorld) measured(kernels int) {
	w.Helper()
	w.begun()
	w.runs += kernels
	w.poll("the runs of a watch", func() bool {
		rows, err := w.running.ledger.Runs(w.ctx, ledger.RunFilter{RepoID: w.repo.ID(), Phase: change.Done, Limit: 500})
		w.no(err)
		n := 0
		for _, r := range rows {
			if r.Change.Kind == change.Watch {
				n++
			}
		}
		return n >= w.runs
	})
	w.settle()
}

// begun waits until the bot has decided on the watch of this night.
func (w *watchedWorld) begun() {
	w.Helper()
	w.nights++
	w.poll("the decision on a watch", func() bool {
		n := 0
		_, err := w.running.journal.Replay(w.ctx, 0, func(e journal.Event) error {
			if e.Kind == "watch_due" {
				n++
			}
			return nil
		})
		w.no(err)
		return n >= w.nights
	})
}

// issue is the only issue of the repository.
func (w *watchedWorld) issue() embedded.IssueState {
	w.Helper()
	all := w.repo.Issues()
	if len(all) != 1 {
		w.Fatalf("there are %d issues, want one: %+v", len(all), all)
	}
	return all[0]
}

// shows checks the only issue.
func (w *watchedWorld) shows(open bool, comments int, texts ...string) {
	w.Helper()
	i := w.issue()
	if i.Open != open || len(i.Comments) != comments || i.Author != "kernelgate[bot]" || i.Title != "kernels/scale: slower than v1.0.0" {
		w.Fatalf("%+v, want open %v with %d comments", i, open, comments)
	}
	all := i.Body
	for _, c := range i.Comments {
		all += "\n" + c.Body
	}
	for _, text := range texts {
		if !strings.Contains(all, text) {
			w.Errorf("the issue does not say %q:\n%s", text, all)
		}
	}
}

// One slowdown has one issue. The bot opens the issue on the first night that proves the slowdown, and
// closes it on the first night that proves its end, even if the bot restarts in between. The bot opens the
// issue again when the kernel becomes slower again, but not if a person has closed it.
func TestWatch(t *testing.T) {
	w := watchedNightly(t, worldOptions{})
	if all := w.repo.Issues(); len(all) != 0 {
		t.Fatalf("the release itself has issues: %+v", all)
	}
	w.night("// speed 0.8\n")
	slow := w.repo.Head("main")
	w.shows(true, 0, "**Cause: code.** The sources of the kernel changed", "mission", "slower |", slow[:12], "made the kernel slower", "found by the watch of 2026-05-05 02:00 UTC, last measured by the watch of 2026-05-05")
	number := w.issue().Number
	w.no(w.running.stop())
	w.begin()
	w.settle()
	w.night("")
	w.shows(true, 0, "found by the watch of 2026-05-05 02:00 UTC, last measured by the watch of 2026-05-06")
	w.night("// speed 1.0 again\n")
	w.shows(false, 1, "The slowdown is gone")
	w.night("")
	w.shows(false, 1)
	w.night("// speed 0.7\n")
	w.shows(true, 1, "found by the watch of 2026-05-09")
	w.no(w.repo.CloseIssue("walt", number))
	w.night("")
	w.shows(false, 1)
	w.night("// speed 1.0 at last\n")
	w.shows(false, 1)
	w.night("// speed 0.75\n")
	w.shows(true, 1, "found by the watch of 2026-05-12")
	w.no(w.repo.DeleteIssue("olga", number))
	w.night("")
	if all := w.repo.Issues(); len(all) != 0 {
		t.Errorf("a deleted issue came back: %+v", all)
	}
	if checks := w.repo.Checks(slow); len(checks) != 0 {
		t.Errorf("a watch has checks: %+v", checks)
	}
	known, err := w.running.ledger.Watched(w.ctx, w.repo.ID())
	w.no(err)
	if len(known) != 1 || known[0].Folder != "kernels/scale" || known[0].Regression == nil || known[0].Regression.Class != watching.Code {
		t.Errorf("the ledger has %+v", known)
	}
	main, err := w.running.ledger.OnMain(w.ctx, w.repo.ID(), "kernels/scale", 50)
	w.no(err)
	verdicts, err := w.running.ledger.Runs(w.ctx, ledger.RunFilter{RepoID: w.repo.ID(), Verdicts: true, Limit: 500})
	w.no(err)
	if len(main) == 0 || len(verdicts) == 0 {
		t.Error("nothing but watches was measured")
	}
	for _, r := range append(main, verdicts...) {
		if r.Change.Kind == change.Watch {
			t.Errorf("a watch is a point of the history, or one of the verdicts: %+v", r)
		}
	}
}

// Every device that blocks is watched, with its own state and its own issue.
func TestWatchOnDevices(t *testing.T) {
	w := newWatched(t, worldOptions{absent: true, others: map[string]fleet.Credential{"one": fleet.NewCredential("one's", "l4"), "two": fleet.NewCredential("two's", "h200")}})
	w.policy("{all: [l4, h200]}")
	w.begin()
	w.Cleanup(func() { w.no(w.running.stop()) })
	w.hireFor("l4")
	w.hireFor("h200")
	w.measured(2)
	night := func(source string, want ...string) {
		t.Helper()
		_, err := w.repo.Push("main", map[string]string{sourceFile: source}, "Change")
		w.no(err)
		w.settle()
		w.clock.Add(int64(24 * time.Hour))
		w.measured(2)
		var got []string
		for _, i := range w.repo.Issues() {
			got = append(got, fmt.Sprintf("%s, %v", i.Title, i.Open))
			device := strings.TrimSuffix(strings.TrimPrefix(i.Title, "kernels/scale on "), ": slower than v1.0.0")
			if !strings.Contains(i.Body, "`scale on "+device+"` on `main` is slower than") {
				t.Errorf("the issue %s says\n%s", i.Title, i.Body)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("after %q the issues are %q, want %q", source, got, want)
		}
	}
	night("// speed 1.0; h200: speed 0.8\n", "kernels/scale on h200: slower than v1.0.0, true")
	night("// speed 0.7; h200: speed 0.8 still\n", "kernels/scale on h200: slower than v1.0.0, true", "kernels/scale on l4: slower than v1.0.0, true")
	night("// speed 0.7; h200: speed 1.0 again\n", "kernels/scale on h200: slower than v1.0.0, false", "kernels/scale on l4: slower than v1.0.0, true")
	known, err := w.running.ledger.Watched(w.ctx, w.repo.ID())
	w.no(err)
	for _, s := range known {
		if b := s.Regression; s.Device == "l4" && (b == nil || b.Bisect == nil) || s.Device == "h200" && b != nil || s.Device != "l4" && s.Device != "h200" {
			t.Errorf("the ledger has %+v of %s", s.Regression, s.Device)
		}
	}
	if len(known) != 2 {
		t.Errorf("%d states are known", len(known))
	}
	w.policy("{block: [h200]}")
	w.clock.Add(int64(24 * time.Hour))
	w.measured(1)
	for _, i := range w.repo.Issues() {
		if i.Open {
			t.Errorf("the device is not watched any more: %s", i.Title)
		}
	}
}

// A new release that contains the slowdown does not end the regression: it is proven against v1.0.0, and
// watches go on with v1.0.0 until a person closes the issue. From then on the new release is the level.
func TestWatchNewRelease(t *testing.T) {
	w := watchedNightly(t, worldOptions{})
	w.night("// speed 0.8\n")
	w.shows(true, 0)
	w.no(w.repo.Tag("v1.1.0", w.repo.Head("main"), "the second release"))
	w.night("")
	w.shows(true, 0, "The release changed", "`v1.1.0`", "last measured by the watch of 2026-05-06")
	w.no(w.repo.CloseIssue("olga", w.issue().Number))
	w.night("") // the bot learns that the issue is closed
	w.night("")
	w.shows(false, 0)
	w.night("// speed 0.6\n")
	if i := w.issue(); !i.Open || i.Title != "kernels/scale: slower than v1.1.0" {
		t.Errorf("slower than the new release: %+v", i)
	}
}

// Whoever may push a tag can neither hide a slowdown that is known nor one that no watch has seen yet, and
// cannot make a fixed one stay.
func TestTagsDoNotEndAWatch(t *testing.T) {
	for name, message := range map[string]string{"light": "", "annotated": "not a release"} {
		t.Run(name, func(t *testing.T) {
			w := watchedNightly(t, worldOptions{})
			// The tag comes together with the slow commit, before any watch has measured it.
			_, err := w.repo.Push("main", map[string]string{sourceFile: "// speed 0.8\n"}, "Change")
			w.no(err)
			w.no(w.repo.Tag("v99.0.0+x", w.repo.Head("main"), message))
			w.night("")
			w.shows(true, 0, "slower |")
			for _, again := range []string{"v99.0.1", "v1.0.0+later"} {
				w.no(w.repo.Tag(again, w.repo.Head("main"), message))
			}
			w.night("")
			w.shows(true, 0)
			if text := "The release changed"; strings.Contains(w.issue().Body, text) != (message != "") {
				t.Errorf("the issue says: %s", w.issue().Body)
			}
			w.no(w.repo.Tag("v1.0.0", w.repo.Head("main"), message)) // moved to the slow commit
			w.night("")
			w.shows(true, 0)
			w.night("// speed 1.0 again\n")
			w.shows(false, 1, "The slowdown is gone", "`v1.0.0`")
		})
	}
}

// A tag that was moved keeps the commit that the first watch saw, and the issue says so.
func TestMovedTag(t *testing.T) {
	w := watchedNightly(t, worldOptions{})
	first := w.repo.Head("main")
	_, err := w.repo.Push("main", map[string]string{sourceFile: "// speed 0.8\n"}, "Change")
	w.no(err)
	w.no(w.repo.Tag("v1.0.0", w.repo.Head("main"), "moved"))
	w.night("")
	w.shows(true, 0, "The tag was moved", first[:12])
}

// If the tag of a release is deleted, each kernel is compared with it once more before an earlier release
// counts again.
func TestDeletedTag(t *testing.T) {
	w := watchedNightly(t, worldOptions{})
	_, err := w.repo.Push("main", map[string]string{sourceFile: "// speed 1.5\n"}, "Change")
	w.no(err)
	w.no(w.repo.Tag("v1.1.0", w.repo.Head("main"), "faster"))
	w.night("")
	w.night("")
	_, err = w.repo.Push("main", map[string]string{sourceFile: "// speed 1.2\n"}, "Change")
	w.no(err)
	w.no(w.repo.DeleteTag("v1.1.0"))
	w.night("")
	if i := w.issue(); !i.Open || i.Title != "kernels/scale: slower than v1.1.0" || !strings.Contains(i.Body, "The release changed") {
		t.Errorf("slower than a release whose tag was deleted: %+v", i)
	}
}

// A kernel that is removed is not watched any more.
func TestWatchRemovedKernel(t *testing.T) {
	w := watchedNightly(t, worldOptions{})
	w.night("// speed 0.8\n")
	w.shows(true, 0)
	_, err := w.repo.PushCommit(embedded.Commit{Branch: "main", Delete: []string{"kernels/scale/kernel.yaml", sourceFile, "kernels/scale/reference.c"}, Message: "Remove it"})
	w.no(err)
	w.settle()
	w.clock.Add(int64(24 * time.Hour))
	w.until("the end of the issue", func() bool { return !w.repo.Issues()[0].Open })
	w.settle()
	w.shows(false, 1, "not watched any more")
}

// If the bot may not write issues, or the repository has issues turned off, the bot reports this and does
// everything else as usual. When the bot may write issues again, the next watch opens the issue.
func TestWatchWithoutPermission(t *testing.T) {
	refused := func(w *watchedWorld) int {
		t.Helper()
		known, err := w.running.ledger.Watched(w.ctx, w.repo.ID())
		w.no(err)
		if len(known) != 1 || known[0].Regression == nil || known[0].Issue.Number != 0 {
			t.Fatalf("the ledger has %+v", known)
		}
		return known[0].Issue.Refused
	}
	t.Run("permission", func(t *testing.T) {
		w := watchedNightly(t, worldOptions{mute: true})
		w.night("// speed 0.8\n")
		if status := refused(w); status != http.StatusForbidden || len(w.repo.Issues()) != 0 {
			t.Errorf("GitHub refused with %d", status)
		}
		pr := w.propose("faster", "// speed 2.0\n", embedded.PROptions{})
		w.concluded(pr.HeadSHA(), "success")
	})
	t.Run("turned off", func(t *testing.T) {
		w := watchedNightly(t, worldOptions{})
		w.repo.DisableIssues()
		w.night("// speed 0.8\n")
		if status := refused(w); status != http.StatusGone {
			t.Errorf("GitHub refused with %d", status)
		}
		w.repo.EnableIssues()
		w.night("")
		w.shows(true, 0, "found by the watch of 2026-05-05")
	})
}

// The bot starts one search for the commit, between the last watch without the slowdown and the first watch
// with it. The issue shows the result.
func TestWatchBisect(t *testing.T) {
	w := watchedNightly(t, worldOptions{})
	first := w.repo.Head("main")
	var pushed []string
	for i, source := range []string{"// speed 1 tidy\n", "// BROKEN\n", "// speed 0.8\n", "// speed 0.8 and more\n"} {
		sha, err := w.repo.Push("main", map[string]string{sourceFile: source}, fmt.Sprint("Step ", i))
		w.no(err)
		pushed = append(pushed, sha)
	}
	w.night("")
	w.until("the answer", func() bool {
		return strings.Contains(w.repo.Issues()[0].Body, "1 commit before it could not be judged")
	})
	w.settle()
	w.shows(true, 0, "**Commit:** `"+pushed[2][:12]+"`, or an earlier commit: 1 commit before it could not be judged. The last good commit is `"+pushed[0][:12]+"`.", "at most 5.0")
	w.night("")
	w.shows(true, 0, "**Commit:** `"+pushed[2][:12]+"`")
	searches := 0
	_, err := w.running.journal.Replay(w.ctx, 0, func(e journal.Event) error {
		if e.Kind == "searching" {
			searches++
			if !strings.Contains(string(e.Data), first) {
				t.Errorf("the search is %s, want one after %s", e.Data, first)
			}
		}
		return nil
	})
	w.no(err)
	if searches != 1 {
		t.Errorf("%d searches began, want 1", searches)
	}
}

// If a fault of the runner ends a search, the next watch starts the search again.
func TestWatchBisectLost(t *testing.T) {
	var searches atomic.Int32
	host := perform.Measure(scripted.Runner{})
	w := watchedNightly(t, worldOptions{measure: func(ctx context.Context, job measuring.Job, scratch string, p measuring.Progress) (measuring.Measured, error) {
		if job.Search != nil && searches.Add(1) == 1 {
			return measuring.Measured{Evidence: job.NoEvidence()}, nil // and no report
		}
		return host(ctx, job, scratch, p)
	}})
	w.night("// speed 0.8\n")
	w.shows(true, 0, "a search has started")
	w.night("")
	w.until("the answer", func() bool { return strings.Contains(w.repo.Issues()[0].Body, "made the kernel slower") })
	w.settle()
	w.night("")
	if n := searches.Load(); n != 2 {
		t.Errorf("%d searches began, want 2", n)
	}
}

// If a watch has not measured everything when the next watch begins, the bot gives up the earlier one. So
// no kernel waits twice in the queue.
func TestWatchReplaced(t *testing.T) {
	w := watchedNightlyAbsent(t)
	queued := func() (jobs []string) {
		rows, err := w.running.ledger.Unfinished(w.ctx)
		w.no(err)
		for _, r := range rows {
			jobs = append(jobs, r.Job)
		}
		return jobs
	}
	w.poll("the first job", func() bool { return len(queued()) == 1 })
	before := queued()[0]
	w.clock.Add(int64(24 * time.Hour))
	w.begun()
	w.poll("the second job alone", func() bool { now := queued(); return len(now) == 1 && now[0] != before })
}

func watchedNightlyAbsent(t *testing.T) *watchedWorld {
	clock := &atomic.Int64{}
	clock.Store(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC).UnixNano())
	w := &watchedWorld{clock: clock, world: newWorld(t, worldOptions{
		apart: true, absent: true, now: func() time.Time { return time.Unix(0, clock.Load()).UTC() },
		watch: []sweep.Schedule{{Repository: "*", At: 2 * time.Hour, Every: 24 * time.Hour, Watch: &sweep.Watch{Against: watching.Best, Slower: 0.01}}},
	})}
	w.begin()
	w.Cleanup(func() { w.no(w.running.stop()) })
	w.begun()
	return w
}

// A manifest with a mistake does not end the watch of its kernel: nobody knows what became of the kernel.
func TestWatchMistakenManifest(t *testing.T) {
	w := watchedNightly(t, worldOptions{})
	w.night("// speed 0.8\n")
	w.shows(true, 0)
	_, err := w.repo.Push("main", map[string]string{"kernels/scale/kernel.yaml": "]\n"}, "Break the manifest")
	w.no(err)
	w.settle()
	w.clock.Add(int64(24 * time.Hour))
	w.begun()
	w.settle()
	w.shows(true, 0)
}
