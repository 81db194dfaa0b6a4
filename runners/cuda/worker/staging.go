package worker

import (
	"runtime"
	"sync"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/problem"
)

// A setting is one shape of the round.
type setting struct {
	series gates.Series
	plan   Plan
	layout problem.Layout
	sets   []*problem.Problem
	want   [][][]float64   // by set, then output
	right  [][][]byte      // the candidate's own verified output, by set
	errors []*gates.Errors // of those outputs
	images driver.Buffer   // one filled slot per set
	slots  driver.Buffer   // one slot per launch of a batch
	graphs map[rune]func() error
}

// stage draws the shape's inputs and brings them onto the GPU.
func (b *bench) stage(plan Plan) (*setting, error) {
	n := len(plan.Sets)
	set := &setting{
		plan: plan, series: gates.Series{Shape: plan.Shape, Batch: plan.Batch, Cold: true, Worst: &gates.Errors{}},
		sets: make([]*problem.Problem, n), want: make([][][]float64, n), right: make([][][]byte, n), errors: make([]*gates.Errors, n),
		graphs: map[rune]func() error{},
	}
	toggles := b.request.Candidate.Toggles
	if err := parallel(n, func(i int) error {
		var err error
		c := plan.Sets[i]
		if set.sets[i], err = problem.New(b.manifest, c.Shape, toggles, c.Distribution, c.Seed); err != nil {
			return err
		}
		set.want[i], err = b.expected(set.sets[i].Args, c.File+wantSuffix)
		return err
	}); err != nil {
		return nil, err
	}
	set.layout = problem.NewLayout(set.sets[0].Args, 0)
	size := int64(set.layout.Size)
	var err error
	if set.images, err = b.ctx.Alloc(size * int64(n)); err != nil {
		return nil, err
	}
	if set.slots, err = b.ctx.Alloc(size * int64(plan.Batch)); err != nil {
		return nil, err
	}
	slot := make([]byte, size)
	for i, p := range set.sets {
		set.layout.Fill(slot, p.Args)
		if err := b.stream.ToDevice(set.images.Slice(int64(i)*size, size), slot); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// parallel does n things on all cores and returns the first error.
func parallel(n int, do func(i int) error) error {
	var wait sync.WaitGroup
	errs := make([]error, n)
	tickets := make(chan struct{}, runtime.NumCPU())
	for i := range n {
		wait.Add(1)
		tickets <- struct{}{}
		go func() {
			defer func() { <-tickets; wait.Done() }()
			errs[i] = do(i)
		}()
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
