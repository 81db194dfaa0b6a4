package interleave

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

// A hot bench is throttled whenever its function says so.
type hot struct {
	*fake
	throttled func(n int) bool
	asked     int
}

func (h *hot) State() State {
	h.asked++
	return State{Throttled: h.throttled(h.asked - 1)}
}

// TestThrottledSamplesAreMarked checks that a throttled device marks only the samples of the block
// that just ran.
func TestThrottledSamplesAreMarked(t *testing.T) {
	const pairs = 8
	for _, c := range []struct {
		name      string
		throttled func(n int) bool
		solo      int
		blocks    []int
	}{
		{"never", func(int) bool { return false }, 0, nil},
		{"always", func(int) bool { return true }, 4, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"every other time", func(n int) bool { return n%2 == 0 }, 2, []int{0, 2, 4, 6}},
		{"in the last block", func(n int) bool { return n == 4+pairs-1 }, 0, []int{7}},
		{"before the candidate is there", func(n int) bool { return n < 3 }, 3, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &hot{fake: newFake(), throttled: c.throttled}
			s := &gates.Series{Shape: "mission", Batch: 2, Seed: 7, Distributions: []string{"normal"}}
			r := New(h, s, Plan{Pairs: pairs, References: 1}, rand.New(rand.NewPCG(1, 2)))
			if err := r.Alone(); err != nil {
				t.Fatal(err)
			}
			if len(s.Solo) != 4 || s.SoloDisturbed != c.solo {
				t.Errorf("%d of %d solo samples are disturbed, want %d", s.SoloDisturbed, len(s.Solo), c.solo)
			}
			if err := r.Measure(); err != nil {
				t.Fatal(err)
			}
			var want []int
			for _, block := range c.blocks {
				for i := range 6 {
					want = append(want, 6*block+i)
				}
			}
			if !slices.Equal(s.Disturbed, want) {
				t.Errorf("disturbed are %v, want %v", s.Disturbed, want)
			}
			if err := r.Check(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestWarmUp checks that warm-up launches run on each side before the first sample, on inputs of
// the policy's distributions in turn, and are not counted.
func TestWarmUp(t *testing.T) {
	f := newFake()
	s := &gates.Series{Shape: "mission", Batch: 1, Seed: 7, Distributions: []string{"normal", "uniform"}}
	r := New(f, s, Plan{Pairs: 4, Warm: 3}, rand.New(rand.NewPCG(1, 2)))
	if err := r.Alone(); err != nil {
		t.Fatal(err)
	}
	ran := strings.Fields(f.order)
	if want := []string{"b", "b", "b", "b", "b", "b", "b"}; !slices.Equal(ran, want) || len(s.Solo) != 4 {
		t.Errorf("ran %v for %d samples, want 3 to warm up and 4 samples", ran, len(s.Solo))
	}
	f.order = ""
	if err := r.Measure(); err != nil {
		t.Fatal(err)
	}
	ran = strings.Fields(f.order)
	if want := []string{"bac", "bac", "bac"}; !slices.Equal(ran[:3], want) || len(ran) != 3+2*4 || len(s.Nanos) != 6*4 {
		t.Errorf("ran %v for %d samples", ran, len(s.Nanos))
	}
	warm := []distribution.Kind{"normal", "uniform", "normal"}
	if !slices.Equal(f.dists[:3], warm) || !slices.Equal(f.dists[7:10], []distribution.Kind{"uniform", "normal", "uniform"}) {
		t.Errorf("drawn from %v", f.dists)
	}
	if s.Verified != 2*4 {
		t.Errorf("%d outputs were verified, want those of the samples", s.Verified)
	}
}
