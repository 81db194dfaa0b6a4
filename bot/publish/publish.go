// Package publish writes everything about a change to GitHub: its checks or statuses, its
// sticky comment, and the replies to commands. It is the same for the bot and for a workflow.
// Before it creates a check or a comment, it looks whether GitHub already has it. So neither
// a crash nor a lost answer leads to a second one.
package publish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/present"
)

// ErrNotVisible means that GitHub answers as if the commit or the pull request did not exist,
// though people wait for a word on it. After a push, GitHub's replicas do so for seconds
// and sometimes for minutes. What was not written is not noted: publish again later.
var ErrNotVisible = errors.New("GitHub does not show the commit or the pull request yet")

// A Publisher writes to GitHub what it does not show yet.
type Publisher struct {
	GitHub *client.GitHub
	// Lenient is for a workflow, whose token need not be allowed to write checks: the
	// job's own status tells the verdict.
	Lenient bool
	// Extend adds to the sticky comment; nil adds nothing.
	Extend func(body string) string
	// Progressed says that running checks may show progress, which no digest records: they are
	// written even where the digest says that they show the text already.
	Progressed bool
	// Sleep waits between attempts where Lenient; nil is a timer.
	Sleep func(context.Context, time.Duration) error

	// Denied is what GitHub did not allow. It is not tried again, and a conversation that
	// is locked is no reason to keep a verdict back.
	Denied             []error
	noChecks, noSpeech bool
}

// Publish writes a view to GitHub: checks first, because they block a merge, then the comment,
// then replies. It returns everything that it has written, even if a later write fails.
func (p *Publisher) Publish(ctx context.Context, v present.View) (change.Published, error) {
	w := p.writer(v)
	failure := errors.Join(w.patiently(ctx, w.checks), w.patiently(ctx, w.comment), w.patiently(ctx, w.replies))
	w.out.Complete = failure == nil
	return w.out, failure
}

// Replies answers the commands that were decided on.
func (p *Publisher) Replies(ctx context.Context, v present.View) (change.Published, error) {
	w := p.writer(v)
	failure := w.patiently(ctx, w.replies)
	return w.out, failure
}

// Progress updates the text of running checks. It is not noted anywhere: the next text
// replaces it.
func (p *Publisher) Progress(ctx context.Context, v present.View) error {
	for _, c := range present.Checks(v) {
		have := v.State.Checks[change.CheckKey(c.Name, c.HeadSHA)]
		if c.Status != "in_progress" || have.ID == 0 || have.Done {
			continue
		}
		if err := p.GitHub.UpdateCheck(ctx, v.State.Facts.Repo, have.ID, c.Check); err != nil && !errors.Is(err, client.ErrUnknown) {
			return err
		}
	}
	return nil
}

// Acknowledge tells the author of a command that it was read. It is a courtesy: where writes are
// few, the command is followed without.
func (p *Publisher) Acknowledge(ctx context.Context, repo string, c change.Asked) error {
	err := p.react(client.LowPriority(ctx), repo, c, "eyes")
	if errors.Is(err, client.ErrShed) {
		return nil
	}
	return err
}

func (p *Publisher) react(ctx context.Context, repo string, c change.Asked, content string) error {
	if c.Comment == 0 || p.noSpeech || c.On == change.InReview {
		return nil
	}
	react := p.GitHub.React
	if c.On == change.OnLine {
		react = p.GitHub.ReactOnLine
	}
	err := react(ctx, repo, c.Comment, content)
	if gone(err) {
		return nil
	}
	return p.unsaid(err)
}

// unsaid notes that nothing may be said in the conversation, and lets every other error
// through.
func (p *Publisher) unsaid(err error) error {
	if !client.IsPermanent(err) {
		return err
	}
	p.noSpeech, p.Denied = true, append(p.Denied, err)
	return nil
}

// Unchecked is the same of checks and statuses, where Lenient. It is for refused creations only:
// GitHub refuses an update of a check that a different App has created, whatever this one may do.
func (p *Publisher) Unchecked(err error) error {
	if !p.Lenient || !status(err, http.StatusForbidden) {
		return err
	}
	p.noChecks, p.Denied = true, append(p.Denied, err)
	return nil
}

// MayCheck tells whether nothing has shown that checks may not be written.
func (p *Publisher) MayCheck() bool { return !p.noChecks }

