package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// Earlier tells a runner what is known of the machine code that it has built, for
// whatever commit that was measured. An extra goes by itself, and so does a sweep.
func (k *Controller) Earlier(ctx context.Context, job string, token uint64, c runners.Code) (protocol.PriorEvidence, error) {
	s, run, err := k.leasedRun(ctx, job, token)
	if err != nil || isStandalone(s.ID, run) {
		return protocol.PriorEvidence{}, err
	}
	answer := protocol.PriorEvidence{Again: run.Attempt > 1}
	a, err := k.attemptLog(ctx, change.EvidenceKeyOf(s.ID, s.Plan, run).OfCode(c))
	if err != nil {
		return answer, err
	}
	found, ok := a.Best(run.Dispatch)
	if !ok {
		return answer, nil
	}
	answer.Head = found.Head
	e, err := k.evidence(ctx, change.Result{Evidence: found.Evidence})
	if errors.Is(err, journal.ErrNotFound) { // somebody has tidied up: the attempts are counted all the same
		return protocol.PriorEvidence{Again: answer.Again}, nil
	}
	if err == nil {
		e.Best = nil // the server's own word, which a runner has no business with
		answer.Evidence, err = json.Marshal(e)
	}
	return answer, err
}

// Begin counts an attempt at the machine code. It is the next one of the code's,
// and of the sources' that it was built from: code that is other with every build
// would otherwise be a first attempt each time.
func (k *Controller) Begin(ctx context.Context, job string, token uint64, c runners.Code) (runners.Attempt, error) {
	s, run, err := k.leasedRun(ctx, job, token)
	if err != nil {
		return runners.Attempt{}, err
	}
	if isStandalone(s.ID, run) {
		return runners.Attempt{Number: 1, CodeNumber: 1}, nil
	}
	matter, claim := change.EvidenceKeyOf(s.ID, s.Plan, run), change.LeaseRef{Job: job, Token: token}
	codeNumber, err := k.numberCode(ctx, s, matter, c)
	if err != nil {
		return runners.Attempt{}, err
	}
	var attempt runners.Attempt
	for _, name := range []string{matter.OfSources(run.Sources, c), matter.OfCode(c)} {
		a, err := k.updateAttempts(ctx, name, func(now *change.AttemptLog) (string, any) {
			begun, ok := now.Next(claim, attempt.Number, codeNumber, run.Head)
			if !ok {
				return "", nil
			}
			return change.BegunKind, begun
		})
		if err != nil {
			return runners.Attempt{}, err
		}
		attempt.Number, _ = a.Number(claim)
		attempt.CodeNumber = a.CodeNumber
	}
	k.Log.Info("attempt", "change", s.ID.String(), "job", job, "token", token, "attempt", attempt.Number, "code_number", attempt.CodeNumber)
	return attempt, nil
}

// numberCode notes that a change is measured with this machine code, and returns the code's
// number: its place among the distinct codes of the pull request or, if that is
// larger, among those of the author against the same baseline. Only pull requests
// have lists: a merge group or a push measures what its pull requests brought, and gets
// number 1 unless the code has a number already.
func (k *Controller) numberCode(ctx context.Context, s *change.State, matter change.EvidenceKey, c runners.Code) (int, error) {
	number := 1
	if s.ID.Kind != change.Pull {
		return number, nil
	}
	code := matter.Listed(c)
	for _, name := range []string{matter.OfPull(s.ID.Number), matter.OfAuthor(s.Facts.Author, c)} {
		a, err := k.updateAttempts(ctx, name, func(now *change.AttemptLog) (string, any) {
			if now.IndexOf(code) > 0 {
				return "", nil
			}
			return change.ListedKind, change.Listed{Code: code}
		})
		if err != nil {
			return 0, err
		}
		number = max(number, a.IndexOf(code))
	}
	return number, nil
}

// isStandalone tells whether a run neither hears of what was measured before nor counts as an attempt.
func isStandalone(id change.ID, run change.Run) bool {
	return run.SideRun != nil || id.Kind == change.Sweep
}

// leasedRun is the run that a runner works at.
func (k *Controller) leasedRun(ctx context.Context, job string, token uint64) (*change.State, change.Run, error) {
	s, err := k.ofJob(ctx, job)
	if err != nil {
		return nil, change.Run{}, err
	}
	run, err := k.activeRun(s, job, token)
	return s, run, err
}

// attemptLog reads what the journal has under a name.
func (k *Controller) attemptLog(ctx context.Context, name string) (*change.AttemptLog, error) {
	a := change.NewAttemptLog()
	_, err := k.Journal.ReplayRun(ctx, name, func(e journal.Event) error { return a.Apply(e.Seq, e.Kind, e.Data) })
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return a, nil
}

// updateAttempts writes what decide makes of an account as it is, and returns it after that.
// No kind writes nothing; decide is asked again when somebody else was faster.
func (k *Controller) updateAttempts(ctx context.Context, name string, decide func(*change.AttemptLog) (kind string, event any)) (*change.AttemptLog, error) {
	for {
		a, err := k.attemptLog(ctx, name)
		if err != nil {
			return nil, err
		}
		kind, event := decide(a)
		if kind == "" {
			return a, nil
		}
		seq, err := k.Journal.Append(ctx, name, a.Seq, kind, event)
		if errors.Is(err, journal.ErrConflict) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", name, err)
		}
		data, err := json.Marshal(event)
		if err == nil {
			err = a.Apply(seq, kind, data)
		}
		return a, err
	}
}

