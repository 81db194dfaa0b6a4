package publish

import (
	"context"
	"errors"
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
	if w.noSpeech || body == "" || (have.ID != 0 && have.Digest == digest) || w.state.Current() == nil && have.ID == 0 {
		return nil
	}
	if w.Extend != nil {
		body = w.Extend(body)
	}
	id, err := w.put(ctx, have.ID, present.Marker(w.state.ID), body)
	if err == nil || gone(err) {
		w.out.Comment = &change.Posted{ID: id, Digest: digest}
		return nil
	}
	return w.unsaid(err)
}

// put writes a comment in place of the one that begins with the marker, or anew.
func (w *writer) put(ctx context.Context, id int64, marker, body string) (int64, error) {
	var err error
	if id == 0 {
		if id, err = w.find(ctx, marker); err != nil {
			return 0, err
		}
	}
	if id != 0 {
		err = w.GitHub.EditComment(ctx, w.state.Facts.Repo, id, body)
		// Somebody has deleted it; or it is another's, which bears our marker.
		if !client.NotFound(err) && !status(err, http.StatusForbidden) {
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
	if there, failed := w.find(ctx, marker); there != 0 || failed != nil {
		return there, failed
	}
	return 0, err
}

// find is our own comment with the marker, or 0.
func (w *writer) find(ctx context.Context, marker string) (int64, error) {
	if !w.asked {
		var err error
		if w.there, err = w.GitHub.ListComments(ctx, w.state.Facts.Repo, w.state.ID.Number); err != nil {
			return 0, err
		}
		w.asked = true
	}
	if i := slices.IndexFunc(w.there, func(c client.Comment) bool { return c.Mine && strings.HasPrefix(c.Body, marker) }); i >= 0 {
		return w.there[i].ID, nil
	}
	return 0, nil
}

// replies answers the commands that were decided on. A button has no comment to
// answer; what it led to shows in the check.
func (w *writer) replies(ctx context.Context) error {
	var failure error
	for _, c := range w.state.Commands {
		if !c.Answered || c.Replied != 0 || c.Comment == 0 || w.noSpeech {
			continue
		}
		id, err := w.reply(ctx, c)
		if gone(err) {
			id, err = -1, nil
		}
		if err == nil && id != 0 {
			w.out.Replies[c.ID] = id
		}
		failure = errors.Join(failure, w.unsaid(err))
	}
	return failure
}

func (w *writer) reply(ctx context.Context, c change.Command) (int64, error) {
	reaction := "rocket"
	if !c.OK {
		reaction = "confused"
	}
	if err := w.react(ctx, w.state.Facts.Repo, c.Comment, reaction); err != nil || w.noSpeech {
		return 0, err
	}
	marker := present.ReplyMarker(c.ID)
	if id, err := w.find(ctx, marker); err != nil || id != 0 {
		return id, err
	}
	return w.create(ctx, marker, present.Reply(c))
}
