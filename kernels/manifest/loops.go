package manifest

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// maxLaunched bounds the steps of one launch when its loops are unrolled. Every one is a node of a batch, a kernel for the profiler,
// and work for whoever reads the manifest.
const maxLaunched = 64

// maxCounter is the largest magnitude of a counter. The sum of a start and all rounds stays exact.
const maxCounter = 1 << 31

// A Loop repeats steps of a launch. How often belongs to the implementation, as the steps do.
type Loop struct {
	Name  string `yaml:"name" required:"true" eg:"s" bounds:"(a C identifier)" doc:"Name of the counter for the expressions of the repeated steps."`
	From  *Expr  `yaml:"from" eg:"1" default:"(0)" doc:"Value of the counter in the first round. It grows by one with each round."`
	Count Expr   `yaml:"count" required:"true" eg:"log2(S)" bounds:"(0 to 64)" doc:"Number of rounds. All steps of a launch together, with their rounds, are at most 64."`
	Steps int    `yaml:"steps" eg:"2" default:"1" bounds:"(1 to 32)" doc:"Number of steps in a round: this one and those that follow it."`
}

func (l *Loop) ValidateStrict(n *strict.Node) {
	if n.Has("name") {
		checkOperand(n.Child("name"), l.Name)
	}
	switch {
	case !n.Has("steps"):
		l.Steps = 1
	case l.Steps < 1 || l.Steps > maxSteps:
		n.Child("steps").Errorf("%d is outside 1 to %d (write how many steps are repeated together)", l.Steps, maxSteps)
		l.Steps = 1
	}
}

// A StepScalar is a scalar that one step passes. As a setting does, it belongs to the implementation: the reference does not see it.
type StepScalar struct {
	Name  string `yaml:"name" required:"true" eg:"half" bounds:"(a C identifier)" doc:"Name for the args of the step."`
	DType DType  `yaml:"dtype" required:"true" eg:"i32" doc:"Format of the scalar."`
	Value Expr   `yaml:"value" required:"true" eg:"2**s" doc:"Its value: an expression over the dims, the toggles, SMS and the counter of the step's loop."`
}

func (s *StepScalar) ValidateStrict(n *strict.Node) {
	if n.Has("name") {
		checkIdentifier(n.Child("name"), s.Name)
	}
	if n.Has("dtype") && s.DType.Packed() {
		n.Child("dtype").Errorf("%s is no format of a scalar (write e.g. i32)", s.DType)
	}
}

// A ScalarAt is a step's scalar for one problem size.
type ScalarAt struct {
	Name  string
	DType DType
	Value float64
}

// own returns a step's own scalar by its name.
func (s *Step) own(name string) (*StepScalar, bool) {
	i := slices.IndexFunc(s.Scalars, func(o StepScalar) bool { return o.Name == name })
	if i < 0 {
		return nil, false
	}
	return &s.Scalars[i], true
}

// loopOf returns the loop that a step belongs to; nil for none.
func loopOf(steps []Step, i int) *Loop {
	for first := i; first >= 0; first-- {
		if l := steps[first].Repeat; l != nil {
			if i < first+l.Steps {
				return l
			}
			return nil
		}
	}
	return nil
}

// rounds returns the first value of a loop's counter and the number of rounds.
func (l *Loop) rounds(env Env) (from, count int64, err error) {
	if l.From != nil {
		if from, err = l.From.within(env, -maxCounter, maxCounter); err != nil {
			return 0, 0, err
		}
	}
	count, err = l.Count.within(env, 0, maxLaunched)
	return from, count, err
}

// A stepIn is a step in one round of its loop, with the values of names there.
type stepIn struct {
	*Step
	env   Env
	round string // in words; "" outside of loops
}

// unroll returns the steps of a launch in the order in which they run.
func unroll(steps []Step, env Env) iter.Seq2[stepIn, error] {
	return func(yield func(stepIn, error) bool) {
		count := 0
		var last *Loop
		for i := 0; i < len(steps); {
			l := steps[i].Repeat
			if l == nil {
				if count++; !yield(stepIn{&steps[i], env, ""}, tooMany(count, last)) {
					return
				}
				i++
				continue
			}
			from, rounds, err := l.rounds(env)
			if err != nil {
				yield(stepIn{}, err)
				return
			}
			last = l
			inner := steps[i:min(i+l.Steps, len(steps))]
			for round := range rounds {
				at := maps.Clone(env)
				at[l.Name] = int(from + round)
				for k := range inner {
					if count++; !yield(stepIn{&inner[k], at, fmt.Sprintf(" where %s is %d", l.Name, from+round)}, tooMany(count, l)) {
						return
					}
				}
			}
			i += len(inner)
		}
	}
}

func tooMany(count int, l *Loop) error {
	if count <= maxLaunched {
		return nil
	}
	f := &fault{what: "makes a launch of more steps than there may be", fix: fmt.Sprintf("make it %d steps or fewer in all", maxLaunched)}
	if l != nil {
		f.expr = &l.Count
	}
	return f
}

// most bounds the number of times that a step of a launch runs; -1 is the launch itself.
func (l *Launch) most(step int) int {
	if step < 0 || loopOf(l.Steps, step) == nil {
		return 1
	}
	return maxLaunched
}