// verifyAttempts refuses rounds that were not counted before they were measured, and
// rounds that are said to be of earlier attempts and are not. A runner's word on
// which attempt it made would be worth nothing. It returns how many rounds are of
// earlier attempts.
func (k *Controller) verifyAttempts(ctx context.Context, s *change.State, run change.Run, token uint64, e *gates.Evidence) (earlier int, err error) {
	if isStandalone(s.ID, run) || e.Fault != "" || e.Performance == nil || len(e.Performance.Rounds) == 0 {
		return 0, nil
	}
	const advice = "(is the runner of another version than the server?)"
	code, ok := runners.CodeOf(e)
	if !ok {
		return 0, fmt.Errorf("the runner sent times without the machine code that they are about %s", advice)
	}
	a, err := k.attemptLog(ctx, change.EvidenceKeyOf(s.ID, s.Plan, run).OfCode(code))
	if err != nil {
		return 0, unavailable{err}
	}
	if got := e.Performance.CodeNumber(); a.CodeNumber > 0 && got != a.CodeNumber {
		return 0, fmt.Errorf("the runner sent rounds of machine code %d of the change, and the server has counted it as number %d %s", got, a.CodeNumber, advice)
	}
	own, _ := a.Number(change.LeaseRef{Job: run.Job, Token: token})
	rounds, before := e.Performance.Rounds, len(e.Performance.Rounds)
	for before > 0 && own > 0 && rounds[before-1].Attempt == own {
		before--
	}
	if before == 0 {
		return 0, nil
	}
	last := rounds[before-1].Attempt
	found, ok := a.Of(last, run.Dispatch)
	if !ok {
		return 0, fmt.Errorf("the runner sent rounds of attempt %d, which the server has not counted %s", last, advice)
	}
	known, err := k.evidence(ctx, change.Result{Evidence: found.Evidence})
	if err != nil {
		return 0, unavailable{err}
	}
	if was := known.Performance; was == nil || !sameJSON(was.Rounds, rounds[:before]) {
		return 0, fmt.Errorf("the runner sent other rounds of attempt %d than the server knows %s", last, advice)
	}
	return before, nil
}

// unavailable is an error of the bot's own: it says nothing of the runner.
type unavailable struct{ error }

func (u unavailable) Unwrap() error { return u.error }

func sameJSON(a, b any) bool {
	one, errA := json.Marshal(a)
	other, errB := json.Marshal(b)
	return errA == nil && errB == nil && string(one) == string(other)
}

// recordEvidence keeps evidence for whoever builds the same machine code next. What came
// with an ERROR is worth nothing; its attempt is counted all the same.
func (k *Controller) recordEvidence(ctx context.Context, s *change.State, run change.Run, token uint64, result change.Result) error {
	if isStandalone(s.ID, run) || result.Outcome == gates.Error || result.Evidence == "" {
		return nil
	}
	e, err := k.evidence(ctx, result)
	if err != nil {
		return err
	}
	code, ok := runners.CodeOf(e)
	if !ok {
		return nil
	}
	claim := change.LeaseRef{Job: run.Job, Token: token}
	_, err = k.updateAttempts(ctx, change.EvidenceKeyOf(s.ID, s.Plan, run).OfCode(code), func(now *change.AttemptLog) (string, any) {
		_, own := now.Number(claim)
		own = own || result.Attempt == 0 && run.Attempt > 1 // other cases were drawn
		if have, ok := now.Of(result.Attempt, run.Dispatch); ok && (have.LeaseRef == claim || !own) {
			return "", nil // it was written already, or is what stood
		}
		return change.FoundKind, change.Found{LeaseRef: claim, Attempt: result.Attempt, Head: run.Head, Evidence: result.Evidence, Dispatch: run.Dispatch}
	})
	return err
}

// carry puts evidence that is judged by another policy into that policy's account,
// as if it had been gathered for it; where that has attempts of its own, they are
// what counts, and carry returns them in its place.
func (k *Controller) carry(ctx context.Context, m change.EvidenceKey, old change.Run, e *gates.Evidence) (*gates.Evidence, error) {
	code, ok := runners.CodeOf(e)
	attempt := lastAttempt(e)
	if !ok || attempt == 0 {
		return e, nil
	}
	claim := change.LeaseRef{Job: old.Job, Token: old.Token}
	a, err := k.updateAttempts(ctx, m.OfCode(code), func(now *change.AttemptLog) (string, any) {
		if now.Attempts > 0 {
			return "", nil
		}
		return change.BegunKind, change.Begun{LeaseRef: claim, Attempt: attempt, CodeNumber: e.Performance.CodeNumber(), Head: old.Head}
	})
	if err != nil {
		return nil, err
	}
	if _, ours := a.Number(claim); ours {
		_, err := k.updateAttempts(ctx, m.OfCode(code), func(now *change.AttemptLog) (string, any) {
			if _, ok := now.Best(old.Dispatch); ok {
				return "", nil
			}
			return change.FoundKind, change.Found{LeaseRef: claim, Attempt: attempt, Head: old.Head, Evidence: old.Result.Evidence, Dispatch: old.Dispatch}
		})
		if err != nil {
			return nil, err
		}
	}
	if a, err = k.attemptLog(ctx, m.OfCode(code)); err != nil {
		return nil, err
	}
	best, ok := a.Best(old.Dispatch)
	switch {
	case !ok:
		return nil, nil
	case best.Evidence == old.Result.Evidence:
		return e, nil
	}
	its, err := k.evidence(ctx, change.Result{Evidence: best.Evidence})
	if err == nil {
		its.Provenance, its.Notes, its.Baseline, its.Candidate = e.Provenance, e.Notes, e.Baseline, e.Candidate
	}
	return its, err
}

// lastAttempt is that of the last round; 0 where nothing was timed.
func lastAttempt(e *gates.Evidence) int {
	if e.Performance == nil || len(e.Performance.Rounds) == 0 {
		return 0
	}
	return max(1, e.Performance.Rounds[len(e.Performance.Rounds)-1].Attempt)
}
