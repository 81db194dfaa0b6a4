package serve

import (
	"context"
	"errors"

	"github.com/kernelgate/kernelgate/bot/compat"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// A bot that shares its journal with a newer bot may read an event that it does not know. From then on it must decide
// nothing and must not lead. It still stores webhooks and forwards the requests of runners, so that nothing is lost until the
// operator upgrades it. A bot with an embedded server exits instead, because no other bot could do its work.

// outdated says since when this bot cannot read the journal, and why.
type outdated struct {
	since context.Context // ends with the first event of a newer version
	set   context.CancelCauseFunc
}

func newOutdated() outdated {
	var o outdated
	o.since, o.set = context.WithCancelCause(context.Background())
	return o
}

// reason is the message for the operator. It is nil as long as the bot can read every event.
func (o outdated) reason() error { return context.Cause(o.since) }

// whileReadable runs a part of the bot that reads events. When any of these parts reads the first event of a newer version, all
// of them end. The rest of the bot continues.
func (s *Server) whileReadable(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		work, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.outdated.since, cancel)()
		err := run(work)
		if errors.Is(err, journal.ErrDamaged) {
			return damageMistake(err)
		}
		var unknown *compat.UnknownError
		if errors.As(err, &unknown) {
			if len(s.opt.NATS) == 0 {
				return usage.Error{Err: err} // a restart reads the same event
			}
			if s.outdated.reason() == nil {
				s.log.Error("this bot is too old for the journal: it stores webhooks, and does nothing else", "err", err)
			}
			s.outdated.set(unknown)
		}
		if s.outdated.reason() == nil {
			return err
		}
		<-ctx.Done()
		return nil
	}
}
