package runners

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// A Case is one input on which the candidate's output is compared.
type Case struct {
	Shape        manifest.Shape
	Seed         uint64
	Distribution distribution.Kind
	Secret       bool
	// Cover means that the policy does not name the shape, but a variant of a choice handles no
	// other shape.
	Cover bool
	// Noise means that the shape is a named one, and the seed of the noise on its recording is secret.
	Noise bool
}

// Name returns the case in one line.
func (c Case) Name() string {
	return fmt.Sprintf("%s, seed %d, %s inputs", c.Shape.Name, c.Seed, c.Distribution)
}

// EndToEnd reports whether the case is also compared with the result for the inputs before
// quantisation. The error of quantisation itself depends on the shape, so this applies only to the
// shapes for which the bound was made, and to normal inputs.
func (c Case) EndToEnd(m *manifest.Manifest) bool {
	quantized := slices.ContainsFunc(m.Arguments, func(a manifest.Argument) bool { return a.ScaleOf != "" })
	return quantized && c.Distribution == distribution.Normal && !c.Secret && !c.Cover
}

// Replayable reports whether the case shows that an answer to the recording itself, from memory, would be wrong.
func (c Case) Replayable(m *manifest.Manifest) bool {
	name, ok := c.Distribution.Recording()
	return ok && c.Seed != 0 && slices.ContainsFunc(m.Recorded, func(r manifest.Recording) bool { return r.Name == name && r.Vary != nil })
}

// Encoded returns what a kernel would write that gave the reference's outputs, by argument.
func Encoded(args []tensor.Arg, want [][]float64) [][]byte {
	got := make([][]byte, len(args))
	for k, o := range tensor.Outputs(args) {
		values := make([]byte, o.DType.Bytes(o.Elements))
		tensor.Encode(o.DType, values, want[k])
		if o.Pitch == 0 {
			got[o.Of] = values
			continue
		}
		if got[o.Of] == nil {
			got[o.Of] = make([]byte, args[o.Of].Size())
		}
		size := o.DType.Bytes(o.Count)
		for i := range args[o.Of].Elements {
			copy(got[o.Of][i*o.Pitch+o.Offset:], values[i*size:(i+1)*size])
		}
	}
	return got
}

// Evidence returns the case before anything was run.
func (c Case) Evidence() gates.Case {
	return gates.Case{Input: c.Input()}
}

// Input returns what the case is run on, for the record.
func (c Case) Input() gates.Input {
	return gates.Input{
		Shape: c.Shape.Name, Dims: c.Shape.Dims.String(), Seed: c.Seed,
		Distribution: string(c.Distribution), Secret: c.Secret,
	}
}

// Cases returns every case that the gate asks for: its shapes, seeds and distributions in all
// combinations, those that cover every variant of a choice, and secret ones with shapes, seeds and
// distributions that nobody could know when the code was written.
func Cases(job Job, gate *policy.CorrectnessGate, rng *rand.Rand) []Case {
	var cases []Case
	recordings := job.RecordingsOnRecord()
	add := func(names []string, cover bool) {
		for _, name := range names {
			shape, _ := job.Manifest.Shape(name)
			for _, d := range distribution.On(gate.Distributions, recordings, name) {
				for _, seed := range gate.SeedsOf(d) {
					cases = append(cases, Case{Shape: shape, Seed: uint64(seed), Distribution: distribution.Kind(d), Cover: cover})
				}
			}
		}
	}
	known, random := job.ShapeNames(), distribution.Random(gate.Distributions)
	asked := gate.Shapes.Pick(known)
	add(asked, false)
	cover := job.Of(job.Candidate).Cover(job.Candidate.Variant, asked)
	add(slices.DeleteFunc(cover, func(name string) bool { return len(job.Shapes) > 0 || !slices.Contains(known, name) }), true)
	for i, shape := range job.Of(job.Candidate).DrawSecret(job.Candidate.Variant, rng, int(gate.SecretCases)) {
		d := random[i%len(random)]
		cases = append(cases, Case{Shape: shape, Seed: rng.Uint64() >> 16, Distribution: distribution.Kind(d), Secret: true})
	}
	return append(cases, secretNoise(job, asked, recordings, gate, rng)...)
}

// secretNoise returns a case with noise that nobody could know for each recording that is timed. It also shows whether an
// answer that was remembered would be wrong.
func secretNoise(job Job, shapes []string, recordings []distribution.Recording, gate *policy.CorrectnessGate, rng *rand.Rand) []Case {
	var cases []Case
	for _, name := range shapes {
		shape, _ := job.Manifest.Shape(name)
		for _, d := range distribution.TimedOn(gate.Distributions, recordings, name) {
			if d.FromRecording() {
				cases = append(cases, Case{Shape: shape, Seed: rng.Uint64()>>16 | 1, Distribution: d, Noise: true})
			}
		}
	}
	return cases
}

