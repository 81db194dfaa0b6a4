// Package bisect finds the commit that made a kernel slower or wrong. [Search] is the method, on
// numbered commits and with any way to look at them; [Run] applies it to a repository.
//
// Every commit is compared with the good one, pair by pair in the same rounds, so that a slow hour
// of the machine slows both. A commit is judged only when its rounds prove on which side of half of
// the whole slowdown it lies. The proofs are those of the performance gate (package stats), and all
// of them together err with the stated probability.
package bisect

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/kernelgate/kernelgate/gates/stats"
)

// A Prober looks at the commits between a good one and a bad one. They have the numbers 0 to n-1;
// n-1 is the bad one. The good one is what all are compared with.
type Prober interface {
	// Build compiles a commit. Build calls come first for every commit.
	Build(ctx context.Context, commit int) (Built, error)
	// Check compares its outputs with the reference; wrong says what is wrong, if something is.
	Check(ctx context.Context, commit int) (wrong string, err error)
	// Round times it once, paired with the good commit, and returns its speed as a multiple of the
	// good commit's: 0.97 is 3 % slower. wrong says what is wrong with its outputs while it is
	// timed. A round that something disturbed has the speed 0.
	Round(ctx context.Context, commit int) (speed float64, wrong string, err error)
}

// Built is what a compiler made of a commit.
type Built struct {
	// Same identifies the machine code and its launch: commits with an equal text behave alike. It
	// is empty if that is not known.
	Same string
	// IsGood means that it is the machine code of the good commit.
	IsGood bool
	// Skip says why the commit cannot be judged, if it cannot.
	Skip string
}

// An Accuracy says how sure a search has to be.
type Accuracy struct {
	Delta     float64 // probability that it names a wrong commit; 0 means 5 %
	MaxRounds int     // rounds of one commit; 0 means 60
}

const (
	defaultDelta     = 0.05
	defaultMaxRounds = 60
	firstInterim     = 4
)

// Kind is what the bad commit does worse than the good one.
type Kind string

const (
	Slower Kind = "slower"
	Wrong  Kind = "wrong"
)

// A State is what is known about a commit.
type State string

const (
	Good    State = "good"
	Bad     State = "bad"
	Skipped State = "skipped"
)

// A Step is one commit that the search looked at.
type Step struct {
	Commit int     `json:"commit"`
	State  State   `json:"state"`
	SameAs *int    `json:"same_as,omitempty"` // commit with the same machine code; -1 is the good one
	Rounds int     `json:"rounds,omitempty"`
	Speed  float64 `json:"speed,omitempty"` // as a multiple of the good commit's, with its bounds
	Lower  float64 `json:"lower,omitempty"`
	Upper  float64 `json:"upper,omitempty"`
	Why    string  `json:"why,omitempty"`    // what is wrong with it, or why it was skipped
	Unsure bool    `json:"unsure,omitempty"` // its rounds prove neither state
}

// A Result is what a search has found.
type Result struct {
	Kind  Kind    `json:"kind"`
	First int     `json:"first"` // the first bad commit
	Last  int     `json:"last"`  // the last good one before it; -1 is the good commit itself
	Delta float64 `json:"delta"` // probability that First is not the first bad commit
	Steps []Step  `json:"steps"`
}

// Between lists the commits between Last and First. They could not be judged, so each of them may be
// the first bad one.
func (r *Result) Between() []int {
	var all []int
	for i := r.Last + 1; i < r.First; i++ {
		all = append(all, i)
	}
	return all
}

// Unsure reports whether a step is not proven.
func (r *Result) Unsure() bool {
	for _, s := range r.Steps {
		if s.Unsure {
			return true
		}
	}
	return false
}

// ErrNotWorse means that the bad commit is not proven to be worse than the good one. The result has
// its step.
var ErrNotWorse = errors.New("the bad commit is not proven to be worse than the good one")

// Search finds the first bad one of n commits.
func Search(ctx context.Context, n int, p Prober, want Accuracy) (*Result, error) {
	s, err := newSearch(n, p, want)
	if err != nil {
		return nil, err
	}
	if err := s.ends(ctx); err != nil {
		return s.result, err
	}
	for {
		mid, ok := s.next()
		if !ok {
			return s.result, nil
		}
		if err := s.judge(ctx, mid); err != nil {
			return s.result, err
		}
	}
}

// A search is one call of Search.
type search struct {
	prober   Prober
	plan     *stats.ResamplePlan
	interims []int
	shares   []float64 // error rate of each interim analysis
	alpha    float64   // of one decision
	half     float64   // of the whole slowdown: slower is bad
	known    map[string]int
	skipped  map[int]bool
	result   *Result
}

func newSearch(n int, p Prober, want Accuracy) (*search, error) {
	if n < 1 {
		return nil, errors.New("there is no commit to look at")
	}
	delta := want.Delta
	if delta == 0 {
		delta = defaultDelta
	}
	if !(delta > 0 && delta < 0.5) {
		return nil, fmt.Errorf("a search cannot err with probability %v (choose more than 0 and less than 0.5)", delta)
	}
	most := want.MaxRounds
	if most == 0 {
		most = defaultMaxRounds
	}
	s := &search{prober: p, known: map[string]int{}, skipped: map[int]bool{}, result: &Result{First: n - 1, Last: -1, Delta: delta}}
	for at := firstInterim; at < most; at += max(1, at/4) {
		s.interims = append(s.interims, at)
	}
	s.interims = append(s.interims, max(most, firstInterim))
	// One decision about the bad commit, and one for each halving.
	s.alpha = delta / float64(1+bits.Len(uint(n-1)))
	var err error
	if s.shares, err = stats.Spend(s.alpha, s.interims); err != nil {
		return nil, err
	}
	s.plan, err = stats.NewResamplePlan(stats.MinResamples, 1)
	return s, err
}

