package worker

import (
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/backend/interleave"
)

// tuningSamples is how many launches a configuration is timed by.
const tuningSamples = 15

// short is the time of one launch in a slot: roughly, or where configurations are compared the median of some that find a cold cache, by
// the GPU's clock.
func (s *session) short(p *side.Process, slot int) (time.Duration, error) {
	if !s.request.Tune {
		return p.Rough(0, slot)
	}
	var all []time.Duration
	for range tuningSamples {
		if err := p.Ready(0, true); err != nil {
			return 0, err
		}
		took, err := p.Run(0, slot, 1, true)
		if err != nil {
			return 0, err
		}
		all = append(all, took)
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

// calibrate finds the time of a launch on every planned shape, of the faster
// side. A candidate that fails here will fail in the round, which tells.
func (s *session) calibrate(d *caseSession) error {
	micros := map[string]float64{}
	for _, plan := range s.request.Plans {
		p, err := s.outline(plan.Shape)
		if err != nil {
			return err
		}
		_, err = d.drawn(p, distribution.Normal, 1)
		if failure, err := interleave.Failure(err); err != nil {
			return err
		} else if failure != nil {
			break
		}
		for _, side := range []*side.Process{d.base, d.cand} {
			if side == nil {
				continue
			}
			took, err := s.short(side, d.indexIn(side, first))
			if failure, err := interleave.Failure(blame(side, err)); err != nil {
				return err
			} else if failure != nil {
				return s.send(Reply{Micros: micros})
			}
			if had, ok := micros[plan.Shape.Name]; !ok || took.Seconds()*1e6 < had {
				micros[plan.Shape.Name] = took.Seconds() * 1e6
			}
		}
	}
	return s.send(Reply{Micros: micros, Spent: s.spent})
}
