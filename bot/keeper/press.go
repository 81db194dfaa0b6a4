package keeper

import (
	"context"
	"errors"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/command"
)

// ErrMovedOn says that a command is about a commit that nobody waits for any more.
var ErrMovedOn = errors.New("the change is closed, or has another head by now")

// ErrStandsBy says that another bot does the work.
var ErrStandsBy = errors.New("this bot stands by, and another one leads")

// Press notes a command that somebody gave by a button on a page. Who it was is the
// page's word; whether they may is decided as for a comment. The same press twice is one.
func (k *Keeper) Press(ctx context.Context, id change.ID, press, by, head string, c command.Command) error {
	s, err := k.states.load(ctx, id)
	if err != nil {
		return err
	}
	if s.Seq == 0 || !s.Facts.Open || s.Facts.Head != head {
		return ErrMovedOn
	}
	if !k.leads() {
		return ErrStandsBy
	}
	return k.ask(ctx, id, change.Asked{ID: "button-" + press, By: by, Request: command.Request{Command: c}, Head: head})
}
