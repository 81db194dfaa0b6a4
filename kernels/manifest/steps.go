package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

const maxSteps = 32

// A Step is one kernel of a launch, or a memset or a copy between two.
type Step struct {
	Entry string `yaml:"entry" eg:"combine" default:"(the manifest's)" doc:"Kernel function of the step, by its name in the source."`
	Start
	Repeat       *Loop        `yaml:"repeat" eg:"{name: s, count: log2(S)}" default:"(once)" doc:"Repeats this step, or this one and those after it, with a counter that their grids, blocks, scalars and constants may use."`
	Scalars      []StepScalar `yaml:"scalars" eg:"[{name: half, dtype: i32, value: 2**s}]" bounds:"(up to 64)" doc:"Scalars that only this kernel needs, such as the distance of a pass. The args of the step name them."`
	Programmatic bool         `yaml:"programmatic" eg:"false" default:"false" doc:"Programmatic dependent launch (sm_90 and later): the kernel may start before the kernel of the step before it has ended, and waits for its memory by cudaGridDependencySynchronize(). Not for the first kernel of a launch: one launch never overlaps the next."`
	Constants    Constants    `yaml:"constants" eg:"{BLOCK: 64}" doc:"compiler: triton: constants of this kernel, over those of the manifest."`
	NumWarps     *Expr        `yaml:"num_warps" eg:"8" default:"(the manifest's)" bounds:"1 to 32" doc:"compiler: triton: number of warps of a block of this kernel."`
	NumStages    *Expr        `yaml:"num_stages" eg:"2" default:"(the manifest's)" bounds:"1 to 16" doc:"compiler: triton: number of stages of software pipelines of this kernel."`
	Memset       string       `yaml:"memset" eg:"partial" doc:"Instead of a kernel: set all bytes of this scratch array or output to value."`
	Value        int          `yaml:"value" eg:"255" default:"0" bounds:"0 to 255" doc:"Value of each byte, for memset."`
	Copy         string       `yaml:"copy" eg:"partial" doc:"Instead of a kernel: copy the first elements of this array to the array that to names."`
	To           string       `yaml:"to" eg:"o" default:"(required for a copy)" doc:"Scratch array or output that the copy writes, of the same format."`
}

func (s *Step) ValidateStrict(n *strict.Node) {
	switch {
	case n.Has("memset"):
		onlyFields(n, "memset", "value", "repeat")
		if n.Clean() && (s.Value < 0 || s.Value > 255) {
			n.Child("value").Errorf("%d is no byte (write 0 to 255)", s.Value)
		}
	case n.Has("copy"):
		onlyFields(n, "copy", "to", "repeat")
		if !n.Has("to") {
			n.Child("to").Errorf("is required for a copy (write the scratch or the output that it fills, e.g. to: o)")
		}
	default:
		refuseFields(n, "is the byte of a memset (delete it)", "value")
		refuseFields(n, "is where a copy goes (delete it)", "to")
		if n.Has("entry") {
			checkEntry(n.Child("entry"), s.Entry)
		}
		s.validate(n)
		if s.Programmatic && s.Cooperative {
			n.Child("programmatic").Errorf("a cooperative launch starts when the kernels before it have ended (delete one of them)")
		}
	}
}

// onlyFields refuses fields that belong to a different kind of step than the first field.
func onlyFields(n *strict.Node, fields ...string) {
	for _, p := range n.Pairs() {
		if !slices.Contains(fields, p.Key) && slices.Contains(stepFields, p.Key) {
			p.Errorf("a %s has none (delete it, or make it a separate step)", fields[0])
		}
	}
}

// A StepAt is a step for one problem size, with all defaults filled in.
type StepAt struct {
	Entry       string     // of a kernel
	Args        []string   // of a kernel: arguments, scratch and scalars
	Scalars     []ScalarAt // that only this kernel gets, with their values
	Geometry               // of a kernel
	Cooperative bool

	Programmatic bool // it may start before the step before it has ended
	Priority     int

	Memset   string // scratch or an output
	Value    byte
	Copy, To string // any array, and scratch or an output
}

// Steps returns what one launch of a variant does, in order, for one problem size: the steps of its
// own launch, or of the kernel's. The given toggles override the variant's. It is for cuda
// manifests.
func (m *Manifest) Steps(variant string, dims Dims, toggles map[string]int) ([]StepAt, error) {
	v, err := m.Variant(variant)
	if err != nil {
		return nil, err
	}
	if m.launchOf(v) == nil {
		return nil, fmt.Errorf("%s has no launch: its mode is %s", m.Name, m.Mode)
	}
	values := m.ToggleValues(variant)
	maps.Copy(values, toggles)
	return m.stepsAt(v, m.Env(dims, values))
}