func (p *Publisher) writer(v present.View) *writer {
	return &writer{Publisher: p, state: v.State, view: v, out: change.Published{Checks: map[string]change.Posted{}, Replies: map[string]int64{}}}
}

// A writer publishes one view.
type writer struct {
	*Publisher
	state *change.State
	view  present.View
	out   change.Published
	there []client.Comment // what the pull request's conversation holds, once asked for
	asked bool
}

func (w *writer) checks(ctx context.Context) error {
	var failure error
	for _, c := range present.Checks(w.view) {
		key := change.CheckKey(c.Name, c.HeadSHA)
		have := w.have(key)
		if _, written := w.out.Checks[key]; written || w.noChecks {
			continue
		}
		overtaken, listed, err := w.overtaken(ctx, have, c)
		if err != nil {
			failure = errors.Join(failure, err)
			continue
		}
		progressed := w.Progressed && c.Status != "completed"
		if have.ID != 0 && have.Digest == c.Digest && !overtaken && !progressed && !w.state.Republish {
			continue
		}
		// That a verdict does not stand any more cannot be left out, nor can anything in a
		// workflow, which has no second time.
		as := ctx
		if c.Status != "completed" && !have.Done && len(w.view.Shown) == 0 && !w.Lenient {
			as = client.LowPriority(ctx)
		}
		id, err := w.check(as, have, c, overtaken, listed)
		switch {
		case gone(err) && w.awaited(c):
			err = fmt.Errorf("%w: %w", ErrNotVisible, err)
		case gone(err):
			id, err = have.ID, nil // nobody waits for it: what GitHub had of it is the last word
		}
		if err == nil && id != 0 {
			w.out.Checks[key] = change.Posted{ID: id, Digest: c.Digest, Done: c.Status == "completed", For: w.state.PostedScope()}
			if w.state.Republish {
				err = w.endReplaced(as, c, id)
			}
		}
		failure = errors.Join(failure, w.Unchecked(err))
	}
	return failure
}

// awaited tells whether people wait for a check: it is one on the head of an open change.
func (w *writer) awaited(c present.Check) bool {
	return w.state.Facts.Open && c.HeadSHA == w.state.Facts.Head
}

// have is what was posted under a key. Number 1 stands for a commit status, which is not a check.
func (w *writer) have(key string) change.Posted {
	have := w.state.Checks[key]
	if have.ID == 1 && w.GitHub.UsesChecks() {
		return change.Posted{}
	}
	return have
}

// The pauses of a workflow that waits for GitHub to show a commit double up to the longest;
// together they are two minutes.
const (
	firstPause   = time.Second
	longestPause = 64 * time.Second
)

// patiently repeats a part of a publication in a workflow, which has no second time, while
// GitHub does not show what it is about.
func (w *writer) patiently(ctx context.Context, write func(context.Context) error) error {
	err := write(ctx)
	for pause := firstPause; w.Lenient && errors.Is(err, ErrNotVisible) && pause <= longestPause; pause *= 2 {
		if w.sleep(ctx, pause) != nil {
			break
		}
		err = write(ctx)
	}
	return err
}

