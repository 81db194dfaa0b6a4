package interleave

import (
	"errors"
	"fmt"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

// A fake bench records its calls, and fails where the test says.
type fake struct {
	asked  int   // for the state of the device
	calls  int   // of Time, Compare, Keep and Check
	failAt int   // the call that fails; 0: none
	fail   error // the error

	wrongDraw, wrongLaunch int     // the timed launch whose output is wrong; -1: none
	wrongBy                float64 // from the baseline's, where others differ by at most 0.01
	wrongBad               int     // elements beyond the tolerance
	state                  bool    // the candidate keeps state
	same                   bool    // all outputs are the baseline's
	leaves                 bool    // the candidate leaves the work of a launch to the next

	seeds   map[uint64]int
	current []uint64
	dists   []distribution.Kind
	ran     map[rune]bool // sides that ran on the last draw
	order   string        // all sides that ran on a whole batch, draw by draw
	timed   int           // draws of whole batches that were compared so far
	alone   int           // compared outputs of single launches and of their warm-up launches
	single  map[rune]int  // launches of a side that ran alone
	warm    map[int]bool  // how many launches warmed up for one
	live    int           // outputs kept and not dropped
	bad     []string      // rules that were broken
}

func newFake() *fake {
	return &fake{seeds: map[uint64]int{}, single: map[rune]int{}, warm: map[int]bool{}, wrongDraw: -1}
}

func (f *fake) broken(format string, args ...any) {
	f.bad = append(f.bad, fmt.Sprintf(format, args...))
}

func (f *fake) step() error {
	if f.calls++; f.calls == f.failAt {
		return f.fail
	}
	return nil
}

func (f *fake) Draw(dist distribution.Kind, seeds []uint64) error {
	for _, s := range seeds {
		if f.seeds[s]++; f.seeds[s] > 1 {
			f.broken("seed %d was drawn twice", s)
		}
	}
	f.current, f.ran = seeds, map[rune]bool{}
	f.dists = append(f.dists, dist)
	f.order += " "
	return nil
}

func (f *fake) Time(side rune, launches int) (Times, error) {
	if f.ran[side] {
		f.broken("%c ran twice on one draw", side)
	}
	if launches > len(f.current) {
		f.broken("%d launches on %d inputs", launches, len(f.current))
	}
	f.ran[side] = true
	f.order += string(side)
	return Times{Device: time.Duration(launches) * time.Microsecond, Wall: time.Duration(launches) * 2 * time.Microsecond}, f.step()
}

// A fakeSingle is the fake for launches that run alone.
type fakeSingle struct{ *fake }

func (f *fake) Single(batch, warm int) (Bench, int, error) {
	if warm < 1 || warm >= batch {
		f.broken("%d launches warm up", warm)
	}
	f.warm[warm] = true
	return fakeSingle{f}, warm + 1, nil
}

func (f fakeSingle) Time(side rune, launches int) (Times, error) {
	if launches != len(f.current) {
		f.broken("the last of %d launches, and %d were drawn", launches, len(f.current))
	}
	f.single[side]++
	_, err := f.fake.Time(side, launches)
	return Times{Device: 3 * time.Microsecond}, err
}

func (f fakeSingle) Compare(launches int) ([]Difference, error) {
	f.alone += launches
	all := f.differences(launches)
	if f.leaves {
		all[launches-1].Errors.Unwritten = 8
	}
	return all, f.step()
}

func (f fakeSingle) Keep(launch int) (Kept, error) {
	k, err := f.fake.Keep(launch)
	if err == nil {
		k.(*fakeKept).wrong = f.leaves && launch == len(f.current)-1
	}
	return k, err
}

func (f *fake) TimeKept(launches int) (Times, bool, error) {
	if !f.state {
		return Times{}, false, nil
	}
	t, err := f.Time(gates.SideCandidate, launches)
	return t, true, err
}

func (f *fake) wrong(draw, launch int) bool { return draw == f.wrongDraw && launch == f.wrongLaunch }

func (f *fake) Compare(launches int) ([]Difference, error) {
	all := f.differences(launches)
	for i := range all {
		if f.wrong(f.timed, i) {
			all[i].Errors.MaxAbs, all[i].Errors.Bad = f.wrongBy, f.wrongBad
		}
	}
	f.timed++
	return all, f.step()
}

func (f *fake) differences(launches int) []Difference {
	if !f.ran[gates.SideBaseline] || !f.ran[gates.SideCandidate] {
		f.broken("outputs were compared that were never computed")
	}
	all := make([]Difference, launches)
	for i := range all {
		if f.same {
			all[i] = Difference{Same: true, Errors: gates.Errors{Elements: 8}}
			continue
		}
		all[i] = Difference{Errors: gates.Errors{Elements: 8, MaxAbs: float64(f.current[i]%100) / 1e4}}
	}
	return all
}

func (f *fake) Keep(launch int) (Kept, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	f.live++
	return &fakeKept{bench: f, wrong: f.wrong(f.timed-1, launch)}, nil
}

// State has a clock that falls, and a temperature that is missing once.
func (f *fake) State() State {
	f.asked++
	s := State{MHz: 1980 - float64(f.asked), Watts: 500, Celsius: 40}
	if f.asked%3 == 0 {
		s.Celsius = 0
	}
	return s
}

type fakeKept struct {
	bench          *fake
	wrong, dropped bool
}

func (k *fakeKept) Check() (candidate, baseline *gates.Errors, err error) {
	e := &gates.Errors{Elements: 8}
	if k.wrong {
		e.Bad = 8
	}
	if k.dropped {
		k.bench.broken("an output was checked after it was dropped")
	}
	return e, &gates.Errors{Elements: 8}, k.bench.step()
}

func (k *fakeKept) Drop() {
	if k.dropped {
		k.bench.broken("an output was dropped twice")
	}
	k.dropped = true
	k.bench.live--
}

var errFault = errors.New("the machine is on fire")
