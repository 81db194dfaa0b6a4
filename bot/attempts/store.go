package attempts

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

// A Journal keeps the events of logs, each log under its name.
type Journal interface {
	ReplayRun(ctx context.Context, name string, do func(journal.Event) error) (uint64, error)
	Append(ctx context.Context, name string, after uint64, kind string, event any) (uint64, error)
}

// A Store reads and writes logs.
type Store struct {
	Journal  Journal
	Evidence func(ctx context.Context, blob string) (*gates.Evidence, error) // reads stored evidence
}

// Prior returns the evidence about the machine code that a runner has built for a run. The
// evidence may come from a different commit. An extra run, a sweep and a watch start without evidence.
func (st *Store) Prior(ctx context.Context, s *change.State, run change.Run, c runners.Code) (protocol.PriorEvidence, error) {
	if isStandalone(s.ID, run) {
		return protocol.PriorEvidence{}, nil
	}
	answer := protocol.PriorEvidence{Again: run.Attempt > 1}
	a, err := st.read(ctx, KeyOf(s.ID, s.Plan, run).OfCode(c))
	if err != nil {
		return answer, err
	}
	found, ok := a.Best(run.Dispatch)
	if !ok {
		return answer, nil
	}
	answer.Head = found.Head
	e, err := st.Evidence(ctx, found.Evidence)
	if errors.Is(err, journal.ErrNotFound) { // the blob was deleted; the attempts still count
		return protocol.PriorEvidence{Again: answer.Again}, nil
	}
	if err == nil {
		e.Best = nil // only the server uses it
		answer.Evidence, err = json.Marshal(e)
	}
	return answer, err
}

// Start counts an attempt at the machine code. It is the next attempt at the code and at the
// sources that it was built from: otherwise, code that differs with every build would be a first
// attempt each time.
func (st *Store) Start(ctx context.Context, s *change.State, run change.Run, token uint64, c runners.Code) (runners.Attempt, error) {
	key, lease := KeyOf(s.ID, s.Plan, run), LeaseRef{Job: run.Job, Token: token}
	if run.Search != nil {
		// If the gate judges a candidate of a search, the candidate counts as one more machine code of
		// the change. The rounds belong to the search, so they are no attempt at the sources of the head.
		number, err := st.numberCode(ctx, s, key, c)
		return runners.Attempt{Number: 1, CodeNumber: number}, err
	}
	if isStandalone(s.ID, run) {
		return runners.Attempt{Number: 1, CodeNumber: 1}, nil
	}
	codeNumber, err := st.numberCode(ctx, s, key, c)
	if err != nil {
		return runners.Attempt{}, err
	}
	var attempt runners.Attempt
	for _, name := range []string{key.OfSources(run.Sources, c), key.OfCode(c)} {
		a, err := st.update(ctx, name, func(now *Log) (string, any) {
			begun, ok := now.Next(lease, attempt.Number, codeNumber, run.Head)
			if !ok {
				return "", nil
			}
			return BegunKind, begun
		})
		if err != nil {
			return runners.Attempt{}, err
		}
		attempt.Number, _ = a.Number(lease)
		attempt.CodeNumber = a.CodeNumber
	}
	return attempt, nil
}

// numberCode writes down that a change is measured with this machine code, and returns the code's
// number: its index among the distinct codes of the pull request or, if that is
// larger, among those of the author against the same baseline. Only pull requests
// have lists: a merge group or a push measures the code of its pull requests, and gets
// number 1 unless the code has a number already.
func (st *Store) numberCode(ctx context.Context, s *change.State, key Key, c runners.Code) (int, error) {
	number := 1
	if s.ID.Kind != change.Pull {
		return number, nil
	}
	code := key.Listed(c)
	for _, name := range []string{key.OfPull(s.ID.Number), key.OfAuthor(s.Facts.Author, c)} {
		a, err := st.update(ctx, name, func(now *Log) (string, any) {
			if now.IndexOf(code) > 0 {
				return "", nil
			}
			return ListedKind, Listed{Code: code}
		})
		if err != nil {
			return 0, err
		}
		number = max(number, a.IndexOf(code))
	}
	return number, nil
}

// isStandalone tells whether a run gets no prior evidence and does not count as an attempt.
func isStandalone(id change.ID, run change.Run) bool {
	return run.ExtraRun != nil || run.Search != nil || id.Kind.Scheduled()
}

// read is the log of a name.
func (st *Store) read(ctx context.Context, name string) (*Log, error) {
	a := NewLog()
	_, err := st.Journal.ReplayRun(ctx, name, func(e journal.Event) error { return a.apply(e.Writer, e.Seq, e.Kind, e.Data) })
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return a, nil
}

