package worker

import (
	"fmt"
	"math"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/backend/interleave"
)

// A pass is long enough that the pause before it, while the side is asked, is short in comparison.
const (
	passMicros = 2000
	maxPass    = 128 // launches
)

// PassLaunches is how many launches of so many microseconds make a pass.
func PassLaunches(micros float64) int {
	if micros <= 0 {
		return 1
	}
	return int(min(max(math.Ceil(passMicros/micros), 1), maxPass))
}

// energy measures the energy of launches on every planned shape. The judge restores memory and reads the sensors; a side only launches.
func (s *session) energy() error {
	result := &gates.Energy{}
	m := newMeter(s.gpu)
	if m == nil {
		result.Skipped = noSensors
		return s.send(Reply{Energy: result})
	}
	err := s.segments(m, result)
	if result.Failure, err = interleave.Failure(err); err != nil {
		return err
	}
	return s.send(Reply{Energy: result})
}

const noSensors = "NVML of this host reads neither an energy counter nor the power draw of its GPU (use a GPU since Volta that is not shared by MIG or a virtual machine)"

func (s *session) segments(m *meter, result *gates.Energy) error {
	var benches []*bench
	for i, plan := range s.request.Plans {
		plan.Repeat = true
		b, err := s.newBench(plan, i)
		if err != nil {
			return fmt.Errorf("making room for %s: %w", plan.Shape, err)
		}
		benches = append(benches, b)
	}
	for _, who := range []struct {
		letter rune
		built  *side.Built
	}{{gates.SideBaseline, s.request.Baseline}, {gates.SideCandidate, s.request.Candidate}} {
		p := s.sides[who.letter]
		if err := p.Load(*who.built); err != nil {
			return blame(p, err)
		}
		for _, b := range benches {
			if err := p.Prepare(problemOf(b.problem, b.batch, b.regions[who.letter], b.id)); err != nil {
				return blame(p, err)
			}
		}
	}
	for _, b := range benches {
		if err := s.send(Reply{Progress: b.series.Shape}); err != nil {
			return err
		}
		series, err := b.timing.Energy(b, m, interleave.EnergyPlan{
			Pairs: gates.EnergyPairs, Launches: launchTime, Segment: segmentTime, Now: time.Now,
		})
		if err == nil {
			err = b.timing.Check()
			series.Series = *b.series
		}
		result.Series = append(result.Series, series)
		if err != nil {
			return fmt.Errorf("measuring the energy of %s: %w", b.series.Shape, err)
		}
	}
	return nil
}

// Restore implements [interleave.EnergyBench].
func (b *bench) Restore(letter rune, launches int) error {
	if err := b.batch.Scatter(b.all.Slice(b.at[letter], launches), launches); err != nil {
		return err
	}
	if err := b.regions[letter].Scatter(launches); err != nil {
		return err
	}
	return b.stream.Synchronize()
}

// Pass implements [interleave.EnergyBench].
func (b *bench) Pass(letter rune, launches int) (t interleave.Times, err error) {
	p := b.sides[letter]
	if err := p.Ready(b.id, true); err != nil {
		return t, blame(p, err)
	}
	t.Device, err = p.Run(b.id, 0, launches, false)
	return t, blame(p, err)
}

// Rest implements [interleave.EnergyBench]: a second question takes the place of the launches.
func (b *bench) Rest(letter rune) error {
	p := b.sides[letter]
	if err := p.Ready(b.id, true); err != nil {
		return blame(p, err)
	}
	return blame(p, p.Ready(b.id, false))
}