func (m *Manifest) stepsAt(v Variant, env Env) ([]StepAt, error) {
	var all []StepAt
	for s, err := range unroll(m.stepsOf(v), env) {
		if err != nil {
			return nil, err
		}
		at := StepAt{Entry: s.Entry, Args: s.Args, Cooperative: s.Cooperative, Priority: s.Priority, Memset: s.Memset, Value: byte(s.Value), Copy: s.Copy, To: s.To}
		if s.kernel() {
			if at.Geometry, err = s.geometry(s.env); err != nil {
				return nil, s.in(err)
			}
			if at.Scalars, err = s.scalars(); err != nil {
				return nil, err
			}
			// The first kernel of a loop follows nothing in its first round, if the loop begins the launch.
			at.Programmatic = s.Programmatic && len(all) > 0 && all[len(all)-1].Kernel()
		}
		all = append(all, at)
	}
	return all, nil
}

// stepsOf returns a variant's launch as steps: a launch without steps is one step. Omitted entries
// and arguments are filled in.
func (m *Manifest) stepsOf(v Variant) []Step {
	l := m.launchOf(v)
	if l == nil {
		return nil
	}
	steps := slices.Clone(l.Steps)
	if len(steps) == 0 {
		steps = []Step{{Start: l.Start}}
	}
	passed := m.passed()
	for i := range steps {
		if s := &steps[i]; s.kernel() {
			s.Entry = cmp.Or(s.Entry, m.Entry)
			if s.Args == nil {
				s.Args = passed
			}
		}
	}
	return steps
}

func (s *Step) kernel() bool { return s.Memset == "" && s.Copy == "" }

// Kernel reports whether the step launches a kernel.
func (s StepAt) Kernel() bool { return s.Memset == "" && s.Copy == "" }

// A StepKernel is a kernel with the arguments that a step passes to it.
type StepKernel struct {
	Entry   string
	Args    []string
	Scalars []StepScalar // that are not arguments of the manifest
}

// Kernels returns the kernels of a variant's launch, in order. A kernel that is launched twice in
// the same way is listed once.
func (m *Manifest) Kernels(variant string) []StepKernel {
	v, _ := m.Variant(variant)
	var all []StepKernel
	for _, s := range m.stepsOf(v) {
		same := func(c StepKernel) bool {
			return c.Entry == s.Entry && slices.Equal(c.Args, s.Args) &&
				slices.EqualFunc(c.Scalars, s.Scalars, func(a, b StepScalar) bool { return a.Name == b.Name && a.DType == b.DType })
		}
		if s.kernel() && !slices.ContainsFunc(all, same) {
			all = append(all, StepKernel{s.Entry, s.Args, s.Scalars})
		}
	}
	return all
}

// Entries returns the kernels of a variant's launch, each once, in order.
func (m *Manifest) Entries(variant string) []string {
	var all []string
	for _, c := range m.Kernels(variant) {
		if !slices.Contains(all, c.Entry) {
			all = append(all, c.Entry)
		}
	}
	return all
}

// launches calls a function for the kernel's launch and for each variant's own, with its place.
func (c *checker) launches(do func(l *Launch, at *strict.Node)) {
	if c.m.Launch != nil {
		do(c.m.Launch, c.n.Child("launch"))
	}
	for _, v := range c.m.Variants {
		if v.Launch != nil {
			do(v.Launch, c.n.Child("variants", v.Name, "launch"))
		}
	}
}

// A started kernel is a kernel of a launch, with its step; -1 if there are no steps.
type started struct {
	*Start
	step int
}

// starts returns the kernels of a launch.
func (l *Launch) starts() []started {
	if len(l.Steps) == 0 {
		return []started{{&l.Start, -1}}
	}
	var all []started
	for i := range l.Steps {
		if l.Steps[i].kernel() {
			all = append(all, started{&l.Steps[i].Start, i})
		}
	}
	return all
}

// place returns where a kernel of a launch is in the file.
func (s started) place(launch *strict.Node) *strict.Node {
	if s.step < 0 {
		return launch
	}
	return itemOf(launch.Child("steps"), s.step)
}

// checkSteps compares the names in launches with the arguments and the scratch.
func (c *checker) checkSteps() {
	if c.m.Mode != ModeCUDA || !c.n.Child("arguments").List() {
		return
	}
	c.launches(func(l *Launch, at *strict.Node) {
		list := at.Child("steps")
		c.checkLoops(l, list)
		for i, s := range l.Steps {
			switch place := itemOf(list, i); {
			case s.Memset != "":
				c.checkFilled(s.Memset, place.Child("memset"))
			case s.Copy != "":
				c.checkCopy(s, place)
			case s.Entry == "" && c.m.Entry == "" && !place.Has("entry"):
				c.errorf(place.Child("entry"), "is required, for the manifest has none either (write e.g. entry: combine)")
			}
		}
		starts := l.starts()
		if len(starts) == 0 && list.List() && len(l.Steps) > 0 {
			c.errorf(list, "starts no kernel (add a step with entry, grid and block)")
			return
		}
		for i, s := range starts {
			at := s.place(at).Child("programmatic")
			switch {
			case s.step < 0 || !l.Steps[s.step].Programmatic:
			case followed(l.Steps, s.step):
			case i == 0:
				c.errorf(at, "the first kernel of a launch waits for all of the launch before it (delete it, or write it in a later step)")
			case starts[i-1].step != s.step-1:
				c.errorf(at, "the step before it is no kernel, which it could overlap (delete it, or move the step)")
			}
		}
		for _, s := range starts {
			var step *Step
			if s.step >= 0 {
				step = &l.Steps[s.step]
			}
			for k, name := range s.Args {
				_, ok := c.m.passable(name)
				if !ok && step != nil {
					_, ok = step.own(name)
				}
				if !ok {
					c.errorf(itemOf(s.place(at).Child("args"), k), "%q is neither an argument nor scratch (write one of %s)", name, c.passablesOf(step))
				}
			}
		}
		c.checkOutputs(l, starts, at)
	})
}