// SanitizeCases returns every case that the gate wants examined: its shapes and distributions, and
// secret ones.
func SanitizeCases(job Job, gate *policy.SanitizeGate, rng *rand.Rand) []Case {
	cases := Cases(job, &policy.CorrectnessGate{
		Shapes: gate.Shapes, Seeds: []int64{0}, Distributions: gate.Distributions, SecretCases: gate.SecretCases,
	}, rng)
	// Large cases take a tool hours.
	return slices.DeleteFunc(cases, func(c Case) bool { return c.Cover })
}

// BaselineRepeats is how often the baseline is launched again on an input on which the candidate is
// not deterministic. A race need not show in the first two launches.
const BaselineRepeats = 5

// GoesOn reports whether comparing continues after the last of the cases. A case in which the
// candidate failed ends it, unless the baseline failed in the same way and an earlier case has
// shown that the kernel works at all.
func GoesOn(cases []gates.Case) bool {
	last := cases[len(cases)-1]
	return last.Failure == nil || last.FailsAsBefore() && slices.ContainsFunc(cases, func(k gates.Case) bool { return k.Errors != nil })
}

// A ToleranceOf returns the tolerance of an output.
type ToleranceOf func(output string) manifest.Tolerance

// Compare compares all outputs of a launch with the reference's. got has nil for arguments that are
// not outputs; want has only the outputs. Several outputs count as one: their largest errors, their
// summed counts; each of them is listed as well.
func Compare(tolerance ToleranceOf, args []tensor.Arg, got [][]byte, want [][]float64) (*gates.Errors, error) {
	all := &gates.Errors{}
	for k, o := range tensor.Outputs(args) {
		e, err := tensor.Compare(o.DType, o.Values(got[o.Of]), want[k], tolerance(o.Name))
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", o.Name, err)
		}
		Add(all, o.Arg, &e)
	}
	return all, nil
}

// OwnTolerances returns the tolerances of the outputs that have their own, for the record.
func OwnTolerances(m *manifest.Manifest) map[string]gates.Tolerance {
	var own map[string]gates.Tolerance
	for name, t := range m.OwnTolerances() {
		if own == nil {
			own = map[string]gates.Tolerance{}
		}
		own[name] = gates.Tolerance(t)
	}
	return own
}

// Add adds another output of the same launch.
func Add(all *gates.Errors, output tensor.Arg, e *gates.Errors) {
	all.Outputs = append(all.Outputs, gates.OutputErrors{Name: output.Name, DType: string(output.DType), Errors: *e})
	all.Elements += e.Elements
	Worse(all, &gates.Errors{
		MaxAbs: e.MaxAbs, MeanAbs: e.MeanAbs, Norm: e.Norm,
		Bad: all.Bad + e.Bad, NaN: all.NaN + e.NaN, Inf: all.Inf + e.Inf, Unwritten: all.Unwritten + e.Unwritten,
	})
}

// Worse raises every figure of worst to next's if that is larger. It leaves out the figures of each output.
func Worse(worst, next *gates.Errors) {
	worst.Elements = max(worst.Elements, next.Elements)
	worst.MaxAbs = max(worst.MaxAbs, next.MaxAbs)
	worst.MeanAbs = max(worst.MeanAbs, next.MeanAbs)
	worst.Norm = max(worst.Norm, next.Norm)
	worst.Bad = max(worst.Bad, next.Bad)
	worst.NaN = max(worst.NaN, next.NaN)
	worst.Inf = max(worst.Inf, next.Inf)
	worst.Unwritten = max(worst.Unwritten, next.Unwritten)
}

// A CaseDump is one case in full: the figures that a check records, and every element behind them.
type CaseDump struct {
	Case    gates.Case     `json:"case"`
	Outputs []DumpedOutput `json:"outputs"`
}

// DumpedOutputs returns the outputs among the arguments with the reference's values, before either
// side's values are added.
func DumpedOutputs(args []tensor.Arg, want [][]float64) []DumpedOutput {
	var outputs []DumpedOutput
	for _, a := range tensor.Outputs(args) {
		out := DumpedOutput{Name: a.Name, DType: a.DType, Shape: a.Shape, Want: make([]byte, 8*a.Elements)}
		tensor.Encode(manifest.F64, out.Want, want[len(outputs)])
		outputs = append(outputs, out)
	}
	return outputs
}

// A DumpedOutput holds both sides' values of one output.
type DumpedOutput struct {
	Name      string         `json:"name"`
	DType     manifest.DType `json:"dtype"`
	Shape     []int          `json:"shape"`
	Candidate []byte         `json:"candidate,omitempty"` // none if it failed
	// Baseline is missing if there is no baseline, or it failed.
	Baseline []byte `json:"baseline,omitempty"`
	// Want is the reference's output as f64 bytes, because JSON has no infinities.
	Want []byte `json:"want"`
}
