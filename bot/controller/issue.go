package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/watch"
	"github.com/kernelgate/kernelgate/gates"
)

// reconcileIssue opens, updates or closes the issue of a watched kernel, as the kernel's state requires.
// If GitHub refuses to write the issue, the bot records the refusal, and the next watch tries again.
func (k *Controller) reconcileIssue(ctx context.Context, s *change.State, key change.KernelKey, w *watch.State) error {
	w, err := k.askForCommit(ctx, s, key, w)
	if err != nil {
		return err
	}
	i := issueWriter{k: k, change: s, key: key, state: w, view: present.WatchView{State: w, Repo: s.Facts.Repo, Web: k.Web}}
	var event watch.Event
	switch w.Action() {
	case watch.Write:
		i.view.Page = k.RunPage(s.Facts.Repo, key.Folder, w.Regression.Look.Job)
		event, err = i.write(ctx)
	case watch.Close:
		i.view.Page = k.RunPage(s.Facts.Repo, key.Folder, w.Ended.By.Job)
		event, err = i.close(ctx)
	}
	if refusal, ok := errors.AsType[*client.Error](err); ok && client.IsPermanent(err) && !errors.Is(err, client.ErrUnavailable) {
		if w.Issue.Refused == refusal.Status && w.Issue.RefusedIn == s.ID.String() {
			return nil
		}
		k.Log.Warn("GitHub refuses the issue of a kernel that became slower; the next watch tries again", "repo", s.Facts.Repo, "kernel", key, "err", err)
		event, err = watch.IssueRefused{Status: refusal.Status, Change: s.ID.String()}, nil
	}
	if err != nil || event == nil {
		return err
	}
	_, err = k.updateWatched(ctx, s.ID.Repo, key, func(*watch.State) watch.Event { return event })
	return err
}

// askForCommit starts a search for the commit that caused a slowdown, if the cause is the code.
func (k *Controller) askForCommit(ctx context.Context, s *change.State, key change.KernelKey, w *watch.State) (*watch.State, error) {
	if !s.Facts.Open { // a watch that was given up cannot measure anything
		return w, nil
	}
	good, bad, ok := w.Wants()
	if !ok {
		var err error
		if ok, err = k.bisectLost(ctx, s.ID, key, w); err != nil || !ok {
			return w, err
		}
		good, bad, _ = w.Regression.Range()
	}
	if err := k.bisect(ctx, s, key, good, bad); err != nil {
		k.Log.Warn("cannot start the search for the commit that made a kernel slower; the next watch tries again", "repo", s.Facts.Repo, "kernel", key, "err", err)
		return w, nil
	}
	return k.updateWatched(ctx, s.ID.Repo, key, func(now *watch.State) watch.Event {
		if g := now.Regression; g == nil || g.Bisect != nil && !g.Bisect.Pending() {
			return nil // the search has already ended
		}
		return watch.Bisected{Bisection: watch.Bisection{Good: good, Bad: bad, Change: s.ID.String()}}
	})
}

// bisectLost reports whether an earlier watch started a search that will never have a result: the search
// ended together with that watch, or its runner failed.
func (k *Controller) bisectLost(ctx context.Context, now change.ID, key change.KernelKey, w *watch.State) (bool, error) {
	if w.Regression == nil || w.Regression.Bisect == nil || !w.Regression.Bisect.Pending() || w.Regression.Bisect.Change == now.String() {
		return false, nil
	}
	id, err := change.ParseID(w.Regression.Bisect.Change)
	if err != nil {
		return false, err
	}
	s, err := k.states.load(ctx, id)
	if err != nil {
		return false, err
	}
	faulty := func(r change.Run) bool {
		return r.Key() == key && r.Phase == change.Done && r.Result != nil && r.Result.Reason == gates.ReasonRunner
	}
	return !s.Facts.Open || slices.ContainsFunc(s.Searches, faulty), nil
}

// bisect asks a runner to find the commit after good, up to bad, that made a watched kernel slower. A
// second call with the same values does nothing.
func (k *Controller) bisect(ctx context.Context, s *change.State, key change.KernelKey, good, bad string) error {
	asked := grammar.Bisect{Good: good, Bad: bad}
	bundle, err := k.Planner.Search(ctx, s.ID, s.Facts, planner.Search{Folder: key.Folder, Device: key.Device, Bisect: &asked})
	if err != nil {
		return err
	}
	id := fmt.Sprintf("%s%s-%.12s-%.12s", change.BotSearch, key, good, bad)
	_, err = k.states.update(ctx, s.ID, func(*change.State) (change.Event, error) {
		return change.Searching{ID: id, Search: change.Search{Folder: key.Folder, Device: key.Device, Bundle: bundle, Request: grammar.Request{Command: asked}}}, nil
	})
	k.enqueueChange(s.ID)
	return err
}

