package runners

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// A kernel can be fast on the shapes that a policy times and slow on all others. So the runner
// draws one problem size from the manifest's secret ranges, which nobody knows before the run, and
// times it in every round under the guard.

const (
	secretDraws  = 16
	secretStream = 2 // stream of the run's seed; nothing else uses this stream
)

// TimesSecretShape reports whether the rule wants a secret shape timed for this job. A harness
// knows only its own shapes, a new kernel has no baseline, and if both sides are the same on
// purpose there is nothing to find.
func (j Job) TimesSecretShape() bool {
	gate := j.Rule().Gates.Performance
	return gate != nil && gate.TimesSecretShape() && !ModeOf(j.Manifest).OwnHarness() && j.Baseline != nil && !j.Noise
}

// SecretShape returns the problem size that a run with this seed times under the guard. ok is false
// if there is none.
//
// Of the drawn sizes it prefers the first whose work lies between a quarter of the smallest timed
// shape's and the largest timed shape's. A much smaller one measures the launch and not the kernel;
// a larger one costs more than all others together.
func (j Job) SecretShape(seed uint64) (shape manifest.Shape, ok bool) {
	shape.Name = j.secretName()
	if j.Secret != nil {
		shape.Dims = j.Secret
		return shape, true
	}
	timed := j.timedWork()
	if len(timed) == 0 || !j.TimesSecretShape() {
		return shape, false
	}
	drawn := j.secretSizes(rand.New(rand.NewPCG(seed, secretStream)))
	if len(drawn) == 0 {
		drawn = j.anySecretSizes()
	}
	if len(drawn) == 0 {
		return shape, false
	}
	shape.Dims = pickSize(drawn, timed)
	return shape, true
}

// MustTimeSecretShape reports whether every run of the job has a secret shape, whatever its seed:
// code that checks a run's evidence does not know the seed.
func (j Job) MustTimeSecretShape() bool {
	return j.TimesSecretShape() && len(j.timedWork()) > 0 && len(j.anySecretSizes()) > 0
}

// LacksSecret reports whether the rule wants a secret shape timed and the manifest has no ranges to
// draw it from.
func (j Job) LacksSecret() bool {
	return j.TimesSecretShape() && len(j.Manifest.Secret) == 0 && j.Secret == nil
}

// secretName returns a name that no shape of the manifest has.
func (j Job) secretName() string {
	name := "secret"
	for slices.Contains(j.Manifest.ShapeNames(), name) {
		name += "_"
	}
	return name
}

// A size is a problem with its work.
type size struct {
	dims manifest.Dims
	work
}

// work is how much work a problem is: operations if the manifest counts them, else bytes; and the
// memory of its arguments.
type work struct{ amount, memory float64 }

// secretSizes returns those of the drawn sizes that both sides support and that have no name.
func (j Job) secretSizes(rng *rand.Rand) []size {
	if len(j.Manifest.Secret) == 0 {
		return nil
	}
	var sizes []size
	for _, dims := range j.Of(j.Candidate).DrawSizes(j.Candidate.Variant, rng, secretDraws) {
		if err := j.TakesSecret(dims); err != nil {
			continue
		}
		if w, err := j.workOf(dims); err == nil {
			sizes = append(sizes, size{dims, w})
		}
	}
	return sizes
}

// anySecretSizes returns sizes that are the same in every run, for ranges in which hardly any value
// can be used: whether there is a secret shape must not depend on luck.
func (j Job) anySecretSizes() []size {
	for seed := range uint64(4) {
		if sizes := j.secretSizes(rand.New(rand.NewPCG(seed, secretStream))); len(sizes) > 0 {
			return sizes
		}
	}
	return nil
}

// TakesSecret says why a size cannot be the secret shape: a side does not support it, or the
// manifest names it.
func (j Job) TakesSecret(dims manifest.Dims) error {
	for _, s := range j.Manifest.Shapes {
		if s.Dims.String() == dims.String() {
			return fmt.Errorf("%s is the size of the shape %s", dims, s.Name)
		}
	}
	for _, side := range []*Side{j.Baseline, &j.Candidate} {
		if side != nil && !j.Of(*side).Supports(side.Variant, dims) {
			return fmt.Errorf("%s is beyond the limits of %s, variant %s", dims, j.Manifest.Name, side.Variant)
		}
	}
	return nil
}

