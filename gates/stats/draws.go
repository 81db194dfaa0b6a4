package stats

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// stream keeps the generator apart from others that use the same seed.
const stream = 0x6b65726e656c6774

// ResamplePlan are the resamples behind the figures of one verdict: which rounds each of
// them holds. They are drawn once for every number of rounds and then serve all
// figures, so that a figure costs no more than its own arithmetic, and two figures
// of one run are compared on the same resamples.
//
// A ResamplePlan is not safe for use by several goroutines.
type ResamplePlan struct {
	resamples int
	seed      uint64
	tables    map[int]*table
}

// NewResamplePlan plans resamples of a seed.
func NewResamplePlan(resamples int, seed uint64) (*ResamplePlan, error) {
	if resamples < MinResamples {
		return nil, fmt.Errorf("%d resamples: ask for at least %d", resamples, MinResamples)
	}
	return &ResamplePlan{resamples: resamples, seed: seed, tables: map[int]*table{}}, nil
}

// A table is resamples of so many rounds. Row i says how often each round was drawn
// in resamples that came out alike, and times[i] how many those are.
type table struct {
	rounds  int
	weights []float64
	times   []int32
}

// fewRounds is where resamples begin to repeat themselves: six rounds can be drawn in
// 462 ways, eight in 6,435, and twenty in more than anybody will see twice.
const fewRounds = 8

// of is the table for so many rounds.
func (d *ResamplePlan) of(rounds int) *table {
	if t := d.tables[rounds]; t != nil {
		return t
	}
	t := &table{rounds: rounds}
	if rounds > fewRounds {
		t.weights = make([]float64, 0, d.resamples*rounds)
	}
	rng := rand.New(rand.NewPCG(d.seed, stream))
	row := make([]float64, rounds)
	seen := map[uint64]int{}
	for range d.resamples {
		clear(row)
		var key [fewRounds]byte
		for range rounds {
			r := rng.IntN(rounds)
			row[r]++
			key[r%fewRounds]++
		}
		if rounds <= fewRounds {
			k := binary.LittleEndian.Uint64(key[:])
			if i, ok := seen[k]; ok {
				t.times[i]++
				continue
			}
			seen[k] = len(t.times)
		}
		t.weights = append(t.weights, row...)
		t.times = append(t.times, 1)
	}
	d.tables[rounds] = t
	return t
}

// row is how often each round is in a resample.
func (t *table) row(i int) []float64 { return t.weights[i*t.rounds : (i+1)*t.rounds] }