// recordBisection records the result of a search that a watch started, so that the kernel's issue is
// written again with this result.
func (k *Controller) recordBisection(ctx context.Context, s *change.State, r change.Run) error {
	asked, ok := r.Search.Command.(grammar.Bisect)
	if !ok || r.Phase != change.Done || r.Result == nil || r.Result.Reason == gates.ReasonRunner {
		return nil // the next watch starts a search without a result again: see bisectLost
	}
	b := watch.Bisection{Good: asked.Good, Bad: asked.Bad, Job: r.Job, Change: s.ID.String(), Failed: true}
	if r.Result.Report != "" {
		found, err := k.storedReport(ctx, r.Result.Report)
		if err != nil {
			return err
		}
		if found.First != nil {
			b.Failed, b.First, b.Last, b.Between, b.Error, b.Unsure = false, found.First.SHA, found.Last, found.Between, found.Error, !found.Proven
		}
	}
	_, err := k.updateWatched(ctx, s.ID.Repo, r.Key(), func(now *watch.State) watch.Event {
		if now.Regression == nil || now.Regression.Bisect != nil && *now.Regression.Bisect == b {
			return nil
		}
		if good, bad, ok := now.Regression.Range(); !ok || good != b.Good || bad != b.Bad {
			return nil
		}
		if run, ok := s.ByKey(r.Key()); ok {
			k.looked.Remove(run.Job)
		}
		return watch.Bisected{Bisection: b}
	})
	return err
}

// An issueWriter opens, updates and closes the issue of one kernel. It reads the issue from GitHub before
// it writes: the bot may have crashed after its last write, and people may have closed the issue.
type issueWriter struct {
	k      *Controller
	change *change.State
	key    change.KernelKey
	state  *watch.State
	view   present.WatchView
}

// write opens the issue, or updates its title and text. It returns the event to record.
func (i issueWriter) write(ctx context.Context) (watch.Event, error) {
	github, repo, known := i.k.GitHub, i.change.Facts.Repo, i.state.Issue
	title, body := i.view.IssueTitle(), i.view.IssueBody()
	sum := sha256.Sum256([]byte(title + "\n" + body))
	digest := hex.EncodeToString(sum[:8])
	if known.Open && known.Digest == digest && !i.change.Republish {
		return nil, nil
	}
	number := known.Number
	if number == 0 {
		var err error
		if number, err = i.find(ctx); err != nil {
			return nil, err
		}
	}
	if number == 0 {
		number, err := github.CreateIssue(ctx, repo, title, body, present.WatchLabel)
		if err != nil {
			return nil, err
		}
		i.k.Log.Info("an issue was opened", "repo", repo, "kernel", i.key, "issue", number, "class", i.state.Regression.Class)
		return watch.IssueWritten{Number: number, Digest: digest}, nil
	}
	shown, err := github.Issue(ctx, repo, number)
	switch {
	case client.Deleted(err):
		return watch.IssueDismissed{Deleted: true}, nil
	case err != nil:
		return nil, err
	case !shown.Open && known.Open: // somebody else closed it
		return watch.IssueDismissed{}, nil
	case !shown.Open || shown.Title != title || strings.TrimSpace(shown.Body) != strings.TrimSpace(body):
		if err := github.EditIssue(ctx, repo, number, title, body); err != nil {
			return nil, err
		}
	}
	return watch.IssueWritten{Number: number, Digest: digest}, nil
}

// find returns the number of an issue that the bot opened for the kernel but could not record, because it
// crashed. It returns 0 if GitHub has no such issue.
func (i issueWriter) find(ctx context.Context) (int, error) {
	all, err := i.k.GitHub.MyIssues(ctx, i.change.Facts.Repo, present.WatchLabel)
	marker := present.WatchMarker(i.change.ID.Repo, i.key.Folder, i.key.Device)
	at := slices.IndexFunc(all, func(one client.Issue) bool { return strings.HasPrefix(one.Body, marker) })
	if err != nil || at < 0 {
		return 0, err
	}
	return all[at].Number, nil
}

// close writes a comment that says why the regression is over, and closes the issue.
func (i issueWriter) close(ctx context.Context) (watch.Event, error) {
	github, repo, number := i.k.GitHub, i.change.Facts.Repo, i.state.Issue.Number
	shown, err := github.Issue(ctx, repo, number)
	if client.Deleted(err) {
		return watch.IssueDismissed{Deleted: true}, nil
	}
	if err != nil {
		return nil, err
	}
	if shown.Open {
		comments, err := github.ListComments(ctx, repo, number)
		if err != nil {
			return nil, err
		}
		marker := present.EndMarker(i.state.Ended)
		if !slices.ContainsFunc(comments, func(c client.Comment) bool { return c.Mine && strings.HasPrefix(c.Body, marker) }) {
			if _, err := github.CreateComment(ctx, repo, number, i.view.EndComment()); err != nil {
				return nil, err
			}
		}
		if err := github.CloseIssue(ctx, repo, number); err != nil {
			return nil, err
		}
		i.k.Log.Info("an issue was closed", "repo", repo, "kernel", i.key, "issue", number, "why", i.state.Ended.Ending)
	}
	return watch.IssueClosed{}, nil
}
