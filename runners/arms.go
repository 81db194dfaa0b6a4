package runners

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// Arms is the part of a [Backend] that searches use. It compiles many candidates of one job, and times them next to each other and
// next to the baseline. Nothing separates the candidates from each other, and none is compiled twice, so their times only order
// them: whatever a search has found goes through the gates, as every change does. The baseline is built before anything is timed.
type Arms interface {
	// BuildArm compiles a candidate under a name, into a new folder. It may be called from several goroutines.
	BuildArm(ctx context.Context, name string, side Side, scratch string) (gates.Build, error)
	// DropArm forgets a candidate.
	DropArm(name string)
	// TimeArms times candidates in fresh processes. It returns one result for each candidate, in the same order.
	TimeArms(ctx context.Context, arms []string, shapes []manifest.Shape, samples int) ([]ArmTimes, error)
}

// ArmTimes are the times of one candidate.
type ArmTimes struct {
	// Failure tells how the candidate failed; it has no times then.
	Failure *gates.Failure
	// Differs means that an output is farther from the baseline's than two right ones can be.
	Differs bool
	Shapes  map[string]ArmSamples
}

// ArmSamples are the times of launches on one shape. Ratios are baseline/candidate, one for each sample of both.
type ArmSamples struct {
	Ratios []float64
	Micros float64 // median time of the candidate's launch
}

// NewArmSamples returns the samples of a candidate from the times of the baseline and of the candidate, in microseconds. The two were
// taken in turns, and there may be fewer of a candidate that is too slow to go on with.
func NewArmSamples(baseline, candidate []float64) ArmSamples {
	s := ArmSamples{Micros: slices.Sorted(slices.Values(candidate))[len(candidate)/2]}
	for i, took := range candidate {
		s.Ratios = append(s.Ratios, baseline[i]/took)
	}
	return s
}

// An ArmSet holds the candidates that a backend has built, by name. The zero value is ready to use, from several goroutines.
type ArmSet[T any] struct {
	mu  sync.Mutex
	all map[string]T
}

// Put adds a candidate.
func (s *ArmSet[T]) Put(name string, built T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]T{}
	}
	s.all[name] = built
}

// Get returns a candidate that was built.
func (s *ArmSet[T]) Get(name string) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	built, ok := s.all[name]
	if !ok {
		return built, fmt.Errorf("%s is to be timed, and is not built", name)
	}
	return built, nil
}

// DropArm forgets a candidate; see [Arms].
func (s *ArmSet[T]) DropArm(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, name)
}

// WithoutArms is for a backend that cannot time candidates next to each other. A search then measures whole rounds of them.
type WithoutArms struct{}

func (WithoutArms) BuildArm(context.Context, string, Side, string) (gates.Build, error) {
	return gates.Build{}, errors.ErrUnsupported
}

func (WithoutArms) DropArm(string) {}

func (WithoutArms) TimeArms(context.Context, []string, []manifest.Shape, int) ([]ArmTimes, error) {
	return nil, errors.ErrUnsupported
}
