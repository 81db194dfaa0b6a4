package tune

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// maxVerdicts is how many finalists the gate judges.
const maxVerdicts = 3

// finals runs the sanitizers on the best candidate and has the ordinary gate judge it. The gate
// measures fresh rounds on fresh inputs, so that the search's luck counts for nothing. If a finalist
// fails, the arms that it has beaten race again, and the best of them is next. Every candidate that
// the gate sees is one more distinct machine code, with a smaller part of the policy's error rate, as
// for a pull request that tries one kernel after the other.
func (s *Search) finals(ctx context.Context) error {
	s.result.Elite, s.result.Decided = s.race.Elite(elite), s.race.Decided()
	if _, replayed := s.Lab.(*Replay); replayed {
		s.result.Replayed = true
		return nil
	}
	if s.Log.Header.Exhaustive {
		return nil // it is the truth to compare with, and proposes no change
	}
	for ; len(s.result.Confirmed) < maxVerdicts; s.result.Elite, s.result.Decided = s.race.Elite(elite), s.race.Decided() {
		t := s.ids[s.race.Best()]
		if t == nil || t == s.tried[0] {
			if s.lost == 0 || !s.enterBest() {
				return nil // nothing is better than the incumbent
			}
			if err := s.raceOn(ctx); err != nil {
				return err
			}
			continue
		}
		if s.result.Below = s.belowGoal(t); s.result.Below != "" || s.Log.Header.NoGate {
			return nil
		}
		ok, err := s.check(ctx, t)
		if err == nil && ok {
			ok, err = s.sanitize(ctx, t)
		}
		if err != nil {
			return err
		}
		if ok {
			if ok, err = s.judge(ctx, t); err != nil || ok {
				return err
			}
		}
		if err := s.raceOn(ctx); err != nil {
			return err
		}
	}
	return nil
}

// belowGoal returns a sentence if the rounds show that a finalist is below the policy's goal: the gate would take minutes to say
// the same.
func (s *Search) belowGoal(t *Tried) string {
	for _, shape := range slices.Sorted(maps.Keys(s.Log.Header.Goals)) {
		var logs []float64
		for _, round := range s.Log.rounds {
			if ratio := round[t.ID].Speedups[shape]; ratio > 0 {
				logs = append(logs, math.Log(ratio))
			}
		}
		if len(logs) < firstInterim {
			continue
		}
		slices.Sort(logs) // rounds come in no order, and the sum must not depend on it
		mean, spread := meanAndError(logs)
		if goal := s.Log.Header.Goals[shape]; mean+screenNoise*spread < math.Log(goal) {
			return fmt.Sprintf("%s is %s on %s, below the policy's goal of %s", s.space.Short(t.Candidate), number.Speedup(math.Expm1(mean)), shape, number.Speedup(goal-1))
		}
	}
	return ""
}

// meanAndError returns the mean of values and its standard error.
func meanAndError(values []float64) (mean, spread float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		spread += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(spread / float64(max(len(values)-1, 1)) / float64(len(values)))
}

// judge asks the gate about a finalist. It returns true if there is nothing more to ask.
func (s *Search) judge(ctx context.Context, t *Tried) (bool, error) {
	verdict, err := s.confirm(ctx, t, len(s.result.Confirmed)+1)
	if err != nil {
		return false, err
	}
	s.result.Confirmed = append(s.result.Confirmed, verdict)
	switch {
	case verdict.Outcome == gates.Pass:
		s.result.Winner = t.ID
		return true, nil
	case verdict.Outcome != gates.Defer:
		return true, nil // the fault of the host would be the next candidate's, too
	case verdict.Reason == gates.ReasonTooSlow || verdict.Reason == gates.ReasonInconclusive:
		return true, nil // the others are no faster
	}
	s.lost++
	t.Status, t.Gate, t.Why = Failed, gates.GatePerformance, "the gate defers it: "+verdict.Summary
	s.disqualify(t)
	return false, nil
}

// sanitize reports whether the sanitizers let a finalist go on.
func (s *Search) sanitize(ctx context.Context, t *Tried) (bool, error) {
	return s.examine(ctx, t, examination{"running the sanitizers on", s.Log.sanitized, s.Lab.Sanitize, func(c *Checked) entry { return entry{Sanitize: c} }})
}

// confirm asks the gate. An attempt counts from before its first round, whatever happens to it.
func (s *Search) confirm(ctx context.Context, t *Tried, codes int) (Confirmed, error) {
	if verdict, ok := s.Log.verdicts[t.ID]; ok {
		return verdict, nil
	}
	a := Attempt{ID: t.ID, Number: 1, CodeNumber: codes}
	for _, before := range s.Log.attempts {
		if before.ID == t.ID {
			a.Number++
		}
	}
	if err := s.Log.add(entry{Attempt: &a}); err != nil {
		return Confirmed{}, err
	}
	s.Lab.Release(t.ID)
	verdict, err := s.Lab.Confirm(ctx, t.ID, t.Candidate, a)
	if err != nil {
		return verdict, fmt.Errorf("confirming %s: %w", s.space.Short(t.Candidate), err)
	}
	verdict.ID = t.ID
	return verdict, s.Log.add(entry{Verdict: &verdict})
}

// conclude fills in the result, and ends the log.
func (s *Search) conclude() {
	s.result.Tried, s.result.Ranking, s.result.Seconds = s.snapshot(), s.race.Ranking(), s.seconds
	s.result.Worth, s.result.compiled = s.worth(), map[string]float64{}
	for id, b := range s.Log.builds {
		s.result.compiled[id] = b.Seconds
	}
	if !s.Log.Ended && !s.result.Replayed {
		last := &end{Winner: s.result.Winner}
		if len(s.result.Elite) > 0 {
			last.Best = s.result.Elite[0]
		}
		_ = s.Log.add(entry{End: last}) // the log is whole without it
	}
}

// parseName reads a variant with toggles behind its name, which package manifest has checked.
func parseName(name string) Candidate {
	words := strings.Split(name, ",")
	c := Candidate{Variant: words[0]}
	for _, word := range words[1:] {
		toggle, value, _ := strings.Cut(word, "=")
		if n, err := strconv.Atoi(value); err == nil {
			c = c.with(toggle, n)
		}
	}
	return c
}

// Find returns a candidate that was tried.
func (r *Result) Find(id string) *Tried {
	if i := slices.IndexFunc(r.Tried, func(t Tried) bool { return t.ID == id }); i >= 0 {
		return &r.Tried[i]
	}
	return nil
}
