package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// TestMayWrite checks that a bot that may not write sends nothing, reports that nothing was done,
// and can still read. MayWrite is called again for every attempt.
func TestMayWrite(t *testing.T) {
	t.Parallel()
	not, asked, may := errors.New("another one leads"), 0, true
	w := newWorld(t, client.Options{MayWrite: func(context.Context) error {
		asked++
		if may {
			return nil
		}
		return not
	}}, embedded.Limits{})
	id, err := w.bot.CreateComment(w.ctx, repo, w.pr.Number(), "measuring")
	w.no(err)
	if asked != 1 {
		t.Errorf("asked %d times before one write", asked)
	}
	may = false
	sent := w.wire.count("/issues/")
	for name, write := range map[string]func() error{
		"create": func() error { _, err := w.bot.CreateComment(w.ctx, repo, w.pr.Number(), "again"); return err },
		"edit":   func() error { return w.bot.EditComment(w.ctx, repo, id, "PASS") },
		"delete": func() error { return w.bot.DeleteComment(w.ctx, repo, id) },
	} {
		was := asked
		if err := write(); !errors.Is(err, not) || errors.Is(err, client.ErrUnknown) || client.IsPermanent(err) {
			t.Errorf("%s: %v", name, err)
		}
		if asked != was+1 {
			t.Errorf("%s: asked %d times", name, asked-was)
		}
	}
	if n := w.wire.count("/issues/") - sent; n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	list, err := w.bot.ListComments(w.ctx, repo, w.pr.Number())
	w.no(err)
	if len(list) != 1 || list[0].Body != "measuring" {
		t.Errorf("comments: %v", list)
	}
}
