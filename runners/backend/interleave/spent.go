package interleave

import (
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners"
)

// A metered bench counts the time of its work.
type metered struct {
	Bench
	spent gates.Spent
}

func (m metered) Draw(dist distribution.Kind, seeds []uint64) error {
	return runners.Spend(m.spent, gates.WorkInputs, func() error { return m.Bench.Draw(dist, seeds) })
}

func (m metered) Time(side rune, launches int) (t Times, err error) {
	err = runners.Spend(m.spent, gates.WorkLaunches, func() error {
		t, err = m.Bench.Time(side, launches)
		return err
	})
	return t, err
}

func (m metered) Single(batch, warm int) (b Bench, launches int, err error) {
	err = runners.Spend(m.spent, gates.WorkMemory, func() error {
		b, launches, err = m.Bench.Single(batch, warm)
		return err
	})
	return metered{b, m.spent}, launches, err
}

func (m metered) TimeKept(launches int) (t Times, ok bool, err error) {
	err = runners.Spend(m.spent, gates.WorkLaunches, func() error {
		t, ok, err = m.Bench.TimeKept(launches)
		return err
	})
	return t, ok, err
}

func (m metered) Compare(launches int) (all []Difference, err error) {
	err = runners.Spend(m.spent, gates.WorkComparisons, func() error {
		all, err = m.Bench.Compare(launches)
		return err
	})
	return all, err
}

func (m metered) Keep(launch int) (k Kept, err error) {
	err = runners.Spend(m.spent, gates.WorkComparisons, func() error {
		k, err = m.Bench.Keep(launch)
		return err
	})
	return meteredKept{k, m.spent}, err
}

type meteredKept struct {
	Kept
	spent gates.Spent
}

func (m meteredKept) Check() (candidate, baseline *gates.Errors, err error) {
	err = runners.Spend(m.spent, gates.WorkReference, func() error {
		candidate, baseline, err = m.Kept.Check()
		return err
	})
	return candidate, baseline, err
}
