package interleave

import (
	"fmt"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

// An EnergyBench is a bench whose sides can launch for a while, one after the other. A sensor of energy is much slower than a launch.
type EnergyBench interface {
	Bench
	// Restore gives a side the inputs of the last draw again, in all slots, and poisons outputs and scratch.
	Restore(side rune, launches int) error
	// Pass runs a side once on each of the first inputs of its last draw. It empties no cache: launches follow each other, as in use.
	Pass(side rune, launches int) (Times, error)
	// Rest does everything that Pass does, except the launches.
	Rest(side rune) error
}

// A Meter reads the sensors of the device, in the judge's process.
type Meter interface {
	// Begin starts to read them. The returned function ends that, and returns what changed since.
	Begin() (end func() gates.EnergySegment)
}

// An EnergyPlan says how long energy is measured.
type EnergyPlan struct {
	Pairs    int           // of segments
	Launches time.Duration // that the launches of a segment take together, at least
	Segment  time.Duration // that a segment lasts at least, for the sensors
	Now      func() time.Time
}

const (
	// longest bounds a segment, as a multiple of what it lasts at least: where restoring takes much longer than launching, the segment
	// ends before its launches have taken long enough.
	longest = 4
	// restEvery is after how many pairs a segment without launches follows.
	restEvery = 4
)

// Energy takes the segments of the two sides, in pairs of random order that mirror each other. Both sides of a pair get the same new
// inputs. A segment repeats passes: the judge restores inputs, outputs and scratch, and the side resets its variables and launches
// once on each input. Drawing new inputs for every pass would take ten times the energy of short launches. The segment ends at a
// random time, so that no launch can know that its output is one of those that are compared: those of the last pass. Check then
// compares some of them with the reference.
func (r *Timing) Energy(b EnergyBench, meter Meter, plan EnergyPlan) (s gates.EnergySeries, err error) {
	defer func() {
		s.Series = *r.series
		if err != nil && r.witness != nil {
			r.witness.drop()
		}
	}()
	if err := r.warm(gates.SideBaseline, gates.SideCandidate); err != nil {
		return s, err
	}
	r.witness = newWitness(r)
	var pairs []string
	for k := range plan.Pairs {
		g := &segments{Timing: r, bench: b, meter: meter, plan: plan, dist: r.distribution(k)}
		if err := r.draw("energy", g.dist, r.series.Batch); err != nil {
			return s, err
		}
		if k%restEvery == 0 {
			if err := g.take(gates.SideBaseline, false); err != nil {
				return s, err
			}
			s.Rests, g.done = append(s.Rests, g.done...), nil
		}
		pair := r.pair(pairs)
		for _, side := range pair {
			if err := g.take(side, true); err != nil {
				return s, err
			}
		}
		if err := r.witness.see(b, g.dist, r.series.Batch); err != nil {
			return s, err
		}
		pairs, s.Segments, r.series.Nanos = append(pairs, pair), append(s.Segments, g.done...), append(r.series.Nanos, g.nanos...)
		r.series.Order = strings.Join(pairs, " ")
	}
	return s, nil
}

// pair is the order of the next two segments: every second pair mirrors the one before it, so that a drift of the device meets
// both sides alike.
func (r *Timing) pair(before []string) string {
	orders := []string{"bc", "cb"}
	if n := len(before); n%2 == 1 {
		if before[n-1] == orders[0] {
			return orders[1]
		}
		return orders[0]
	}
	return orders[r.rng.IntN(2)]
}

// segments is those of one pair.
type segments struct {
	*Timing
	bench EnergyBench
	meter Meter
	plan  EnergyPlan
	dist  distribution.Kind
	done  []gates.EnergySegment
	nanos []float64 // of a launch, in each
}

// take measures a segment of a side. Without launches it shows what all the rest of a pass takes.
func (g *segments) take(side rune, launch bool) error {
	stretch := 1 + g.rng.Float64()/8
	least, lasts := time.Duration(stretch*float64(g.plan.Launches)), time.Duration(stretch*float64(g.plan.Segment))
	start, launched, passes := g.plan.Now(), time.Duration(0), 0
	end := g.meter.Begin()
	for {
		took, err := g.pass(side, launch)
		if err != nil {
			end()
			return fmt.Errorf("pass %d of a segment of side %c: %w", passes+1, side, err)
		}
		passes, launched = passes+1, launched+took
		lasted := g.plan.Now().Sub(start)
		if lasted < lasts || launch && launched < least && lasted < longest*lasts {
			continue
		}
		s := end()
		s.Passes, s.Seconds = passes, lasted.Seconds()
		g.done = append(g.done, s)
		if launch {
			g.nanos = append(g.nanos, perLaunch(launched, g.series.Batch*passes))
		}
		return nil
	}
}

func (g *segments) pass(side rune, launch bool) (time.Duration, error) {
	if err := g.bench.Restore(side, g.series.Batch); err != nil {
		return 0, fmt.Errorf("restoring the inputs for %s: %w", g.series.Shape, err)
	}
	if !launch {
		return 0, g.bench.Rest(side)
	}
	t, err := g.bench.Pass(side, g.series.Batch)
	return t.Device, err
}