func (p *Publisher) sleep(ctx context.Context, d time.Duration) error {
	if p.Sleep != nil {
		return p.Sleep(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// overtaken tells whether another change with the same head may have spoken after
// this one: GitHub counts the newest check of a name on a commit, and the other's stays
// as it was when that is closed. It lists the checks where that tells.
func (w *writer) overtaken(ctx context.Context, have change.Posted, c present.Check) (bool, []client.ExistingCheck, error) {
	alone := w.state.AnnouncedDigest == "" && len(w.view.Shown) == 0
	if alone || !w.state.Facts.Open || have.ID == 0 || c.ExternalID != w.state.ID.String() || c.HeadSHA != w.state.Facts.Head {
		return false, nil, nil
	}
	if !w.GitHub.UsesChecks() {
		return true, nil, nil
	}
	all, err := w.GitHub.ListChecks(ctx, w.state.Facts.Repo, c.HeadSHA, c.Name)
	return err == nil && len(all) > 0 && all[0].ID > have.ID, all, err // newest first
}

func (w *writer) check(ctx context.Context, have change.Posted, c present.Check, anew bool, listed []client.ExistingCheck) (int64, error) {
	repo, wanted := w.state.Facts.Repo, c.Check
	if !w.GitHub.UsesChecks() {
		state, description := c.CommitStatus()
		return 1, w.GitHub.SetStatus(ctx, repo, c.HeadSHA, client.Status{Context: c.Name, State: state, Description: description, TargetURL: c.DetailsURL})
	}
	if w.state.Republish && have.ID != 0 && !anew {
		// Of two that say they are this one, GitHub counts the newer.
		there, err := w.newest(ctx, have, wanted)
		if err != nil {
			return 0, err
		}
		if there.ID != 0 {
			have = change.Posted{ID: there.ID, Done: there.Status == "completed"}
		}
	}
	// A concluded check stays as it is: what is measured again gets a new one.
	if have.ID != 0 && !anew && (!have.Done || c.Status == "completed") {
		update := wanted
		if have.Done {
			update.Annotations = nil // GitHub would add them to those that are there
		}
		id, err := w.update(ctx, have.ID, update, c.Check)
		if !client.NotFound(err) || !w.awaited(c) {
			return id, err
		}
		// GitHub has no check of this number, and the commit needs one.
	}
	there := inPlaceOf(have, wanted, listed)
	if !anew {
		var err error
		if there, err = w.newest(ctx, have, wanted); err != nil {
			return 0, err
		}
	}
	if there.ID == 0 {
		id, err := w.GitHub.CreateCheck(ctx, repo, wanted)
		if !errors.Is(err, client.ErrUnknown) {
			return id, err
		}
		// It may be there all the same.
		var failed error
		if there, failed = w.newest(ctx, have, wanted); there.ID == 0 {
			return 0, errors.Join(err, failed)
		}
	}
	wanted.AnnotationsSent = min(there.Annotations, len(wanted.Annotations))
	return w.update(ctx, there.ID, wanted, c.Check)
}

// update changes a check, or creates a whole one where GitHub refuses that: only the App
// that created a check can change it.
func (w *writer) update(ctx context.Context, id int64, changed, whole client.Check) (int64, error) {
	err := w.GitHub.UpdateCheck(ctx, w.state.Facts.Repo, id, changed)
	if !status(err, http.StatusForbidden) {
		return id, err
	}
	return w.GitHub.CreateCheck(ctx, w.state.Facts.Repo, whole)
}

// newest is the check that was made in place of this one, after the one that is known.
func (w *writer) newest(ctx context.Context, have change.Posted, c client.Check) (client.ExistingCheck, error) {
	all, err := w.GitHub.ListChecks(ctx, w.state.Facts.Repo, c.HeadSHA, c.Name)
	if w.Lenient && status(err, http.StatusForbidden) {
		err = nil // whether checks may be written, their creation shows
	}
	return inPlaceOf(have, c, all), err
}

func inPlaceOf(have change.Posted, c client.Check, all []client.ExistingCheck) client.ExistingCheck {
	for _, there := range all {
		if there.ID > have.ID && there.ExternalID == c.ExternalID {
			return there
		}
	}
	return client.ExistingCheck{}
}

// endReplaced completes the pending checks that a newer one has replaced. A bot that was restored knows such a check as
// concluded, and never writes to it again, although the bot of before has opened it once more since the backup.
func (w *writer) endReplaced(ctx context.Context, c present.Check, id int64) error {
	if !w.GitHub.UsesChecks() {
		return nil
	}
	all, err := w.GitHub.ListChecks(ctx, w.state.Facts.Repo, c.HeadSHA, c.Name)
	if w.Lenient && status(err, http.StatusForbidden) {
		return nil
	}
	for _, old := range all {
		if old.ID >= id || old.ExternalID != c.ExternalID || old.Status == "completed" {
			continue
		}
		ended := client.Check{
			Name: c.Name, ExternalID: c.ExternalID, DetailsURL: c.DetailsURL, Status: "completed", Conclusion: "cancelled",
			Title: "Replaced", Summary: "A newer check of the same name has the verdict.",
		}
		if failed := w.GitHub.UpdateCheck(ctx, w.state.Facts.Repo, old.ID, ended); !gone(failed) && !status(failed, http.StatusForbidden) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// gone tells whether GitHub says that the thing spoken of does not exist. For a commit
// it says 422, as for a mistake of the bot's, which must not be taken for that.
func gone(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return status(err, http.StatusNotFound) || status(err, http.StatusGone) ||
		ok && e.Status == http.StatusUnprocessableEntity && strings.Contains(e.Message, "No commit found")
}

// status tells whether GitHub has refused with this, for good.
func status(err error, code int) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Status == code && e.RetryAt.IsZero() && !errors.Is(err, client.ErrUnknown)
}