// inEachRound tries a value of a step in each round of its loop.
func (l *Launch) inEachRound(step int, env Env, try func(Env) error) error {
	if step < 0 || loopOf(l.Steps, step) == nil {
		return try(env)
	}
	for s, err := range unroll(l.Steps, env) {
		if err != nil {
			return err
		}
		if s.Step != &l.Steps[step] {
			continue
		}
		if err := try(s.env); err != nil {
			return s.in(err)
		}
	}
	return nil
}

// starting checks that a launch with loops starts a kernel.
func (l *Launch) starting(env Env) error {
	kernels := 0
	for s, err := range unroll(l.Steps, env) {
		if err != nil {
			return err
		}
		if s.kernel() {
			kernels++
		}
	}
	if kernels == 0 {
		return &fault{what: "start no kernel", fix: "let a loop have one round at least"}
	}
	return nil
}

// in adds the round to what is wrong with a value.
func (s stepIn) in(err error) error {
	if f, ok := err.(*fault); ok && s.round != "" {
		return &fault{f.expr, f.what + s.round, f.fix}
	}
	return err
}

// scalars returns the values of a step's own scalars.
func (s stepIn) scalars() ([]ScalarAt, error) {
	var all []ScalarAt
	for i := range s.Scalars {
		own := &s.Scalars[i]
		value, err := own.Value.as(own.DType, s.env)
		if err != nil {
			return nil, s.in(err)
		}
		all = append(all, ScalarAt{own.Name, own.DType, value})
	}
	return all, nil
}

// counters returns the expressions of repeated steps, each with the name of its counter.
func (m *Manifest) counters() map[*Expr]string {
	all := map[*Expr]string{}
	for _, l := range m.allLaunches() {
		for i := range l.Steps {
			loop := loopOf(l.Steps, i)
			if loop == nil {
				continue
			}
			bounds := exprsOf(l.Steps[i].Repeat)
			for _, e := range exprsOf(&l.Steps[i]) {
				if !slices.Contains(bounds, e) {
					all[e] = loop.Name
				}
			}
		}
	}
	return all
}

// allLaunches returns the kernel's launch and those of its variants.
func (m *Manifest) allLaunches() []*Launch {
	var all []*Launch
	if m.Launch != nil {
		all = append(all, m.Launch)
	}
	for i := range m.Variants {
		if l := m.Variants[i].Launch; l != nil {
			all = append(all, l)
		}
	}
	return all
}

// checkLoops checks the loops of a launch, and the scalars of its steps.
func (c *checker) checkLoops(l *Launch, list *strict.Node) {
	for i := range l.Steps {
		s, at := &l.Steps[i], itemOf(list, i)
		if s.Repeat != nil {
			c.checkLoop(l, i, at.Child("repeat"))
		}
		if s.kernel() {
			c.checkStepScalars(s, at)
		}
	}
}

func (c *checker) checkLoop(l *Launch, i int, at *strict.Node) {
	loop := l.Steps[i].Repeat
	known := slices.Concat(c.m.dims(), c.m.toggleNames(), c.m.tunedNames(), []string{smsName})
	if slices.Contains(known, loop.Name) {
		c.errorf(at.Child("name"), "%q is the name of a dim, a toggle or the number of SMs too (choose another)", loop.Name)
	}
	if i+loop.Steps > len(l.Steps) {
		c.errorf(at.Child("steps"), "%d steps are repeated, and %d follow (write %d or fewer)", loop.Steps, len(l.Steps)-i-1, len(l.Steps)-i)
		return
	}
	for k := i + 1; k < i+loop.Steps; k++ {
		if l.Steps[k].Repeat != nil {
			c.errorf(at.Child("steps"), "step %d has a loop of its own, and loops do not nest (write one loop whose counter runs over all rounds)", k)
			return
		}
	}
}

func (c *checker) checkStepScalars(s *Step, at *strict.Node) {
	list := at.Child("scalars")
	if len(s.Scalars) > maxNamed {
		c.errorf(list, "has %d scalars (write at most %d)", len(s.Scalars), maxNamed)
		return
	}
	for i, own := range s.Scalars {
		_, other := c.m.passable(own.Name)
		switch place := itemOf(list, i).Child("name"); {
		case own.Name == "":
		case other:
			c.errorf(place, "%q is the name of an argument or of scratch too (choose another)", own.Name)
		case slices.ContainsFunc(s.Scalars[:i], func(o StepScalar) bool { return o.Name == own.Name }):
			c.errorf(place, "%q is the name of an earlier scalar too (choose another)", own.Name)
		case !slices.Contains(s.Args, own.Name):
			c.errorf(place, "the kernel is not passed %s (name it in the args of the step, or delete it)", own.Name)
		}
	}
}

// passablesOf returns the names of everything that a step can pass, in words.
func (c *checker) passablesOf(s *Step) string {
	names := c.m.passables()
	if s != nil {
		names = append(names, mapped(s.Scalars, func(o StepScalar) string { return o.Name })...)
	}
	return strings.Join(names, ", ")
}
