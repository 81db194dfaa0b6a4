package controller

import (
	"context"
	"errors"

	"github.com/kernelgate/kernelgate/bot/attempts"
	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// Earlier returns what the bot knows about the machine code that a runner has built.
func (k *Controller) Earlier(ctx context.Context, job string, token uint64, c runners.Code) (protocol.PriorEvidence, error) {
	s, run, err := k.leasedRun(ctx, job, token)
	if err != nil {
		return protocol.PriorEvidence{}, err
	}
	return k.attempts.Prior(ctx, s, run, c)
}

// Begin counts an attempt at the machine code, before its first round.
func (k *Controller) Begin(ctx context.Context, job string, token uint64, c runners.Code) (runners.Attempt, error) {
	s, run, err := k.leasedRun(ctx, job, token)
	if err != nil {
		return runners.Attempt{}, err
	}
	attempt, err := k.attempts.Start(ctx, s, run, token, c)
	if err == nil {
		k.Log.Info("attempt", "change", s.ID.String(), "job", job, "token", token, "attempt", attempt.Number, "code_number", attempt.CodeNumber)
	}
	return attempt, err
}

// leasedRun returns the run that a runner works on.
func (k *Controller) leasedRun(ctx context.Context, job string, token uint64) (*change.State, change.Run, error) {
	s, err := k.ofJob(ctx, job)
	if err != nil {
		return nil, change.Run{}, err
	}
	run, err := k.activeRun(s, job, token)
	return s, run, err
}

// verifyAttempts refuses rounds that were not counted. It returns the number of rounds of earlier
// attempts.
func (k *Controller) verifyAttempts(ctx context.Context, s *change.State, run change.Run, token uint64, e *gates.Evidence) (earlier int, err error) {
	earlier, err = k.attempts.Verify(ctx, s, run, token, e)
	if _, mismatch := errors.AsType[attempts.Mismatch](err); err != nil && !mismatch {
		err = unavailable{err}
	}
	return earlier, err
}

// unavailable is an error of the bot: the runner did not cause it.
type unavailable struct{ error }

func (u unavailable) Unwrap() error { return u.error }
