package tune

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/work/arm"
)

// A Search tries candidates until its proposer has no more, or its budget is spent. Every result is
// in the log before the search acts on it. If the log has results already, from an earlier part of
// the same search, they are taken from there.
type Search struct {
	Log      *Log
	Proposer Proposer
	Lab      Lab
	Failures *Failures // of earlier searches; may be nil
	Progress runners.Progress
	// Sources are the files that a candidate may replace, for the proposer.
	Sources map[string]string

	space    Space
	race     *Race
	guard    *guard
	tried    []*Tried
	screened []*Tried // the fastest first
	ids      map[string]*Tried
	same     map[string]string // machine code and launch to the id that had it first
	seconds  float64           // of measuring
	timing   float64           // the part of it that rounds took
	timed    int               // measurements in rounds
	round    int
	proposed int  // number of proposals
	asked    int  // proposals that the proposer made in this process
	lost     int  // racers that failed since the screen has sent some
	ended    bool // the lab has no more rounds, or the budget has no room for one
	result   Result
}

// A Result is what a search has found.
type Result struct {
	Header    Header
	Tried     []Tried    // in the order in which they were proposed; the first is the incumbent
	Elite     []string   // ids, best first
	Ranking   []Standing // of all that were raced
	Decided   bool       // the remaining arms are proven to be within epsilon of the best
	Spent     bool       // the budget has ended the search
	Long      bool       // the race has ended because it took as long as everything before it
	Seconds   float64    // of measuring, without the verdicts of the gate
	Curve     []Mark
	Worth     []Worth
	Confirmed []Confirmed // what the gate said, in order
	Winner    string      // the id of the candidate that the gate has passed; "" if there is none
	Replayed  bool
	Below     string // why the best was not taken to the gate: it is below the policy's goal

	compiled map[string]float64 // seconds of each build
}

// Exit is the exit status of a search: 0 for a winner, 1 if nothing is proven better, 3 if the gate
// could not judge. An exhaustive search has no winner, and ends well.
func (r *Result) Exit() int {
	last := len(r.Confirmed) - 1
	switch {
	case r.Winner != "" || r.Header.Exhaustive || r.Header.NoGate && len(r.Elite) > 0 && r.Elite[0] != r.Tried[0].ID:
		return 0
	case last >= 0 && r.Confirmed[last].Outcome == gates.Error:
		return 3
	}
	return 1
}

// A Mark is the best speedup after so many seconds of measuring.
type Mark struct {
	Seconds float64 `json:"seconds"`
	Speedup float64 `json:"speedup"`
	Best    string  `json:"best"`
}

// Run runs the search. A cancelled context returns an error, and leaves a log to go on from.
func (s *Search) Run(ctx context.Context) (*Result, error) {
	h := s.Log.Header
	s.space, s.ids, s.same = h.Space, map[string]*Tried{}, map[string]string{}
	s.result = Result{Header: h}
	arms := int(min(float64(h.Candidates)+1, s.space.Size()+1))
	if !h.Exhaustive {
		arms = min(arms, 2*maxRacers) // those that the screen leaves, and some more if all of these fail
	}
	opt := RaceOptions{Epsilon: h.Epsilon, Delta: defaultDelta, Arms: arms, MaxRounds: h.MaxRounds, KeepAll: h.Exhaustive}
	guarded := opt
	if len(h.Guards) > 0 {
		opt.Delta, guarded.Delta = (1-guardShare)*defaultDelta, guardShare*defaultDelta
	}
	var err error
	if s.race, err = NewRace(opt); err != nil {
		return nil, err
	}
	s.guard = newGuard(h.Guards, guarded, s.race.plan)
	incumbent := parseName(h.Space.Start)
	s.add(incumbent).Status = Racing
	s.race.EnterIncumbent(s.space.ID(incumbent))
	for {
		if s.spent() || s.late() || s.left() == 0 {
			break
		}
		candidates, err := s.propose(ctx)
		if err != nil {
			return nil, err
		}
		if len(candidates) == 0 {
			break
		}
		if err := s.generation(ctx, candidates); err != nil {
			return nil, err
		}
	}
	s.enterBest()
	if err := s.raceOn(ctx); err != nil {
		return nil, err
	}
	if err := s.finals(ctx); err != nil {
		return nil, err
	}
	s.conclude()
	return &s.result, nil
}

// spent reports whether the budget is spent.
func (s *Search) spent() bool {
	s.result.Spent = s.ended || s.Log.Header.Budget > 0 && s.seconds >= s.Log.Header.Budget
	return s.result.Spent
}

// late reports whether the rest of the budget is for the race and the gate.
func (s *Search) late() bool {
	return s.Log.Header.Budget > 0 && s.seconds >= screenShare*s.Log.Header.Budget
}

// left is how many candidates may still be proposed. The incumbent does not count.
func (s *Search) left() int { return s.Log.Header.Candidates - (len(s.tried) - 1) }

func (s *Search) add(c Candidate) *Tried {
	c.Configuration = s.space.configuration(c)
	t := &Tried{ID: s.space.ID(c), Candidate: c, Status: Waiting}
	s.tried, s.ids[t.ID] = append(s.tried, t), t
	return t
}

// propose returns the next candidates: those of the log, or those that the proposer suggests now.
func (s *Search) propose(ctx context.Context) ([]Candidate, error) {
	s.proposed++
	if s.proposed <= len(s.Log.proposals) {
		return s.Log.proposals[s.proposed-1], nil
	}
	state := s.state()
	if s.asked == 0 {
		state.Sources = s.Sources
	}
	s.asked++
	s.report(runners.Event{Text: fmt.Sprintf("choosing candidates, %d tried", len(s.tried)-1)})
	candidates, err := s.ask(ctx, state)
	if err != nil {
		return nil, err
	}
	return candidates, s.Log.add(entry{Proposal: &candidates})
}

