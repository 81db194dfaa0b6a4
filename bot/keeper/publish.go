package keeper

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/gates"
)

// publish brings GitHub in line with the state: checks first, since they block;
// then the comment, then replies. What was written is noted even when something
// after it fails, and what exists is looked for before anything is created, so
// that a crash in between leads to no second comment.
func (k *Keeper) publish(ctx context.Context, s *change.State) error {
	view, err := k.view(ctx, s)
	if err != nil {
		return err
	}
	w := &writer{Keeper: k, state: s, view: view, out: change.Published{Checks: map[string]change.Posted{}, Replies: map[string]int64{}}}
	failure := errors.Join(w.checks(ctx), w.comment(ctx), w.replies(ctx))
	w.out.Complete = failure == nil
	k.count(func(c *Counts) {
		c.Published++
		if failure != nil {
			c.Retry++
		}
	})
	if w.empty() {
		return failure
	}
	_, err = k.states.update(ctx, s.ID, func(now *change.State) (change.Event, error) {
		if now.Seq != s.Seq {
			w.out.Complete = false // there is news to publish
		}
		return w.out, nil
	})
	return errors.Join(failure, err)
}

func (k *Keeper) view(ctx context.Context, s *change.State) (present.View, error) {
	v := present.View{
		State: s, Verdicts: map[string]*gates.Verdict{}, Progress: map[string]present.Progress{}, Tried: map[string][]present.Tried{},
		Runners: k.Runners(), Now: k.Now(), BotURL: k.URL, Statuses: !k.GitHub.UsesChecks(),
	}
	for _, run := range slices.Concat(s.Runs, s.Side) {
		if p, ok := k.progress.Get(run.Job); ok {
			v.Progress[run.Job] = p
		}
	}
	for _, run := range slices.Concat(s.Runs, s.Side) {
		if run.Result == nil {
			continue
		}
		verdict, err := k.verdict(ctx, *run.Result)
		if err != nil {
			return v, err
		}
		v.Verdicts[run.Job] = verdict
	}
	if s.ID.Kind != change.Pull {
		return v, nil
	}
	for _, run := range s.Runs {
		tried, err := k.Ledger.TriedBefore(ctx, s.ID.Repo, run.Kernel, s.ID, 3)
		if err != nil {
			return v, fmt.Errorf("asking the ledger: %w", err)
		}
		for _, t := range tried {
			v.Tried[run.Kernel] = append(v.Tried[run.Kernel], present.Tried{Number: t.Number, Title: t.Title, Outcome: t.Outcome, Reason: t.Reason, Line: t.Line, At: t.At})
		}
	}
	return v, nil
}

// publishProgress updates the text of running checks. It is not noted anywhere:
// the next text replaces it.
func (k *Keeper) publishProgress(ctx context.Context, s *change.State) error {
	if !k.GitHub.UsesChecks() || len(s.Wanted()) == 0 {
		return nil
	}
	view, err := k.view(ctx, s)
	if err != nil || len(view.Progress) == 0 {
		return err
	}
	for _, c := range present.Checks(view) {
		have := s.Checks[change.CheckKey(c.Name, c.HeadSHA)]
		if c.Status != "in_progress" || have.ID == 0 || have.Done {
			continue
		}
		if err := k.GitHub.UpdateCheck(ctx, s.Facts.Repo, have.ID, c.ForHub()); err != nil && !errors.Is(err, client.ErrUnknown) {
			return err
		}
	}
	return nil
}

// A writer publishes one view.
type writer struct {
	*Keeper
	state *change.State
	view  present.View
	out   change.Published
	there []client.Comment // what the pull request's conversation holds, once asked for
	asked bool
}

func (w *writer) empty() bool {
	return len(w.out.Checks) == 0 && w.out.Comment == nil && len(w.out.Replies) == 0 && !w.out.Complete
}

func (w *writer) checks(ctx context.Context) error {
	var failure error
	for _, c := range present.Checks(w.view) {
		key := change.CheckKey(c.Name, c.HeadSHA)
		have := w.state.Checks[key]
		if have.ID != 0 && have.Digest == c.Digest {
			continue
		}
		id, err := w.check(ctx, have, c)
		if gone(err) {
			id, err = max(have.ID, 1), nil // the commit or the repository is gone: there is nobody to tell
		}
		if err != nil {
			failure = errors.Join(failure, err)
			continue
		}
		w.out.Checks[key] = change.Posted{ID: id, Digest: c.Digest, Done: c.Status == "completed"}
	}
	return failure
}

