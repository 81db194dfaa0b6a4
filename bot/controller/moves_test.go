package controller_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// A wire notes what the bot asks of GitHub.
type wire struct {
	mu     sync.Mutex
	writes []string // paths
	all    int
}

func (l *wire) hear(rq *http.Request) *http.Response {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all++
	if rq.Method != http.MethodGet && strings.Contains(rq.URL.Path, "/repos/") {
		l.writes = append(l.writes, rq.URL.Path)
	}
	return nil
}

func (l *wire) wrote(part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, path := range l.writes {
		if strings.Contains(path, part) {
			n++
		}
	}
	return n
}

func (l *wire) requests() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// started waits for a runner to work at a pull request.
func (w *world) started(pr *embedded.PR) {
	w.Helper()
	w.poll("a runner", func() bool {
		runs, err := w.running.ledger.Runs(w.ctx, ledger.RunFilter{Change: change.ID{Kind: change.Pull, Repo: w.repo.ID(), Number: pr.Number()}})
		return err == nil && len(runs) == 1 && runs[0].Runner != ""
	})
}

// A repository that gets another name while a kernel of it is measured gets the verdict
// under the new one, and so does whatever comes after, after a restart too.
func TestRenamedWhileRunning(t *testing.T) {
	for _, pat := range []bool{false, true} {
		t.Run(fmt.Sprintf("token=%v", pat), func(t *testing.T) {
			heard := &wire{}
			w := newWorld(t, worldOptions{pat: pat, retold: !pat, refuse: heard.hear})
			pr := w.propose("held", "// HOLD speed 1.5\n", embedded.PROptions{Title: "Held"})
			w.started(pr)
			w.no(w.repo.Rename("cuda"))
			close(w.hold)
			w.passes(pr.HeadSHA(), pat)
			w.settle()
			old := heard.wrote("/olga/kernels/")
			next := w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Faster"})
			w.passes(next.HeadSHA(), pat)
			w.settle()
			if n := heard.wrote("/olga/kernels/"); n != old || heard.wrote("/olga/cuda/") == 0 {
				t.Errorf("%d writes by the old name, and %d by the new", n-old, heard.wrote("/olga/cuda/"))
			}
			if !pat {
				return // an App is told which repositories it watches by name
			}
			w.no(w.running.stop())
			w.start()
			last := w.propose("fastest", "// speed 1.4\n", embedded.PROptions{Title: "Fastest"})
			w.passes(last.HeadSHA(), pat)
		})
	}
}

// A repository that goes to another account takes its work along if the App is there.
func TestTransferredWhileRunning(t *testing.T) {
	w := newWorld(t, worldOptions{two: true})
	w.hub.CreateUser("acme")
	theirs, err := w.hub.CreateRepo(embedded.RepoOptions{Owner: "acme", Name: "others"})
	w.no(err)
	_, err = w.app.Install(theirs)
	w.no(err)
	pr := w.propose("held", "// HOLD speed 1.5\n", embedded.PROptions{Title: "Held"})
	w.started(pr)
	w.no(w.repo.Transfer("acme"))
	close(w.hold)
	w.concluded(pr.HeadSHA(), "success")
	w.no(w.hub.RenameAccount("acme", "acme-labs"))
	next := w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Faster"})
	w.concluded(next.HeadSHA(), "success")
}

// What nobody can reach any more comes to an end: the runner is free, and nothing is
// tried again.
func TestGoneForGood(t *testing.T) {
	for _, test := range []struct {
		name  string
		leave func(*world)
	}{
		{"deleted", func(w *world) { w.repo.Delete() }},
		{"uninstalled", func(w *world) { w.mine.Uninstall() }},
		{"transferred away", func(w *world) { w.hub.CreateUser("nobody"); w.no(w.repo.Transfer("nobody")) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			heard := &wire{}
			w := newWorld(t, worldOptions{watchful: true, two: true, refuse: heard.hear})
			pr := w.propose("held", "// HOLD speed 1.5\n", embedded.PROptions{Title: "Held"})
			w.started(pr)
			// A push whose delivery fails: GitHub brings it again when everything is over.
			begun := time.Now().Unix()
			w.poll("another second, which is all that GitHub tells of a time", func() bool { return time.Now().Unix() > begun })
			w.app.SetHook("http://"+w.freeAddress()+"/webhook", secret)
			_, err := w.repo.Push("held", map[string]string{sourceFile: "// HOLD speed 1.6\n"}, "Later")
			w.no(err)
			w.no(w.hub.Quiet(w.ctx))
			w.app.SetHook("http://"+w.addr+"/webhook", secret)
			test.leave(w)
			w.poll("the late delivery", func() bool {
				return slices.ContainsFunc(w.app.Hook().Deliveries(), func(d embedded.Delivery) bool {
					return d.Redelivery && d.Event == "pull_request" && d.StatusCode == http.StatusAccepted
				})
			})
			w.no(w.hub.Quiet(w.ctx))
			w.settle()
			// The late delivery may come before the one that says that the repository is gone.
			w.poll("that no pull request is open", func() bool {
				open, err := w.running.ledger.OpenPulls(w.ctx, w.repo.ID())
				w.no(err)
				return len(open) == 0
			})
			// The one runner is free for another.
			other := w.proposeIn(w.other, "faster", "// speed 1.3\n", embedded.PROptions{})
			w.checkIn(w.other, other.HeadSHA(), "success")
			w.settle()
			before := heard.wrote("/olga/")
			seen := w.running.bot.Counts().Reconciled
			w.poll("a reconciliation", func() bool { return w.running.bot.Counts().Reconciled.After(seen.Add(2 * time.Second)) })
			if n := heard.wrote("/olga/"); n != before {
				t.Errorf("%d more writes", n-before)
			}
		})
	}
}

