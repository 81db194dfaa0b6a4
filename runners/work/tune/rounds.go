package tune

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/runners"
)

// raceOn measures rounds until the race is decided, more rounds cannot decide it, or the budget is
// spent. If the leader seems to be slower than a guard allows, the rounds go on until this is
// proven or refuted.
func (s *Search) raceOn(ctx context.Context) error {
	began := s.seconds
	for !s.spent() && s.undecided() && !s.longEnough(began) {
		arms := s.race.Next()
		if s.timed > 0 && s.Log.Header.Budget > 0 && s.seconds+s.timing/float64(s.timed)*float64(len(arms)) > s.Log.Header.Budget {
			s.ended, s.result.Spent = true, true // the round would not fit in
			return nil
		}
		var candidates []Candidate
		for _, id := range arms {
			candidates = append(candidates, s.ids[id].Candidate)
		}
		if !s.Lab.Begin(arms, candidates) {
			s.ended, s.result.Spent = true, true
			return nil
		}
		order := rand.New(rand.NewPCG(s.Log.Header.Seed, uint64(s.round))).Perm(len(arms))
		values := map[string]float64{}
		for n, i := range order {
			t := s.ids[arms[i]]
			timed, err := s.time(ctx, t, n, len(arms))
			if err != nil {
				return err
			}
			s.seconds, s.timing, s.timed = s.seconds+timed.Seconds, s.timing+timed.Seconds, s.timed+1
			if timed.Refusal != nil {
				s.fail(t, timed.Refusal)
				continue
			}
			t.measured = s.seconds
			if refusal := s.guard.refuse(t.ID, timed.Speedups); refusal != nil && !s.Log.Header.Exhaustive {
				s.fail(t, refusal)
				continue
			}
			values[t.ID], t.Micros = timed.value(s.Log.Header), timed.Micros
		}
		for _, d := range s.race.Record(s.round, values) {
			t := s.ids[d.Arm]
			t.Status, t.Why = Slower, fmt.Sprintf("%s than %s, proven in %d rounds", strings.Replace(number.Speedup(d.Ratio-1), number.Slower, " slower", 1), s.space.Short(s.ids[d.By].Candidate), d.Rounds)
			s.Lab.Release(d.Arm)
			if err := s.logDrop(d); err != nil {
				return err
			}
		}
		s.round++
		if ranking := s.race.Ranking(); len(ranking) > 0 {
			s.result.Curve = append(s.result.Curve, Mark{Seconds: s.seconds, Speedup: ranking[0].Speedup, Best: ranking[0].Arm})
		}
	}
	return nil
}

// A race may always take so many rounds and seconds.
const (
	shortestRounds = 8
	shortestRace   = 10
)

// longEnough ends a race that has taken as long as everything before it. Arms that it cannot tell
// apart by then are as good as each other for whoever waits, and the gate proves the winner anyway. A
// search with its own number of rounds measures all of them.
func (s *Search) longEnough(began float64) bool {
	h := s.Log.Header
	if h.Exhaustive || h.MaxRounds != defaultMaxRounds || s.round < shortestRounds {
		return false
	}
	s.result.Long = s.seconds-began > max(shortestRace, began)
	return s.result.Long
}

func (s *Search) undecided() bool {
	if s.guard.open(s.race.Best()) && !s.Log.Header.Exhaustive {
		return true
	}
	return !s.race.Decided() && !s.race.Over()
}

// logDrop writes a drop once. It is for people, and a resumed search drops the same arms again.
func (s *Search) logDrop(d Drop) error {
	if _, known := s.Log.rounds[s.round+1]; known {
		return nil
	}
	return s.Log.add(entry{Drop: &d})
}

// time measures one arm in this round.
func (s *Search) time(ctx context.Context, t *Tried, n, arms int) (Timed, error) {
	if timed, ok := s.Log.rounds[s.round][t.ID]; ok {
		return timed, nil
	}
	e := runners.Event{Text: fmt.Sprintf("round %d: %s", s.round+1, s.space.Short(t.Candidate)), Done: n, Total: arms, Unit: "arms"}
	if best := s.race.Ranking(); len(best) > 0 && best[0].Rounds > 0 {
		e.Detail = fmt.Sprintf("best %s %s", number.Speedup(best[0].Speedup), s.space.Short(s.ids[best[0].Arm].Candidate))
	}
	if budget := s.Log.Header.Budget; budget > 0 {
		e.Left = runners.Seconds(budget - s.seconds)
	}
	s.report(e)
	timed, err := s.Lab.Round(ctx, t.ID, t.Candidate)
	if err != nil {
		return timed, fmt.Errorf("timing %s: %w", s.space.Short(t.Candidate), err)
	}
	timed.ID, timed.Round = t.ID, s.round
	if err := s.Log.add(entry{Round: &timed}); err != nil {
		return timed, err
	}
	if timed.Refusal != nil {
		b, _ := s.Log.build(t.ID)
		return timed, s.Failures.Add(s.Lab.Device(), b.Same, s.space.Short(t.Candidate), timed.Refusal)
	}
	return timed, nil
}