// workOf returns the work of a problem.
func (j Job) workOf(dims manifest.Dims) (w work, err error) {
	m := j.Of(j.Candidate)
	outline, err := tensor.Outline(m, manifest.Shape{Dims: dims}, m.ToggleValues(j.Candidate.Variant))
	if err != nil {
		return w, err
	}
	for _, a := range outline.Args {
		if a.Array() {
			w.memory += float64(a.Size())
		}
	}
	flops, err := j.Manifest.FLOPs(dims)
	if err != nil {
		return w, err
	}
	bytes, err := j.Manifest.Bytes(dims)
	w.amount = cmp.Or(flops, bytes, w.memory)
	return w, err
}

// timedWork returns the work of the named shapes that the rule wants timed.
func (j Job) timedWork() []work {
	shapes, err := j.ShapesOnRecord()
	if err != nil {
		return nil
	}
	var all []work
	for _, name := range gates.TimedShapes(j.Rule(), &gates.Evidence{Shapes: shapes}) {
		s, _ := j.Timed(shapes, name)
		if w, err := j.workOf(s.Dims); err == nil {
			all = append(all, w)
		}
	}
	return all
}

// pickSize returns the first size of preferred work, else the largest that is not above the timed
// shapes, else the smallest.
func pickSize(drawn []size, timed []work) manifest.Dims {
	least, most, memory := math.Inf(1), 0.0, 0.0
	for _, w := range timed {
		least, most, memory = min(least, w.amount), max(most, w.amount), max(memory, w.memory)
	}
	below := slices.DeleteFunc(slices.Clone(drawn), func(s size) bool { return s.amount > most || s.memory > memory })
	for _, s := range below {
		if s.amount >= least/4 {
			return s.dims
		}
	}
	byWork := func(a, b size) int { return cmp.Compare(a.amount, b.amount) }
	if len(below) > 0 {
		return slices.MaxFunc(below, byWork).dims
	}
	return slices.MinFunc(drawn, byWork).dims
}

// ShapesToTime returns the shapes as the evidence of a run with this seed has them: the manifest's,
// and the secret one.
func (j Job) ShapesToTime(seed uint64) ([]gates.Shape, error) {
	shapes, err := j.ShapesOnRecord()
	if err != nil {
		return nil, err
	}
	drawn, ok := j.SecretShape(seed)
	if !ok {
		return shapes, nil
	}
	secret, err := j.SecretOnRecord(drawn.Dims)
	return append(shapes, secret), err
}

// SecretOnRecord returns the secret shape with this size as evidence has it.
func (j Job) SecretOnRecord(dims manifest.Dims) (gates.Shape, error) {
	shape, err := j.onRecord(manifest.Shape{Name: j.secretName(), Dims: dims})
	shape.Secret = true
	return shape, err
}

// TimedShapes returns the shapes that the job's rule wants timed, with their sizes: the manifest's,
// and the secret one as the evidence has it.
func (j Job) TimedShapes(e *gates.Evidence) ([]manifest.Shape, error) {
	var shapes []manifest.Shape
	for _, name := range gates.TimedShapes(j.Rule(), e) {
		if s, ok := j.Timed(e.Shapes, name); ok {
			shapes = append(shapes, s)
			continue
		}
		i := slices.IndexFunc(e.Shapes, func(s gates.Shape) bool { return s.Name == name })
		dims, err := manifest.ParseDims(e.Shapes[i].Dims, j.Manifest.Shapes[0].Dims)
		if err != nil {
			return nil, fmt.Errorf("reading the size of the secret shape: %w", err)
		}
		shapes = append(shapes, manifest.Shape{Name: name, Dims: dims})
	}
	return shapes, nil
}

// Timed returns the shape of the manifest that evidence lists under this name. ok is false if there is none.
func (j Job) Timed(listed []gates.Shape, name string) (shape manifest.Shape, ok bool) {
	i := slices.IndexFunc(listed, func(s gates.Shape) bool { return s.Name == name && !s.Secret })
	if i < 0 {
		return shape, false
	}
	shape, ok = j.Manifest.Shape(listed[i].Listed())
	shape.Name, shape.Warm = name, listed[i].Context == policy.Warm
	return shape, ok
}
