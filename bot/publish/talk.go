package publish

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
)

// comment keeps the one sticky comment.
func (w *writer) comment(ctx context.Context) error {
	body, digest, have := present.Comment(w.view), present.CommentDigest(w.view), w.state.Comment
	if w.noSpeech || body == "" || (have.ID != 0 && have.Digest == digest && !w.state.Republish) || w.state.NeedsPlan() || w.state.Current() == nil && have.ID == 0 {
		return nil
	}
	if w.Extend != nil {
		body = w.Extend(body)
	}
	if w.view.Measuring() && !w.Lenient {
		ctx = client.LowPriority(ctx)
	}
	id, err := w.put(ctx, have.ID, present.Marker(w.state.ID), body)
	if err == nil {
		err = w.single(ctx, present.Marker(w.state.ID), id)
	}
	switch {
	case err == nil:
		w.out.Comment = &change.Posted{ID: id, Digest: digest}
		return nil
	case gone(err):
		return w.unheard(err)
	}
	return w.unsaid(err)
}

// unheard is the error of a word on a pull request that GitHub does not show. There is none
// where nobody waits for the word, or where GitHub says that the conversation was deleted.
func (w *writer) unheard(err error) error {
	if !w.state.Facts.Open || status(err, http.StatusGone) {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrNotVisible, err)
}

// put writes a comment in place of the one that is known or that begins with the marker,
// or anew: it may have been deleted, and one with our marker may be another's.
func (w *writer) put(ctx context.Context, known int64, marker, body string) (int64, error) {
	edit := func(id int64) (done bool, err error) {
		err = w.GitHub.EditComment(ctx, w.state.Facts.Repo, id, body)
		return !client.NotFound(err) && !status(err, http.StatusForbidden), err
	}
	if known != 0 {
		if done, err := edit(known); done {
			return known, err
		}
	}
	all, err := w.ours(ctx, marker)
	if err != nil {
		return 0, err
	}
	for _, id := range all {
		if id == known {
			continue
		}
		if done, err := edit(id); done {
			return id, err
		}
	}
	return w.create(ctx, marker, body)
}

func (w *writer) create(ctx context.Context, marker, body string) (int64, error) {
	id, err := w.GitHub.CreateComment(ctx, w.state.Facts.Repo, w.state.ID.Number, body)
	if !errors.Is(err, client.ErrUnknown) {
		return id, err
	}
	w.asked = false
	if all, failed := w.ours(ctx, marker); len(all) > 0 || failed != nil {
		return slices.Max(append(all, 0)), failed
	}
	return 0, err
}

// ours are our own comments with the marker, as far as we know our name.
func (w *writer) ours(ctx context.Context, marker string) (ids []int64, err error) {
	if !w.asked {
		if w.there, err = w.GitHub.ListComments(ctx, w.state.Facts.Repo, w.state.ID.Number); err != nil {
			return nil, err
		}
		w.asked = true
	}
	for _, c := range w.there {
		if c.Mine && strings.HasPrefix(c.Body, marker) {
			ids = append(ids, c.ID)
		}
	}
	return ids, nil
}

// single removes what says once more what one comment says, where another bot may have
// spoken too.
func (w *writer) single(ctx context.Context, marker string, keep int64) error {
	if !w.state.Republish {
		return nil
	}
	all, err := w.ours(ctx, marker)
	for _, id := range all {
		if id != keep && err == nil {
			err = w.GitHub.DeleteComment(ctx, w.state.Facts.Repo, id)
		}
	}
	return err
}

// replies answers the commands that were decided on. A button has no comment to
// answer; what it led to shows in the check.
func (w *writer) replies(ctx context.Context) error {
	var failure error
	for _, c := range w.state.Commands {
		if c.Replied > 0 && !w.noSpeech {
			failure = errors.Join(failure, w.unsaid(w.single(ctx, present.ReplyMarker(c.ID), c.Replied)))
		}
		if !c.Answered || c.Replied != 0 || c.Comment == 0 || w.noSpeech || w.out.Replies[c.ID] != 0 {
			continue
		}
		id, err := w.reply(ctx, c)
		failure = errors.Join(failure, w.replied(c.ID, id, err))
	}
	for _, r := range w.view.NewReports() {
		if w.noSpeech || w.out.Replies[r.ReportID()] != 0 {
			continue
		}
		id, err := w.sayOnce(ctx, r.ReportID(), w.view.SearchReport(r))
		failure = errors.Join(failure, w.replied(r.ReportID(), id, err))
	}
	return failure
}

// replied records the comment that holds a reply. It returns an error only if another try may succeed.
func (w *writer) replied(to string, id int64, err error) error {
	if gone(err) {
		if err = w.unheard(err); err != nil {
			return err
		}
		id = -1 // there is nobody to tell
	}
	if err == nil && id != 0 {
		w.out.Replies[to] = id
	}
	return w.unsaid(err)
}

// sayOnce returns the comment that holds a reply. It writes the comment unless an earlier call has written
// it.
func (w *writer) sayOnce(ctx context.Context, to, text string) (int64, error) {
	marker := present.ReplyMarker(to)
	if all, err := w.ours(ctx, marker); err != nil || len(all) > 0 {
		return slices.Max(append(all, 0)), err
	}
	return w.create(ctx, marker, text)
}

func (w *writer) reply(ctx context.Context, c change.Command) (int64, error) {
	reaction := "rocket"
	if !c.OK {
		reaction = "confused"
	}
	if err := w.react(ctx, w.state.Facts.Repo, c.Asked, reaction); err != nil || w.noSpeech {
		return 0, err
	}
	return w.sayOnce(ctx, c.ID, w.view.Reply(c))
}
