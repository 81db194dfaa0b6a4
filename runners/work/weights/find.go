package weights

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/entryname"
)

// Options say what a step of the traced program is.
type Options struct {
	Range string // name of the ranges that are steps; "" for those of torch's profiler
	Steps int    // number of steps of a trace that does not name them; 0: it does
}

// A Use is how a traced program uses a kernel. Numbers of launches and times are per step.
type Use struct {
	Kernel    string
	Tool      manifest.TraceTool
	Digest    string
	Device    string
	Steps     int
	StepTime  float64 // microseconds; 0 where the trace does not name the steps
	Launches  float64
	Micros    float64 // of all launches
	Shapes    []ShapeUse
	Warm      []string    // those that the manifest says begin with a warm cache: a trace does not show it
	Unmatched []Unmatched // the most frequent first
	Outside   int         // launches outside of every step
}

// A ShapeUse is the launches of one shape.
type ShapeUse struct {
	manifest.Shape
	Launches, Micros float64
}

// An Unmatched is launches that are of no shape, or of one of several.
type Unmatched struct {
	Grid             [3]int
	Dims             manifest.Dims // what is known of them
	Several          []string      // shapes that the launches may have
	Launches, Micros float64
}

// Find finds the launches of a manifest's kernel in a trace. A launch of several kernels is counted by the first of them.
func Find(m *manifest.Manifest, t *Trace, opt Options) (*Use, error) {
	if runners.ModeOf(m).Device != gates.DeviceGPU {
		return nil, usage.Errorf("%s is a %s kernel, and traces have launches of GPU kernels (write its weights by hand: weights: {launches: {%s: 36}})", m.Name, m.Mode, m.Shapes[0].Name)
	}
	steps, length, err := t.stepsBy(opt)
	if err != nil {
		return nil, err
	}
	of := partsOf(m, t)
	u := &Use{Kernel: m.Name, Tool: t.Tool, Digest: t.Digest, Steps: length.steps, StepTime: length.micros}
	device := t.busiest(of)
	u.Device = t.Devices[device]
	if u.StepTime > 0 {
		u.StepTime = max(u.StepTime, t.busy(device, steps)/float64(u.Steps))
	}
	per := 1 / float64(u.Steps)
	f := newFinder(m, u, per)
	var last *float64 // time of the launch to which further kernels belong
	seen := false
	for _, l := range t.Launches {
		if l.Device != device {
			continue
		}
		switch of[l.Name] {
		case begins:
			seen = true
			if opt.Steps == 0 && !within(steps, l.Called) {
				u.Outside, last = u.Outside+1, nil
				continue
			}
			last = f.add(l)
		case follows:
			if last != nil {
				*last += l.Micros * per
				u.Micros += l.Micros * per
			}
		}
	}
	if !seen {
		return nil, usage.Errorf("no launch in the trace is of %s (the entry of %s); the trace has %s", strings.Join(m.Entries(m.DefaultVariant), ", "), m.Name, t.names())
	}
	if u.Launches == 0 {
		return nil, usage.Errorf("no launch of %s is in one of the %d steps of the trace, and %d are outside (name the ranges that are steps: --range NAME)", m.Name, u.Steps, u.Outside)
	}
	f.finish()
	if m.Weights != nil {
		u.Warm = slices.DeleteFunc(slices.Clone(m.Weights.Warm), func(name string) bool {
			return !slices.ContainsFunc(u.Shapes, func(s ShapeUse) bool { return s.Name == name })
		})
	}
	return u, nil
}

type stepLength struct {
	steps  int
	micros float64
}

