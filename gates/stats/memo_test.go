package stats_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
)

// Whatever draws were asked before, the answer is that of draws which were asked nothing.
func TestDrawsAnswerAsIfAskedNothing(t *testing.T) {
	fresh := func() *stats.Draws {
		d, err := stats.NewDraws(stats.MinResamples, 3)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	old, rng := fresh(), rand.New(rand.NewPCG(61, 61))
	first := gpu.Ratios(rng, 1.1, 6, 10)
	all := []stats.Sample{first}
	for range 80 { // more than are remembered
		all = append(all, gpu.Ratios(rng, 1.1, 3+rng.IntN(6), 1+rng.IntN(6)))
	}
	ask := func(d *stats.Draws, kind int, s stats.Sample) any {
		other := stats.Sample{Rounds: make([][]float64, len(s.Rounds))} // the same in every round but the first
		copy(other.Rounds, s.Rounds)
		other.Rounds[0] = []float64{2, 3}
		var got *stats.Distribution
		var err error
		switch kind {
		case 0:
			got, err = d.Quantile(s, 0.5)
		case 1:
			got, err = d.Quantile(s, 0.9)
		case 2:
			got, err = d.QuantileRatio(s, other, 0.5)
		case 3:
			got, err = d.QuantileRatio(other, s, 0.5)
		case 4:
			got, err = d.MeanRatio(s, other)
		}
		if err != nil {
			t.Fatal(err)
		}
		return *got
	}
	for range 600 {
		s, kind := all[min(rng.IntN(len(all)), rng.IntN(len(all)))], rng.IntN(5)
		if got, want := ask(old, kind, s), ask(fresh(), kind, s); !reflect.DeepEqual(got, want) {
			t.Fatalf("question %d: %+v, and of draws that were asked nothing %+v", kind, got, want)
		}
	}
	before := ask(old, 0, first)
	first.Rounds[5][9] *= 1.5 // a caller may change its sample
	if got, want := ask(old, 0, first), ask(fresh(), 0, first); !reflect.DeepEqual(got, want) || reflect.DeepEqual(got, before) {
		t.Errorf("the changed sample: %+v, want %+v", got, want)
	}
	// Nothing that was refused is remembered as an answer.
	for range 2 {
		if _, err := old.Quantile(stats.Sample{Rounds: [][]float64{{1}}}, 0.5); err == nil {
			t.Error("one round is accepted")
		}
	}
}