// patience is how often a proposer may suggest nothing but candidates that were tried.
const patience = 3

// ask returns the candidates that are new.
func (s *Search) ask(ctx context.Context, state State) ([]Candidate, error) {
	for range patience {
		suggested, err := s.Proposer.Propose(ctx, state)
		if err != nil || len(suggested) == 0 {
			return []Candidate{}, err
		}
		if fresh := state.fresh(suggested, s.left()); len(fresh) > 0 {
			return fresh, nil
		}
		state.Sources = nil
	}
	return []Candidate{}, nil
}

// generation takes candidates through the gates and races those that are left.
func (s *Search) generation(ctx context.Context, candidates []Candidate) error {
	var fresh []*Tried
	for _, c := range candidates {
		if s.ids[s.space.ID(c)] == nil {
			fresh = append(fresh, s.add(c))
		}
	}
	built, err := s.build(ctx, fresh)
	if err != nil {
		return err
	}
	var ready []*Tried
	for i, t := range fresh {
		if built[i].ID != "" && s.prepare(t, built[i]) { // else it stays Waiting, because there was no time to build it
			ready = append(ready, t)
		}
	}
	switch {
	case s.small():
		for _, t := range ready {
			s.enter(t)
		}
		return nil // they race when all are there
	case !s.Log.Header.Exhaustive:
		return s.screen(ctx, ready)
	}
	for _, t := range ready {
		if s.spent() {
			break
		}
		if ok, err := s.check(ctx, t); err != nil {
			return err
		} else if ok {
			s.enter(t)
		}
	}
	return s.raceOn(ctx)
}

// build compiles candidates side by side.
func (s *Search) build(ctx context.Context, all []*Tried) ([]Built, error) {
	out, failures := make([]Built, len(all)), make([]error, len(all))
	var progress sync.Mutex
	done, start := 0, time.Now()
	var group sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for i, t := range all {
		if b, ok := s.Log.build(t.ID); ok {
			out[i] = b
			continue
		}
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if ctx.Err() != nil {
				failures[i] = context.Cause(ctx)
				return
			}
			if b := s.Log.Header.Budget; b > 0 && time.Since(start).Seconds() > screenShare*b {
				return // the others must still be timed
			}
			progress.Lock()
			s.report(runners.Event{Text: "compiling " + s.space.Short(t.Candidate), Done: done, Total: len(all), Unit: "candidates"})
			done++
			progress.Unlock()
			if out[i], failures[i] = s.Lab.Build(ctx, t.ID, t.Candidate); failures[i] == nil {
				failures[i] = s.Log.add(entry{Build: &out[i]})
			}
		})
	}
	group.Wait()
	for i, err := range failures {
		if err != nil {
			return nil, fmt.Errorf("building %s: %w", s.space.Short(all[i].Candidate), err)
		}
	}
	return out, nil
}

// prepare reports whether nothing speaks against timing a candidate.
func (s *Search) prepare(t *Tried, b Built) bool {
	t.Resources, t.Details = b.Resources, b.Output
	switch {
	case b.Unknown:
		t.Status, t.Why = Unknown, "the log has no such candidate"
		return false
	case b.Refusal != nil:
		s.fail(t, b.Refusal)
		return false
	case b.Incumbent:
		t.Status, t.Why = Duplicate, "it is the incumbent: "+s.space.Start
		s.Lab.Release(t.ID)
		return false
	case b.Same != "" && s.same[b.Same] != "":
		t.Status, t.Why = Duplicate, "the machine code and the launch are those of "+s.space.Short(s.ids[s.same[b.Same]].Candidate)
		s.Lab.Release(t.ID)
		return false
	}
	if b.Same != "" {
		s.same[b.Same] = t.ID
	}
	if _, known := s.Log.checks[t.ID]; known {
		return true // this search has found out itself what an earlier one knew
	}
	if _, known := s.Log.screens[t.ID]; known {
		return true
	}
	if known := s.Failures.Find(s.Lab.Device(), b.Same); known != nil {
		known.Text = "found by an earlier search: " + known.Text
		s.fail(t, known)
		return false
	}
	return true
}

// check compares the outputs of a candidate with the reference, and reports whether they are right.
func (s *Search) check(ctx context.Context, t *Tried) (bool, error) {
	return s.examine(ctx, t, examination{"comparing outputs of", s.Log.checks, s.Lab.Check, func(c *Checked) entry { return entry{Check: c} }})
}

// enter lets a candidate into the race.
func (s *Search) enter(t *Tried) {
	t.Status = Racing
	s.race.Enter(t.ID)
}

// fail ends a candidate.
func (s *Search) fail(t *Tried, why *arm.Refusal) {
	if t.Status == Racing {
		s.lost++
	}
	t.Status, t.Gate, t.Why, t.Details = Failed, why.Gate, why.Text, append(slices.Clone(why.Details), t.Details...)
	s.disqualify(t)
}

// disqualify takes a candidate out of the race, and lets those in again that it has beaten.
func (s *Search) disqualify(t *Tried) {
	s.Lab.Release(t.ID)
	for _, id := range s.race.Disqualify(t.ID) {
		s.ids[id].Status, s.ids[id].Why = Racing, ""
	}
}

func (s *Search) report(e runners.Event) {
	if s.Progress != nil {
		e.Gate = "tune"
		s.Progress.Report(e)
	}
}
