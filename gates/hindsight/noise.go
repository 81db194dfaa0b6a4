package hindsight

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
)

// A Noise is what is recorded of the noise of one device: the A/A controls of past runs.
type Noise struct {
	Device   string `json:"device"`
	Controls int    `json:"controls"` // one for each run and shape
	Rounds   int    `json:"rounds"`   // of all controls
	Shapes   int    `json:"shapes"`

	kind    string // of the device
	fresh   bool   // every round loaded every side into a new context
	records []simulate.RecordedControl
}

// A Recorder collects the noise of devices from evidence.
type Recorder struct{ devices map[string]*Noise }

// Add adds the controls of a run. Evidence without timed rounds has none, and a run that ended by a
// fault of the runner says nothing about a runner that is fit.
func (r *Recorder) Add(e *gates.Evidence) {
	if e.Performance == nil || e.Fault != "" {
		return
	}
	if r.devices == nil {
		r.devices = map[string]*Noise{}
	}
	name := cmp.Or(e.Device.Name, e.Device.Kind, "unknown device")
	for _, shape := range timedShapes(e) {
		record, ok := simulate.NewRecordedControl(e.Kernel+" "+shape, gates.ControlRatios(e, shape))
		if !ok {
			continue
		}
		n := r.devices[name]
		if n == nil {
			n = &Noise{Device: name, kind: e.Device.Kind, fresh: true}
			r.devices[name] = n
		}
		n.records = append(n.records, record)
		n.Controls++
		n.Rounds += len(record.Rounds)
		n.fresh = n.fresh && isFresh(e)
	}
}

// timedShapes lists the shapes of the rounds in their order.
func timedShapes(e *gates.Evidence) []string {
	var names []string
	for _, r := range e.Performance.Rounds {
		for _, s := range r.Series {
			if !slices.Contains(names, s.Shape) {
				names = append(names, s.Shape)
			}
		}
	}
	return names
}

// isFresh reports whether every series had new inputs for every launch, as the gate asks before it
// takes the sides for separate.
func isFresh(e *gates.Evidence) bool {
	return !slices.ContainsFunc(e.Performance.Rounds, func(r gates.Round) bool {
		return slices.ContainsFunc(r.Series, func(s gates.Series) bool { return s.Seed == 0 })
	})
}

// Devices returns the noise of every device, by name.
func (r *Recorder) Devices() []*Noise {
	var all []*Noise
	for _, name := range slices.Sorted(maps.Keys(r.devices)) {
		n := r.devices[name]
		n.Shapes = len(n.byShape())
		all = append(all, n)
	}
	return all
}

func (n *Noise) byShape() map[string][]simulate.RecordedControl {
	all := map[string][]simulate.RecordedControl{}
	for _, c := range n.records {
		all[c.Shape] = append(all[c.Shape], c)
	}
	return all
}

// usable is the controls of shapes that have enough of them: a candidate and a control are drawn from
// different records where possible, and a run up to the last interim analysis should not consist of the same few
// rounds.
func (n *Noise) usable(rounds int) []simulate.RecordedControl {
	all := n.byShape()
	var enough []simulate.RecordedControl
	for _, shape := range slices.Sorted(maps.Keys(all)) {
		total := 0
		for _, c := range all[shape] {
			total += len(c.Rounds)
		}
		if len(all[shape]) >= 2 && total >= rounds {
			enough = append(enough, all[shape]...)
		}
	}
	return enough
}

// evidence is a run of one shape on the device with these rounds, complete but for the rest of the
// gates.
func (n *Noise) evidence(rounds []simulate.Samples) *gates.Evidence {
	e := &gates.Evidence{
		Schema: gates.EvidenceSchema, Kernel: "simulated", Abilities: &gates.Abilities{Clock: gates.ClockDevice, SingleLaunches: true}, Device: gates.Device{Kind: n.kind},
		Shapes:      []gates.Shape{{Name: simulatedShape}},
		Baseline:    &gates.Build{OK: true, Code: "baseline"},
		Candidate:   &gates.Build{OK: true, Code: "candidate"},
		Performance: &gates.Performance{},
	}
	for _, r := range rounds {
		s := gates.Series{Shape: simulatedShape, Batch: 1, Verified: 1, Worst: &gates.Errors{Elements: 1}, Order: r.Order, Nanos: r.Nanos}
		if n.fresh {
			s.Seed = 1
		}
		e.Performance.Rounds = append(e.Performance.Rounds, gates.Round{Attempt: 1, Series: []gates.Series{s}})
	}
	return e
}

const simulatedShape = "simulated"