// stepsBy finds the steps, and how long they are on average for the program.
func (t *Trace) stepsBy(opt Options) ([]Range, stepLength, error) {
	if opt.Steps < 0 {
		return nil, stepLength{}, usage.Errorf("--steps %d is no number of steps (write e.g. 10)", opt.Steps)
	}
	if opt.Steps > 0 {
		if opt.Range != "" {
			return nil, stepLength{}, usage.Errorf("--steps and --range both say what a step is (write one of them)")
		}
		return nil, stepLength{steps: opt.Steps}, nil
	}
	steps := t.steps(opt.Range)
	if len(steps) == 0 {
		return nil, stepLength{}, usage.Errorf("the trace has no range named %s (its ranges are %s): name those that are steps by --range NAME, or say how many steps it has by --steps N", cmp.Or(opt.Range, "ProfilerStep#0"), t.rangeNames())
	}
	slices.SortFunc(steps, func(a, b Range) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	// A thread of each process may name the same step.
	apart := steps[:1]
	for _, r := range steps[1:] {
		if r.Start >= apart[len(apart)-1].End {
			apart = append(apart, r)
		} else if r.Name != apart[len(apart)-1].Name {
			return nil, stepLength{}, usage.Errorf("the ranges %q and %q overlap, so they are no steps (name others by --range NAME)", apart[len(apart)-1].Name, r.Name)
		}
	}
	total := 0.0
	for _, r := range apart {
		total += r.End - r.Start
	}
	return apart, stepLength{len(apart), total / float64(len(apart))}, nil
}

// busy is the time from the first to the last kernel that the program launched in its steps. The program may be ahead of
// its GPU, so that steps take longer than it takes to launch them.
func (t *Trace) busy(device int, steps []Range) float64 {
	first, last := math.Inf(1), math.Inf(-1)
	for _, l := range t.Launches {
		if l.Device == device && within(steps, l.Called) {
			first, last = min(first, l.Start), max(last, l.Start+l.Micros)
		}
	}
	return max(0, last-first)
}

func within(steps []Range, at float64) bool {
	return slices.ContainsFunc(steps, func(r Range) bool { return r.Start <= at && at < r.End })
}

// entries are names of kernel functions.
type entries []manifest.Entry

func (all entries) has(name entryname.Name) bool {
	return slices.ContainsFunc(all, func(e manifest.Entry) bool { return len(entryname.Match(e, []entryname.Name{name})) > 0 })
}

// entriesOf is the kernels that begin a launch of any variant, and those that follow in one.
func entriesOf(m *manifest.Manifest) (first, others entries) {
	for _, v := range m.VariantNames() {
		for i, k := range m.Kernels(v) {
			e, err := manifest.ParseEntry(k.Entry)
			if err != nil {
				continue
			}
			if i == 0 {
				first = append(first, e)
			} else {
				others = append(others, e)
			}
		}
	}
	return first, others
}

// tritonSuffix is what versions of Triton add to a kernel's name for the arguments that it was specialised on.
var tritonSuffix = regexp.MustCompile(`_[0-9][0-9cde]*$`)

func plainName(m *manifest.Manifest, name string) string {
	if m.Compiler == manifest.Triton {
		if short := tritonSuffix.ReplaceAllString(name, ""); !slices.Contains(m.Entries(m.DefaultVariant), name) {
			return short
		}
	}
	return name
}

// A part is what a kernel of the trace is in a launch of the manifest.
type part int

const (
	foreign part = iota
	begins
	follows
)

// partsOf is the part of each name in the trace.
func partsOf(m *manifest.Manifest, t *Trace) map[string]part {
	first, others := entriesOf(m)
	of := map[string]part{}
	for _, l := range t.Launches {
		if _, known := of[l.Name]; known {
			continue
		}
		switch name := entryname.Demangled(plainName(m, l.Name)); {
		case first.has(name):
			of[l.Name] = begins
		case others.has(name):
			of[l.Name] = follows
		default:
			of[l.Name] = foreign
		}
	}
	return of
}

// busiest is the device with the most launches of the kernel: a step is that of one device.
func (t *Trace) busiest(of map[string]part) int {
	count, best := map[int]int{}, 0
	for _, l := range t.Launches {
		if of[l.Name] == begins {
			count[l.Device]++
		}
	}
	for device, n := range count {
		if n > count[best] || n == count[best] && device < best {
			best = device
		}
	}
	return best
}

// names lists some kernels of the trace, those with the most time first.
func (t *Trace) names() string {
	micros := map[string]float64{}
	for _, l := range t.Launches {
		micros[l.Name] += l.Micros
	}
	return listed(micros)
}

func (t *Trace) rangeNames() string {
	micros := map[string]float64{}
	for _, r := range t.Ranges {
		micros[r.Name] += r.End - r.Start
	}
	if len(micros) == 0 {
		return "none"
	}
	return listed(micros)
}

const mostListed, nameLength = 8, 80

func listed(micros map[string]float64) string {
	names := make([]string, 0, len(micros))
	for name := range micros {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(micros[b], micros[a]), strings.Compare(a, b)) })
	more := ""
	if n := len(names) - mostListed; n > 0 {
		names, more = names[:mostListed], fmt.Sprintf(" and %d more", n)
	}
	for i, name := range names {
		if r := []rune(name); len(r) > nameLength {
			name = string(r[:nameLength]) + "…"
		}
		names[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(names, ", ") + more
}

// A finder adds launches to a use.
type finder struct {
	m         *manifest.Manifest
	use       *Use
	per       float64
	grids     map[string][][3]int // by shape
	known     map[string][]manifest.Shape
	shapes    map[string]*ShapeUse
	unmatched map[string]*Unmatched
}

func newFinder(m *manifest.Manifest, use *Use, per float64) *finder {
	f := &finder{
		m: m, use: use, per: per, grids: map[string][][3]int{}, known: map[string][]manifest.Shape{},
		shapes: map[string]*ShapeUse{}, unmatched: map[string]*Unmatched{},
	}
	for _, s := range m.Shapes {
		f.grids[s.Name] = m.Grids(s.Dims)
	}
	return f
}

// add adds a launch to its shape, or to those that have none. It returns the time to which further kernels of the launch are added.
func (f *finder) add(l Launch) *float64 {
	f.use.Launches += f.per
	f.use.Micros += l.Micros * f.per
	like := fmt.Sprint(l.Grid, l.Dims)
	found, known := f.known[like]
	if !known {
		found = f.shapesOf(l)
		f.known[like] = found
	}
	if len(found) == 1 {
		s := f.shapes[found[0].Name]
		if s == nil {
			s = &ShapeUse{Shape: found[0]}
			f.shapes[s.Name] = s
		}
		s.Launches, s.Micros = s.Launches+f.per, s.Micros+l.Micros*f.per
		return &s.Micros
	}
	of := Unmatched{Grid: l.Grid}
	for _, s := range found {
		of.Several = append(of.Several, s.Name)
	}
	if len(found) == 0 {
		of.Dims = f.m.Infer(l.Dims, l.Grid)
	}
	key := fmt.Sprint(of)
	if f.unmatched[key] == nil {
		f.unmatched[key] = &of
	}
	u := f.unmatched[key]
	u.Launches, u.Micros = u.Launches+f.per, u.Micros+l.Micros*f.per
	return &u.Micros
}

// shapesOf is the shapes that a launch may have: those with its grid, and of these those with its inputs, where some are recorded that
// fit any shape. A launch with the inputs of a shape has this shape, whatever the grid: the traced program may have launched it
// differently.
func (f *finder) shapesOf(l Launch) []manifest.Shape {
	var byGrid, byInputs, both []manifest.Shape
	for _, s := range f.m.Shapes {
		grid := slices.Contains(f.grids[s.Name], l.Grid)
		inputs := len(l.Dims) > 0 && f.m.Reads(s.Dims, l.Dims)
		if grid {
			byGrid = append(byGrid, s)
		}
		if inputs {
			byInputs = append(byInputs, s)
		}
		if grid && inputs {
			both = append(both, s)
		}
	}
	switch {
	case len(both) > 0:
		return both
	case len(byInputs) > 0:
		return byInputs
	case f.contradicts(l):
		return nil
	}
	return byGrid
}

// contradicts reports whether the recorded inputs give the kernel's dims away. They are none of a shape then.
func (f *finder) contradicts(l Launch) bool {
	if len(l.Dims) == 0 {
		return false
	}
	known := f.m.Infer(l.Dims, l.Grid)
	return len(known) > 0 && !slices.ContainsFunc(f.m.Shapes, func(s manifest.Shape) bool {
		return !slices.ContainsFunc(known, func(d manifest.Dim) bool { n, _ := s.Dims.Get(d.Name); return n != d.Value })
	})
}

// finish lists the shapes in the manifest's order, and the others by their number.
func (f *finder) finish() {
	round := func(figures ...*float64) { // sums of shares of a step
		for _, x := range figures {
			*x = rounded(*x)
		}
	}
	round(&f.use.Launches, &f.use.Micros, &f.use.StepTime)
	for _, s := range f.shapes {
		round(&s.Launches, &s.Micros)
	}
	for _, u := range f.unmatched {
		round(&u.Launches, &u.Micros)
	}
	for _, s := range f.m.Shapes {
		if found := f.shapes[s.Name]; found != nil {
			f.use.Shapes = append(f.use.Shapes, *found)
		}
	}
	for _, u := range f.unmatched {
		f.use.Unmatched = append(f.use.Unmatched, *u)
	}
	slices.SortFunc(f.use.Unmatched, func(a, b Unmatched) int {
		return cmp.Or(cmp.Compare(b.Launches, a.Launches), cmp.Compare(b.Micros, a.Micros), strings.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
}

// Matched is the launches and the time per step that shapes have.
func (u *Use) Matched() (launches, micros float64) {
	for _, s := range u.Shapes {
		launches, micros = launches+s.Launches, micros+s.Micros
	}
	return launches, micros
}

// rounded keeps six significant digits.
func rounded(x float64) float64 {
	if x == 0 {
		return 0
	}
	unit := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*unit) / unit
}