func (w *writer) check(ctx context.Context, have change.Posted, c present.Check) (int64, error) {
	repo := w.state.Facts.Repo
	if w.view.Statuses {
		state, description := c.CommitStatus()
		return 1, w.GitHub.SetStatus(ctx, repo, c.HeadSHA, client.Status{Context: c.Name, State: state, Description: description, TargetURL: c.DetailsURL})
	}
	wanted := c.ForHub()
	// A concluded check stays as it is: what is measured again gets a new one.
	if have.ID != 0 && (!have.Done || c.Status == "completed") {
		if have.Done {
			wanted.Annotations = nil // GitHub would add them to those that are there
		}
		return have.ID, w.GitHub.UpdateCheck(ctx, repo, have.ID, wanted)
	}
	there, err := w.GitHub.ListChecks(ctx, repo, c.HeadSHA, c.Name)
	if err != nil {
		return 0, err
	}
	for _, t := range there {
		if t.ID > have.ID && t.ExternalID == c.ExternalID {
			wanted.AnnotationsSent = min(t.Annotations, len(wanted.Annotations))
			return t.ID, w.GitHub.UpdateCheck(ctx, repo, t.ID, wanted)
		}
	}
	return w.GitHub.CreateCheck(ctx, repo, wanted)
}

// comment keeps the one sticky comment.
func (w *writer) comment(ctx context.Context) error {
	body := present.Comment(w.view)
	digest := present.CommentDigest(w.view)
	have := w.state.Comment
	if body == "" || (have.ID != 0 && have.Digest == digest) || w.state.Current() == nil && have.ID == 0 {
		return nil
	}
	if have.ID == 0 {
		found, err := w.find(ctx, present.Marker(w.state.ID))
		if err != nil {
			return err
		}
		have.ID = found
	}
	id, err := have.ID, error(nil)
	if id != 0 {
		err = w.GitHub.EditComment(ctx, w.state.Facts.Repo, id, body)
		if client.NotFound(err) {
			id = 0 // somebody deleted it
		}
	}
	if id == 0 {
		id, err = w.GitHub.CreateComment(ctx, w.state.Facts.Repo, w.state.ID.Number, body)
	}
	if err != nil && !client.Final(err) {
		return err
	}
	w.out.Comment = &change.Posted{ID: id, Digest: digest}
	return nil
}

// find is the bot's own comment with the marker, or 0.
func (w *writer) find(ctx context.Context, marker string) (int64, error) {
	if !w.asked {
		var err error
		if w.there, err = w.GitHub.ListComments(ctx, w.state.Facts.Repo, w.state.ID.Number); err != nil {
			return 0, err
		}
		w.asked = true
	}
	for _, c := range w.there {
		if c.Mine && strings.HasPrefix(c.Body, marker) {
			return c.ID, nil
		}
	}
	return 0, nil
}

// replies answers the commands that were decided on. A button has no comment to
// answer; what it led to shows in the check.
func (w *writer) replies(ctx context.Context) error {
	var failure error
	for _, c := range w.state.Commands {
		if !c.Answered || c.Replied != 0 || c.Comment == 0 {
			continue
		}
		id, err := w.reply(ctx, c)
		if client.Final(err) { // such as in a locked conversation
			id, err = -1, nil
		}
		if err != nil {
			failure = errors.Join(failure, err)
			continue
		}
		w.out.Replies[c.ID] = id
	}
	return failure
}

func (w *writer) reply(ctx context.Context, c change.Command) (int64, error) {
	reaction := "rocket"
	if !c.OK {
		reaction = "confused"
	}
	if err := w.GitHub.React(ctx, w.state.Facts.Repo, c.Comment, reaction); err != nil && !client.Final(err) {
		return 0, err
	}
	id, err := w.find(ctx, present.ReplyMarker(c.ID))
	if err != nil || id != 0 {
		return id, err
	}
	return w.GitHub.CreateComment(ctx, w.state.Facts.Repo, w.state.ID.Number, present.Reply(c))
}

// gone tells whether GitHub says that the thing spoken of does not exist: saying
// it again would not help. For a commit that is gone it says 422, as for a mistake
// of the bot's, and that must not be taken lightly.
func gone(err error) bool {
	var e *client.Error
	if !errors.As(err, &e) {
		return false
	}
	return e.Status == http.StatusNotFound || e.Status == http.StatusGone || e.Status == http.StatusUnprocessableEntity && strings.Contains(e.Message, "No commit found")
}
