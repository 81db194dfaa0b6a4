package controller

import (
	"context"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/trace"
	"github.com/kernelgate/kernelgate/gates"
)

// headOf returns what the trace of a change is about.
func headOf(s *change.State) trace.Head {
	return trace.Head{Change: s.ID, SHA: s.Facts.Head, Repo: s.Facts.Repo}
}

type receivedKey struct{}

// received stores the time of a delivery in the context of its handler.
func received(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, receivedKey{}, at)
}

// accepted reports that a delivery about a change is recorded.
func (k *Controller) accepted(ctx context.Context, s *change.State) {
	if at, ok := ctx.Value(receivedKey{}).(time.Time); ok && s != nil {
		k.Trace.Tell(headOf(s), trace.Span{Name: "accept", From: at, To: k.Now()})
	}
}

// timed does a step of a change's work and reports its duration. The span belongs to the head after
// the step.
func (k *Controller) timed(ctx context.Context, s *change.State, name string, do func(context.Context, *change.State) error) error {
	from := k.Now()
	err := do(ctx, s)
	if k.Trace == nil {
		return err
	}
	to := k.Now()
	if after, failed := k.states.load(ctx, s.ID); failed == nil {
		s = after
	}
	k.Trace.Tell(headOf(s), trace.Span{Name: name, From: from, To: to, Err: err})
	return err
}

// over reports whether GitHub shows the final result of a head: nothing is being measured or
// planned, and nothing waits for an approval.
func over(s *change.State) bool {
	return !s.NeedsPublish && !s.NeedsPlan() && len(s.Wanted()) == 0 && !(s.Facts.Open && s.Held())
}

// conclude ends the trace of a head if the publication that was just recorded is the first that
// shows its verdict. The journal knows that, no matter which bots were involved.
func (k *Controller) conclude(ctx context.Context, s *change.State) {
	if k.Trace == nil || !over(s) {
		return
	}
	var since time.Time
	first := uint64(0)
	was := change.New(s.ID)
	_, err := k.Journal.ReplayRun(ctx, s.ID.String(), func(stored journal.Event) error {
		event, err := change.DecodeFrom(stored.Writer, stored.Kind, stored.Data)
		if err != nil {
			return err
		}
		before := was.Facts.Head
		was.Apply(stored.Seq, stored.At, event)
		if was.Facts.Head != before {
			since, first = stored.At, 0
		}
		if _, ok := event.(change.Published); ok && first == 0 && over(was) {
			first = stored.Seq
		}
		return nil
	})
	if err != nil {
		k.Log.Debug("a trace has no end", "change", s.ID.String(), "err", err)
		return
	}
	if first == s.Seq {
		k.Trace.Concluded(headOf(s), since, k.Now(), worst(s.Runs))
	}
}

// worst returns the worst outcome of a change's runs, or none for a change without kernels.
func worst(runs []change.Run) string {
	outcome := "none"
	rank := map[string]int{string(gates.Pass): 1, string(gates.Defer): 2, string(gates.Error): 3}
	for _, r := range runs {
		if r.Result != nil && rank[string(r.Result.Outcome)] > rank[outcome] {
			outcome = string(r.Result.Outcome)
		}
	}
	return outcome
}
