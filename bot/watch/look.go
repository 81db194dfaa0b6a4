// Package watch decides whether a kernel of the default branch became slower than its last release or
// its best state. It also decides which kind of change explains the slowdown, and what the kernel's issue
// on GitHub has to show.
//
// A look is the result of one watch for one kernel. The watch measures the head and its base in the same
// rounds on the same machine; the base is the release or the best state. A State is the sum of a kernel's
// looks and of the bot's writes to GitHub. Both are facts in the journal. The package is pure: it measures
// nothing, asks no clock and writes no texts.
package watch

import (
	"time"

	"github.com/kernelgate/kernelgate/gates"
)

// ErrorRate is the probability that one look at one kernel finds a slowdown that does not exist. All shapes
// share this probability, and so do all numbers of rounds after which the measurement could have ended.
const ErrorRate = 0.001

// An Against is what the default branch is compared with.
type Against string

const (
	Release Against = "release" // the newest release that the branch contains
	Best    Against = "best"    // the high-water mark of each kernel
)

// A Look is the result of one watch for one kernel.
type Look struct {
	Change  string    `json:"change"` // the watch
	Job     string    `json:"job"`
	Due     time.Time `json:"due"`
	Kernel  string    `json:"kernel"` // its name
	Against Against   `json:"against"`
	Tag     string    `json:"tag,omitempty"` // of the release
	Base    string    `json:"base"`          // the commit that the head is compared with
	Head    string    `json:"head"`
	Branch  string    `json:"branch"` // whose tip the head was
	Slower  float64   `json:"slower"` // smallest slowdown that counts: 0.01 is 1 %
	// Newest is the newest release, if the head is compared with an earlier one.
	Newest *Pin `json:"newest,omitempty"`
	// MovedTo is the commit that the tag has now, if somebody moved it.
	MovedTo string  `json:"moved_to,omitempty"`
	Rounds  int     `json:"rounds,omitempty"`
	Shapes  []Shape `json:"shapes"`
	Cell
}

// A Cell is what a time depends on, apart from the problem size.
type Cell struct {
	Sources  string `json:"sources"` // digest of what the head's kernel is built from
	Compiler string `json:"compiler,omitempty"`
	Driver   string `json:"driver,omitempty"`
	Device   string `json:"device"`
	Arch     string `json:"arch,omitempty"`
	UUID     string `json:"uuid,omitempty"`
	Host     string `json:"host,omitempty"`
}

// A Shape is the head's speed at one problem size as a multiple of the base's, with the times of both
// in microseconds.
type Shape struct {
	Name      string  `json:"name"`
	Dims      string  `json:"dims"`
	Same      bool    `json:"same,omitempty"` // equal machine code: nothing was timed
	Speed     float64 `json:"speed"`
	Lower     float64 `json:"lower"`
	Upper     float64 `json:"upper"`
	Baseline  float64 `json:"baseline,omitempty"`
	Candidate float64 `json:"candidate,omitempty"`
}

// Measure fills in the figures of the evidence. It reports false if the evidence compares nothing.
// Analyses is the number of looks of the policy: each is a point at which the measurement may end. Each is
// one more chance for an error, because the figures may look bad by chance at that point.
func (l Look) Measure(e *gates.Evidence, analyses int) (Look, bool) {
	if e.Fault != "" {
		return l, false
	}
	analyses = max(analyses, 1)
	for _, p := range gates.PairedSpeeds(e, ErrorRate/float64(analyses), ErrorRate/float64(analyses)) {
		l.Shapes = append(l.Shapes, Shape{
			Name: p.Shape, Dims: p.Dims, Same: p.Same, Speed: p.Speed, Lower: p.Lower, Upper: p.Upper, Baseline: p.Baseline, Candidate: p.Candidate,
		})
	}
	if e.Performance != nil {
		l.Rounds = len(e.Performance.Rounds)
	}
	l.Driver, l.Device, l.Arch, l.UUID, l.Host = e.Device.Driver, e.Device.Name, e.Device.Arch, e.Device.UUID, e.Provenance.Host
	if c := e.Candidate; c != nil {
		l.Compiler = c.Compiler
		if c.Digest != "" {
			l.Compiler += " " + c.Digest
		}
	}
	return l, len(l.Shapes) > 0
}

// A Result is what a look proves.
type Result string

const (
	Slower  Result = "slower"  // at least one shape is slower by more than Look.Slower
	Sound   Result = "sound"   // no shape is slower by Look.Slower or more
	Unclear Result = "unclear" // the figures prove neither
)

// Result returns what the look proves.
func (l Look) Result() Result {
	sound := true
	for _, s := range l.Shapes {
		if s.Upper < 1-l.Slower {
			return Slower
		}
		sound = sound && s.Lower > 1-l.Slower
	}
	if sound {
		return Sound
	}
	return Unclear
}

// Slowdowns returns the shapes that are proven slower.
func (l Look) Slowdowns() (all []Shape) {
	for _, s := range l.Shapes {
		if s.Upper < 1-l.Slower {
			all = append(all, s)
		}
	}
	return all
}

// Worst returns the slowest shape.
func (l Look) Worst() (worst Shape) {
	for i, s := range l.Shapes {
		if i == 0 || s.Speed < worst.Speed {
			worst = s
		}
	}
	return worst
}

// kind is the kind of device. Times on devices of one kind can be compared.
func (c Cell) kind() string { return c.Device + " " + c.Arch }

// A Part is one of the conditions that a time depends on.
type Part string

const (
	PartSources  Part = "sources"
	PartBase     Part = "base"
	PartCompiler Part = "compiler"
	PartDriver   Part = "driver"
	PartDevice   Part = "device"
	PartHost     Part = "host"
)

// A Difference is a condition that differs between two looks.
type Difference struct {
	Part          Part
	Before, After string
}

// Differences returns the conditions that differ between two looks at a kernel.
func Differences(before, after Look) (all []Difference) {
	device := func(l Look) string {
		if l.UUID == "" {
			return l.Device
		}
		return l.Device + " " + l.UUID
	}
	add := func(part Part, before, after string) {
		if before != after {
			all = append(all, Difference{part, before, after})
		}
	}
	if before.Sources != after.Sources {
		all = append(all, Difference{PartSources, before.Head, after.Head})
	}
	add(PartBase, before.Base, after.Base)
	add(PartCompiler, before.Compiler, after.Compiler)
	add(PartDriver, before.Driver, after.Driver)
	add(PartDevice, device(before), device(after))
	add(PartHost, before.Host, after.Host)
	return all
}