// ends looks at the bad commit: what is worse there, and by how much.
func (s *search) ends(ctx context.Context) error {
	bad := s.result.First
	built, err := s.prober.Build(ctx, bad)
	if err != nil {
		return err
	}
	if built.Skip != "" {
		s.add(Step{Commit: bad, State: Skipped, Why: built.Skip})
		return fmt.Errorf("the bad commit cannot be judged: %s", built.Skip)
	}
	if built.IsGood {
		s.add(Step{Commit: bad, State: Good, SameAs: ref(-1)})
		return ErrNotWorse
	}
	wrong, err := s.prober.Check(ctx, bad)
	if err != nil {
		return err
	}
	if wrong != "" {
		s.result.Kind = Wrong
		s.add(Step{Commit: bad, State: Bad, Why: wrong})
		s.learn(built, bad)
		return nil
	}
	s.result.Kind = Slower
	step, err := s.time(ctx, bad, 1)
	if err != nil {
		return fmt.Errorf("timing the bad commit: %w", err)
	}
	if step.State != Bad || step.Unsure {
		step.State = Good
		s.add(step)
		return ErrNotWorse
	}
	s.half = math.Sqrt(step.Speed)
	s.add(step)
	s.learn(built, bad)
	return nil
}

func ref(commit int) *int { return &commit }

func (s *search) add(step Step) { s.result.Steps = append(s.result.Steps, step) }

func (s *search) learn(b Built, commit int) {
	if b.Same != "" {
		s.known[b.Same] = commit
	}
}

// next is the commit to look at: the one that is nearest to the middle and was not skipped.
func (s *search) next() (int, bool) {
	last, first := s.result.Last, s.result.First
	for d := 0; d <= first-last; d++ {
		for _, mid := range []int{(last+first)/2 - d, (last+first)/2 + d} {
			if mid > last && mid < first && !s.skipped[mid] {
				return mid, true
			}
		}
	}
	return 0, false
}

// judge looks at one commit and narrows the range.
func (s *search) judge(ctx context.Context, mid int) error {
	built, err := s.prober.Build(ctx, mid)
	if err != nil {
		return err
	}
	if built.Skip != "" {
		s.skipped[mid] = true
		s.add(Step{Commit: mid, State: Skipped, Why: built.Skip})
		return nil
	}
	step, err := s.look(ctx, mid, built)
	if hidden, ok := errors.AsType[unjudged](err); ok {
		s.skipped[mid] = true
		s.add(Step{Commit: mid, State: Skipped, Why: hidden.why})
		return nil
	}
	if err != nil {
		return err
	}
	s.add(step)
	s.learn(built, mid)
	if step.State == Bad {
		s.result.First = mid
	} else {
		s.result.Last = mid
	}
	return nil
}

func (s *search) look(ctx context.Context, mid int, built Built) (Step, error) {
	if built.IsGood {
		return Step{Commit: mid, State: Good, SameAs: ref(-1)}, nil
	}
	if at, ok := s.known[built.Same]; ok && built.Same != "" {
		state := Good
		if at >= s.result.First {
			state = Bad
		}
		return Step{Commit: mid, State: state, SameAs: ref(at)}, nil
	}
	wrong, err := s.prober.Check(ctx, mid)
	if err != nil {
		return Step{}, err
	}
	switch {
	case s.result.Kind == Wrong && wrong != "":
		return Step{Commit: mid, State: Bad, Why: wrong}, nil
	case s.result.Kind == Wrong:
		return Step{Commit: mid, State: Good}, nil
	case wrong != "":
		// The bad commit is right, so this is a different fault. A wrong kernel's speed says nothing.
		return Step{}, unjudged{wrong}
	}
	return s.time(ctx, mid, s.half)
}

// unjudged means that a commit builds, and its speed cannot be judged.
type unjudged struct{ why string }

func (u unjudged) Error() string { return u.why }

// time measures a commit until it is proven slower or faster than the threshold.
func (s *search) time(ctx context.Context, commit int, threshold float64) (Step, error) {
	var of, by stats.Sample
	step := Step{Commit: commit, State: Good, Unsure: true}
	disturbed := 0
	for interim := 0; interim < len(s.interims); {
		speed, wrong, err := s.prober.Round(ctx, commit)
		if err != nil {
			return Step{}, err
		}
		if wrong != "" {
			return Step{}, unjudged{wrong}
		}
		if speed == 0 {
			if disturbed++; disturbed > s.interims[len(s.interims)-1] {
				return Step{}, fmt.Errorf("%d rounds were disturbed (free the machine, and run it again)", disturbed)
			}
			continue
		}
		of.Rounds, by.Rounds = append(of.Rounds, []float64{speed}), append(by.Rounds, []float64{1})
		if len(of.Rounds) < s.interims[interim] {
			continue
		}
		d, err := s.plan.MeanRatio(of, by)
		if err != nil {
			return Step{}, err
		}
		step.Rounds, step.Speed = len(of.Rounds), d.Estimate
		step.Lower, step.Upper = d.Bounds(s.alpha)
		if d.PBelow(threshold) <= s.shares[interim] {
			step.State, step.Unsure = Bad, false
			return step, nil
		}
		// At the bad commit only slower counts: the threshold is the good commit itself.
		if d.PAbove(threshold) <= s.shares[interim] {
			step.State, step.Unsure = Good, false
			return step, nil
		}
		interim++
	}
	if step.Speed < threshold {
		step.State = Bad
	}
	return step, nil
}