// update writes the event that decide returns for a log, and returns the log after that.
// An empty kind writes nothing; decide is called again after a conflict with a different writer.
func (st *Store) update(ctx context.Context, name string, decide func(*Log) (kind string, event any)) (*Log, error) {
	for {
		a, err := st.read(ctx, name)
		if err != nil {
			return nil, err
		}
		kind, event := decide(a)
		if kind == "" {
			return a, nil
		}
		seq, err := st.Journal.Append(ctx, name, a.Seq, kind, event)
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

// A Mismatch says that a runner's rounds are not those that the server has counted. Every other
// error of Verify is the server's own.
type Mismatch struct{ text string }

func (m Mismatch) Error() string { return m.text }

func mismatch(format string, args ...any) error {
	return Mismatch{fmt.Sprintf(format, args...) + " (does the runner have a different version than the server?)"}
}

// Verify refuses rounds that were not counted before they were measured, and rounds of earlier
// attempts that differ from the stored ones: a runner could claim any attempt. It returns how many
// rounds are of earlier attempts.
func (st *Store) Verify(ctx context.Context, s *change.State, run change.Run, token uint64, e *gates.Evidence) (earlier int, err error) {
	if isStandalone(s.ID, run) || e.Fault != "" || e.Performance == nil || len(e.Performance.Rounds) == 0 {
		return 0, nil
	}
	code, ok := runners.CodeOf(e)
	if !ok {
		return 0, mismatch("the runner sent times without the machine code that they are about")
	}
	a, err := st.read(ctx, KeyOf(s.ID, s.Plan, run).OfCode(code))
	if err != nil {
		return 0, err
	}
	if got := e.Performance.CodeNumber(); a.CodeNumber > 0 && got != a.CodeNumber {
		return 0, mismatch("the runner sent rounds of machine code %d of the change, and the server has counted it as number %d", got, a.CodeNumber)
	}
	own, _ := a.Number(LeaseRef{Job: run.Job, Token: token})
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
		return 0, mismatch("the runner sent rounds of attempt %d, which the server has not counted", last)
	}
	known, err := st.Evidence(ctx, found.Evidence)
	if err != nil {
		return 0, err
	}
	if was := known.Performance; was == nil || !sameJSON(was.Rounds, rounds[:before]) {
		return 0, mismatch("the runner sent different rounds of attempt %d than the server has", last)
	}
	return before, nil
}

func sameJSON(a, b any) bool {
	one, errA := json.Marshal(a)
	other, errB := json.Marshal(b)
	return errA == nil && errB == nil && string(one) == string(other)
}

// Record keeps evidence for the next run that builds the same machine code. Evidence that led to
// an ERROR is not kept; its attempt still counts.
func (st *Store) Record(ctx context.Context, s *change.State, run change.Run, token uint64, result change.Result) error {
	if isStandalone(s.ID, run) || result.Outcome == gates.Error || result.Evidence == "" {
		return nil
	}
	e, err := st.Evidence(ctx, result.Evidence)
	if err != nil {
		return err
	}
	code, ok := runners.CodeOf(e)
	if !ok {
		return nil
	}
	lease := LeaseRef{Job: run.Job, Token: token}
	_, err = st.update(ctx, KeyOf(s.ID, s.Plan, run).OfCode(code), func(now *Log) (string, any) {
		_, own := now.Number(lease)
		own = own || result.Attempt == 0 && run.Attempt > 1 // its cases are different ones
		if have, ok := now.Of(result.Attempt, run.Dispatch); ok && (have.LeaseRef == lease || !own) {
			return "", nil // it was written already, or is the earlier evidence
		}
		return FoundKind, Found{LeaseRef: lease, Attempt: result.Attempt, Head: run.Head, Evidence: result.Evidence, Dispatch: run.Dispatch}
	})
	return err
}

// Carry copies evidence that is judged by a different policy into that policy's log, as if it had
// been gathered for it. Where that log has attempts already, they count, and Carry returns their
// evidence instead; nil where they left none.
func (st *Store) Carry(ctx context.Context, key Key, old change.Run, e *gates.Evidence) (*gates.Evidence, error) {
	code, ok := runners.CodeOf(e)
	attempt := Last(e)
	if !ok || attempt == 0 {
		return e, nil
	}
	lease := LeaseRef{Job: old.Job, Token: old.Token}
	a, err := st.update(ctx, key.OfCode(code), func(now *Log) (string, any) {
		if now.Attempts > 0 {
			return "", nil
		}
		return BegunKind, Begun{LeaseRef: lease, Attempt: attempt, CodeNumber: e.Performance.CodeNumber(), Head: old.Head}
	})
	if err != nil {
		return nil, err
	}
	if _, ours := a.Number(lease); ours {
		_, err := st.update(ctx, key.OfCode(code), func(now *Log) (string, any) {
			if _, ok := now.Best(old.Dispatch); ok {
				return "", nil
			}
			return FoundKind, Found{LeaseRef: lease, Attempt: attempt, Head: old.Head, Evidence: old.Result.Evidence, Dispatch: old.Dispatch}
		})
		if err != nil {
			return nil, err
		}
	}
	if a, err = st.read(ctx, key.OfCode(code)); err != nil {
		return nil, err
	}
	best, ok := a.Best(old.Dispatch)
	switch {
	case !ok:
		return nil, nil
	case best.Evidence == old.Result.Evidence:
		return e, nil
	}
	its, err := st.Evidence(ctx, best.Evidence)
	if err == nil {
		its.Provenance, its.Notes, its.Baseline, its.Candidate = e.Provenance, e.Notes, e.Baseline, e.Candidate
	}
	return its, err
}

// Last is the attempt of the last round; 0 where nothing was timed.
func Last(e *gates.Evidence) int {
	if e.Performance == nil || len(e.Performance.Rounds) == 0 {
		return 0
	}
	return max(1, e.Performance.Rounds[len(e.Performance.Rounds)-1].Attempt)
}
