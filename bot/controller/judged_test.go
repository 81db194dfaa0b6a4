package controller_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	measuring "github.com/kernelgate/kernelgate/runners"
)

// Whoever sees to the runners hears of every verdict, and of which of them the runner is at fault.
func TestFaultsOfRunnersAreTold(t *testing.T) {
	broken := func(context.Context, measuring.Job, string, measuring.Progress) (measuring.Measured, error) {
		return measuring.Measured{}, errors.New("the GPU has fallen off the bus")
	}
	for name, test := range map[string]struct {
		opt   worldOptions
		ends  string
		fault string
	}{
		"at fault": {worldOptions{retold: true, measure: broken}, "failure", "the GPU has fallen off the bus"},
		"in order": {worldOptions{retold: true}, "success", ""},
	} {
		t.Run(name, func(t *testing.T) {
			told := make(chan [3]string, 100)
			test.opt.judged = func(_ context.Context, runner, kernel, fault string) { told <- [3]string{runner, kernel, fault} }
			w := newWorld(t, test.opt)
			pr := w.propose("change", "// speed 1.5\n", embedded.PROptions{})
			w.concluded(pr.HeadSHA(), test.ends)
			got := <-told // before the verdict is shown
			if got[0] != "runner" || got[1] != "olga/kernels scale" || (got[2] == "") != (test.fault == "") || !strings.Contains(got[2], test.fault) {
				t.Errorf("told %q", got)
			}
		})
	}
}

// Bundles are kept for some days. A job that waits longer ends as an error that says so, and no runner is charged with it,
// whether it could not fetch the bundle or the bundle expired while it measured.
func TestExpiredBundleIsNoFaultOfTheRunner(t *testing.T) {
	for name, evidence := range map[string]string{
		"it could not be fetched":   `{"schema": "kernelgate/evidence/v1", "kernel": "scale", "fault": "fetching the bundle: the server answers 404"}`,
		"it expired while measured": `{"schema": "kernelgate/evidence/v1", "kernel": "scale"}`,
	} {
		t.Run(name, func(t *testing.T) {
			charged := make(chan string, 100)
			var later atomic.Int64
			now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
			w := newWorld(t, worldOptions{retold: true, absent: true, now: now, judged: func(_ context.Context, runner, _, fault string) { charged <- runner + ": " + fault }})
			pr := w.propose("change", "// speed 1.5\n", embedded.PROptions{})
			var run ledger.RunRow
			w.poll("the job is queued", func() bool {
				rows, err := w.running.ledger.Runs(w.ctx, ledger.RunFilter{Phase: change.Queued})
				w.no(err)
				if len(rows) > 0 {
					run = rows[0]
				}
				return len(rows) > 0
			})
			s, err := w.running.ledger.Change(w.ctx, run.Change)
			w.no(err)
			w.no(w.running.journal.Bundles.Delete(w.ctx, s.Runs[0].Bundle))
			by := fleet.Runner{Name: "runner"}
			w.no(w.running.bot.Started(w.ctx, run.Job, 1, by))
			// Before its time a bundle is missing because the journal is in trouble: the runner keeps its result and tries again.
			if err := w.running.bot.Finished(w.ctx, run.Job, 1, by, []byte(`{"schema": "kernelgate/evidence/v1", "kernel": "scale"}`), nil, nil); !errors.Is(err, journal.ErrNotFound) {
				t.Errorf("a bundle that is missing before its time: %v", err)
			}
			later.Store(int64(journal.KeepBundles))
			w.no(w.running.bot.Finished(w.ctx, run.Job, 1, by, []byte(evidence), nil, nil))
			c := w.concluded(pr.HeadSHA(), "failure")
			if want := "its bundle has expired, which is not the runner's fault (comment /rebench"; !strings.Contains(c.Summary+c.Text, want) {
				t.Errorf("the check says %q\n%s\n%s", c.Title, c.Summary, c.Text)
			}
			if len(charged) > 0 {
				t.Errorf("charged to %s", <-charged)
			}
		})
	}
}

// An edit that changes no rule leaves a job at its runner, and the runner's answer is held against the bundle that it was given.
func TestLabelWhileMeasured(t *testing.T) {
	charged := make(chan string, 100)
	w := newWorld(t, worldOptions{retold: true, judged: func(_ context.Context, _, _, fault string) { charged <- fault }})
	pr := w.propose("held", "// HOLD speed 1.5\n", embedded.PROptions{Title: "Held"})
	id := change.ID{Kind: change.Pull, Repo: w.repo.ID(), Number: pr.Number()}
	is := func(what string, holds func(*change.State) bool) {
		w.poll(what, func() bool {
			s, err := w.running.ledger.Change(w.ctx, id)
			return err == nil && s.Current() != nil && len(s.Runs) == 1 && holds(s)
		})
	}
	is("a runner has the job", func(s *change.State) bool { return s.Runs[0].Phase == change.Running })
	w.no(pr.Label("walt", "whatever"))
	is("it is planned again", func(s *change.State) bool { return len(s.Facts.Labels) == 1 })
	close(w.hold)
	w.concluded(pr.HeadSHA(), "success")
	if fault := <-charged; fault != "" {
		t.Errorf("charged to the runner: %s", fault)
	}
}