// A repository that has ended does not come back by what GitHub said before the end: by a list that was on its way, or by the
// delivery of the installation or of a new name, which failed and is delivered again. A late push to a pull request ends with the
// repository, also after a restart.
func TestEndedStaysEnded(t *testing.T) {
	deleted := func(w *world) { w.repo.Delete() }
	uninstalled := func(w *world) { w.mine.Uninstall() }
	for _, test := range []struct {
		name    string
		old     bool         // a list is on its way while the repository ends
		missed  func(*world) // whose delivery fails
		leave   func(*world)
		restart bool
	}{
		{name: "an old list", old: true, leave: deleted},
		{name: "an old delivery", leave: uninstalled},
		{name: "an old name", missed: func(w *world) { w.no(w.repo.Rename("cuda")) }, leave: deleted},
		{name: "suspended before", leave: func(w *world) {
			w.mine.Suspend()
			w.poll("that it is not listed", func() bool {
				shown, err := w.running.ledger.RepoName(w.ctx, w.repo.ID())
				return err == nil && shown.Removed != ""
			})
			w.mine.Uninstall()
		}, restart: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var late, holds atomic.Bool
			listed, release := make(chan struct{}, 100), make(chan struct{})
			w := newWorld(t, worldOptions{watchful: true, two: true, refuse: func(rq *http.Request) *http.Response {
				switch {
				case strings.HasSuffix(rq.URL.Path, "/attempts") && !late.Load():
					return refuse(rq, http.StatusInternalServerError, "Server Error")
				case strings.HasSuffix(rq.URL.Path, "/installation/repositories") && holds.Load():
					answer, err := http.DefaultTransport.RoundTrip(rq)
					if err != nil {
						return refuse(rq, http.StatusBadGateway, err.Error())
					}
					listed <- struct{}{}
					<-release
					return answer
				}
				return nil
			}})
			free := sync.OnceFunc(func() { holds.Store(false); close(release) })
			defer free()
			pr := w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Faster"})
			w.concluded(pr.HeadSHA(), "success")
			begun := time.Now().Unix()
			w.poll("another second, which is all that GitHub tells of a time", func() bool { return time.Now().Unix() > begun })
			w.app.SetHook("http://"+w.freeAddress()+"/webhook", secret)
			_, err := w.repo.Push("faster", map[string]string{sourceFile: "// speed 1.6\n"}, "Later")
			w.no(err)
			if test.missed != nil {
				test.missed(w)
			}
			w.no(w.hub.Quiet(w.ctx))
			w.app.SetHook("http://"+w.addr+"/webhook", secret)
			if test.old {
				holds.Store(true)
				<-listed
			}
			test.leave(w)
			w.poll("the end of the pull request", func() bool {
				open, err := w.running.ledger.OpenPulls(w.ctx, w.repo.ID())
				w.no(err)
				return len(open) == 0
			})
			if test.restart {
				w.no(w.running.stop())
				w.start()
			}
			seen := w.running.bot.Counts().Reconciled
			free()
			w.poll("the end of the pass", func() bool { return w.running.bot.Counts().Reconciled.After(seen) })
			late.Store(true)
			w.poll("the late deliveries", func() bool {
				arrived := map[string]bool{}
				for _, d := range w.app.Hook().Deliveries() {
					if slices.Contains([]string{"pull_request", "repository", "installation"}, d.Event) {
						arrived[d.GUID] = arrived[d.GUID] || d.StatusCode == http.StatusAccepted
					}
				}
				return len(arrived) > 0 && !slices.Contains(slices.Collect(maps.Values(arrived)), false)
			})
			w.poll("that nothing is left to do", func() bool {
				left, err := w.running.ledger.Unsettled(w.ctx)
				w.no(err)
				open, err := w.running.ledger.OpenPulls(w.ctx, w.repo.ID())
				w.no(err)
				return len(left) == 0 && len(open) == 0 && w.running.bot.Idle()
			})
			if shown, err := w.running.ledger.RepoName(w.ctx, w.repo.ID()); err != nil || !change.EndReason(shown.Removed).Known() {
				t.Errorf("its pages are open, or closed for another reason: %+v, %v", shown, err)
			}
		})
	}
}