// followed reports whether a step begins a loop that ends with a kernel: from the second round on, it follows that one.
func followed(steps []Step, i int) bool {
	l := steps[i].Repeat
	return l != nil && i+l.Steps <= len(steps) && steps[i+l.Steps-1].kernel()
}

// checkFilled checks that a memset or a copy writes only what a launch may write.
func (c *checker) checkFilled(name string, at *strict.Node) {
	a, ok := c.m.passable(name)
	switch {
	case !ok:
		c.errorf(at, "%q is neither scratch nor an output (write one of %s)", name, strings.Join(c.m.settable(), ", "))
	case a.Access != Out && a.Access != Scratched && a.Access != "":
		c.errorf(at, "%s is %s, which a launch must not overwrite (write one of %s)", name, accessInWords[a.Access], strings.Join(c.m.settable(), ", "))
	}
}

// checkCopy compares the two ends of a copy; the number of elements is tried at every shape.
func (c *checker) checkCopy(s Step, at *strict.Node) {
	if s.To == "" {
		return // refused already
	}
	c.checkFilled(s.To, at.Child("to"))
	from, known := c.m.passable(s.Copy)
	to, filled := c.m.passable(s.To)
	switch {
	case !known:
		c.errorf(at.Child("copy"), "%q is neither an argument nor scratch (write one of %s)", s.Copy, strings.Join(c.m.passables(), ", "))
	case from.Access != "" && !from.array() && from.Access != Scratched || from.Structs() || from.DType.Packed():
		c.errorf(at.Child("copy"), "%s is no array of plain elements (name one, or scratch)", s.Copy)
	case filled && to.Structs():
		c.errorf(at.Child("to"), "%s is an array of structs, which a copy does not write (name an array of plain elements)", s.To)
	case s.Copy == s.To:
		c.errorf(at.Child("to"), "%s is what is copied (name another)", s.To)
	case filled && from.DType != "" && to.DType != "" && from.DType != to.DType:
		c.errorf(at.Child("to"), "%s is %s, and %s is %s (a copy converts nothing)", s.To, to.DType, s.Copy, from.DType)
	}
}

// copySizes checks that the source of every copy is large enough.
func (m *Manifest) copySizes(l *Launch, t trial) error {
	for _, s := range l.Steps {
		if s.Copy == "" {
			continue
		}
		var elements [2]int64
		var last *Expr
		for i, name := range []string{s.Copy, s.To} {
			a, ok := m.passable(name)
			if !ok || len(a.Shape) == 0 {
				return nil // the name itself is reported
			}
			shape, err := m.ShapeOf(a, t.dims, t.toggles)
			if err != nil {
				return nil // the shape itself is reported
			}
			elements[i], last = product(shape), &a.Shape[len(a.Shape)-1]
		}
		if elements[0] < elements[1] {
			return &fault{last, fmt.Sprintf("makes %s larger than %s, which is copied to it: %d and %d elements", s.To, s.Copy, elements[1], elements[0]), "copy from an array that has as many, or more"}
		}
	}
	return nil
}

var accessInWords = map[Access]string{In: "an input", InOut: "an input too", Scalar: "a scalar", Struct: "a struct", Absent: "a null pointer"}

// checkOutputs finds outputs that no step can write.
func (c *checker) checkOutputs(l *Launch, starts []started, at *strict.Node) {
	if slices.ContainsFunc(starts, func(s started) bool { return s.Args == nil }) {
		return // all of them
	}
	named := c.m.handed(mapped(starts, func(s started) Step { return Step{Start: *s.Start} }))
	for _, s := range l.Steps {
		named[s.Memset], named[s.To] = true, true
	}
	field := "args"
	if len(l.Steps) > 0 {
		field = "steps"
	}
	for _, a := range c.m.Arguments {
		if (a.Access == Out || a.Access == InOut) && !named[a.Name] {
			c.errorf(at.Child(field), "nothing writes the output %s (name it in the args of the kernel that does)", a.Name)
		}
	}
}

// onlySteps reports whether every launch has steps, which name their entries.
func (c *checker) onlySteps() bool {
	launches, steps := 0, 0
	c.launches(func(l *Launch, at *strict.Node) {
		launches++
		if at.Has("steps") {
			steps++
		}
	})
	return launches > 0 && steps == launches
}