// A repository that has ended comes back when the App is installed again, without a wait for the next resync.
func TestEndedComesBack(t *testing.T) {
	w := newWorld(t, worldOptions{two: true, patient: true})
	pr := w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Faster"})
	w.concluded(pr.HeadSHA(), "success")
	w.mine.Uninstall()
	w.poll("the end of the pull request", func() bool {
		open, err := w.running.ledger.OpenPulls(w.ctx, w.repo.ID())
		w.no(err)
		return len(open) == 0
	})
	var err error
	w.mine, err = w.app.Install(w.repo)
	w.no(err)
	next := w.propose("fastest", "// speed 1.4\n", embedded.PROptions{Title: "Fastest"})
	w.concluded(next.HeadSHA(), "success")
	w.poll("that its pages are open", func() bool {
		shown, err := w.running.ledger.RepoName(w.ctx, w.repo.ID())
		w.no(err)
		return shown.Removed == ""
	})
}

// While the account suspends the App, GitHub does not list its repositories. What is open there waits.
func TestSuspendedWaits(t *testing.T) {
	w := newWorld(t, worldOptions{watchful: true, two: true})
	pr := w.propose("held", "// HOLD speed 1.5\n", embedded.PROptions{Title: "Held"})
	w.started(pr)
	w.mine.Suspend()
	for range 4 {
		seen := w.running.bot.Counts().Reconciled
		w.poll("another pass", func() bool { return w.running.bot.Counts().Reconciled.After(seen) })
	}
	open, err := w.running.ledger.OpenPulls(w.ctx, w.repo.ID())
	w.no(err)
	if len(open) != 1 {
		t.Errorf("%d pull requests are open", len(open))
	}
	w.mine.Unsuspend()
	close(w.hold)
	w.concluded(pr.HeadSHA(), "success")
}

// A change that waits long before its next attempt to publish does not wait when its repository has ended: nothing is left to do.
func TestEndEndsPauses(t *testing.T) {
	var refused atomic.Int64
	w := newWorld(t, worldOptions{watchful: true, absent: true, backoff: time.Hour, refuse: func(rq *http.Request) *http.Response {
		if rq.Method != http.MethodPost || !strings.HasSuffix(rq.URL.Path, "/check-runs") {
			return nil
		}
		refused.Add(1)
		return refuse(rq, http.StatusForbidden, "Resource not accessible by integration")
	}})
	w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Faster"})
	w.poll("a publication that fails", func() bool { return refused.Load() > 0 && w.running.bot.Counts().Retry > 0 })
	w.hub.CreateUser("nobody")
	w.no(w.repo.Transfer("nobody"))
	w.settle()
}

// While an allow list refuses the bot's address it asks now and then, and not without
// end; then work goes on.
func TestAllowList(t *testing.T) {
	heard := &wire{}
	w := newWorld(t, worldOptions{watchful: true, two: true, refuse: heard.hear})
	w.settle()
	w.hub.SetAllowList("olga", true)
	pr := w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Faster"})
	w.no(w.hub.Quiet(w.ctx))
	w.poll("the delivery", func() bool { c := w.running.bot.Counts(); return c.Handled >= c.Accepted && w.running.bot.Idle() })
	before, seen := heard.requests(), w.running.bot.Counts().Reconciled
	w.poll("two reconciliations", func() bool { return w.running.bot.Counts().Reconciled.After(seen.Add(5 * time.Second)) })
	if n := heard.requests() - before; n > 30 {
		t.Errorf("%d requests in two reconciliations", n)
	}
	w.hub.SetAllowList("olga", false)
	w.checkIn(w.repo, pr.HeadSHA(), "success")
}

// An archived repository with many open pull requests costs no writes, however few
// GitHub allows, and a live one in the same account gets its check.
func TestArchivedBesideLive(t *testing.T) {
	const many = 60
	heard := &wire{}
	w := newWorld(t, worldOptions{watchful: true, refuse: heard.hear, two: true,
		limits: embedded.Limits{PerHour: 5000, ContentPerMinute: 80, ContentPerHour: 500, PointsPerMinute: 900, Concurrent: 100}})
	w.no(w.running.stop())
	w.app.SetHook("", "")
	attic, err := w.hub.CreateRepo(embedded.RepoOptions{Owner: "oleg", Name: "attic"})
	w.no(err)
	_, err = attic.Push("main", map[string]string{"kernels/scale/kernel.yaml": manifestYAML, sourceFile: "// speed 1.0\n", "kernels/scale/reference.c": "// the truth\n", ".github/kernelgate.yaml": policyYAML}, "Scale")
	w.no(err)
	for i := range many {
		w.proposeIn(attic, fmt.Sprint("late", i), fmt.Sprintf("// speed 1.3%d\n", i), embedded.PROptions{Author: "oleg"})
	}
	w.no(attic.Transfer("olga"))
	attic.Archive()
	w.app.SetHook("http://"+w.addr+"/webhook", secret)
	w.start()
	live := w.propose("live", "// speed 1.3\n", embedded.PROptions{})
	w.checkIn(w.repo, live.HeadSHA(), "success")
	seen := w.running.bot.Counts().Reconciled
	w.poll("two reconciliations", func() bool { return w.running.bot.Counts().Reconciled.After(seen.Add(5 * time.Second)) })
	if n := heard.wrote("/olga/attic/"); n != 0 {
		t.Errorf("%d writes to an archived repository", n)
	}
}
