package gates

import (
	"strings"
	"testing"
)

// figuresOfOutputs is the errors of a launch with these outputs.
func figuresOfOutputs(outputs ...OutputErrors) *Errors {
	e := &Errors{Outputs: outputs}
	for _, o := range outputs {
		e.Elements, e.Bad, e.Norm = e.Elements+o.Elements, e.Bad+o.Bad, max(e.Norm, o.Norm)
		e.MaxAbs = max(e.MaxAbs, o.MaxAbs)
	}
	return e
}

func TestPrecision(t *testing.T) {
	one := func(dtype string, elements int, norm float64) *Errors {
		return figuresOfOutputs(OutputErrors{Name: "y", DType: dtype, Errors: Errors{Elements: elements, MaxAbs: norm, Norm: norm}})
	}
	// pairs are the norm errors of the candidate and of the baseline, by seed.
	cases := func(dtype string, elements int, pairs ...[2]float64) func(*Evidence) {
		return func(e *Evidence) {
			e.Correctness.Cases = nil
			for seed, p := range pairs {
				e.Correctness.Cases = append(e.Correctness.Cases, Case{
					Input:  Input{Shape: "mission", Dims: "S=512", Seed: uint64(seed), Distribution: "normal"},
					Errors: one(dtype, elements, p[0]), Baseline: one(dtype, elements, p[1]),
				})
			}
		}
	}
	for _, c := range []struct {
		name    string
		policy  string
		change  func(*Evidence)
		outcome Outcome
		says    string
	}{
		{"the same", "", cases("f32", 1000, [2]float64{1e-3, 1e-3}), Pass, ""},
		{"four times, at the limit", "", cases("f32", 1000, [2]float64{4e-3, 1e-3}), Pass, ""},
		{"more than four times", "", cases("f32", 1000, [2]float64{4.1e-3, 1e-3}), Defer, "y is less precise than the baseline's: norm error 0.41% against 0.1%"},
		{"another limit", "  precision: {loss: '<= 10'}\n", cases("f32", 1000, [2]float64{4.1e-3, 1e-3}), Pass, ""},
		{"only informs", "  precision: {required: false}\n", cases("f32", 1000, [2]float64{4.1e-3, 1e-3}), Pass, ""},
		{"taken away", "  precision: none\n", cases("f32", 1000, [2]float64{4.1e-3, 1e-3}), Pass, ""},
		{"more precise", "", cases("f32", 1000, [2]float64{1e-6, 1e-3}), Pass, ""},

		{"sums in a different order", "", cases("f32", 1000, [2]float64{9e-5, 1e-8}), Pass, ""},
		{"a baseline that is nearly exact", "", cases("f32", 1000, [2]float64{7.9e-3, 3e-8}), Defer, "norm error 0.79% against 3e-06%"},
		{"an exact baseline", "", cases("f32", 1000, [2]float64{7.9e-3, 0}), Defer, "against 0%"},
		{"double that became single", "", cases("f64", 1000, [2]float64{3e-8, 1e-16}), Defer, ""},
		{"double in a different order", "", cases("f64", 1000, [2]float64{1e-13, 1e-16}), Pass, ""},
		{"half rounds, and the baseline is exact", "", cases("f16", 1000, [2]float64{2.1e-4, 0}), Pass, ""},
		{"half that lost two bits", "", cases("f16", 1000, [2]float64{2.1e-3, 2.1e-4}), Defer, ""},
		{"bfloat16 rounds", "", cases("bf16", 1000, [2]float64{5e-3, 1e-4}), Pass, ""},
		{"e4m3 rounds", "", cases("e4m3", 1000, [2]float64{9.9e-3, 1e-4}), Pass, ""},
		{"a few integers off by one", "", cases("i8", 1000, [2]float64{9e-4, 0}), Pass, ""},
		{"most integers off by one", "", cases("i8", 1000, [2]float64{7e-3, 0}), Defer, ""},

		{"in one of three cases", "", cases("f32", 1000, [2]float64{5e-3, 1e-3}, [2]float64{1e-3, 1e-3}, [2]float64{5e-3, 1e-3}), Pass, ""},
		{"in all of three cases", "", cases("f32", 1000, [2]float64{5e-3, 1e-3}, [2]float64{6e-3, 1e-3}, [2]float64{5e-3, 1e-3}), Defer, "seed 0"},
		{"a single element, by luck", "", cases("f32", 1, [2]float64{5e-3, 1e-3}, [2]float64{5e-3, 1e-3}), Pass, ""},
		{"a single element, in every case", "", cases("f32", 1, [2]float64{5e-3, 1e-3}, [2]float64{5e-3, 1e-3}, [2]float64{5e-3, 1e-3}), Defer, ""},

		{"evidence without figures of each output", "", func(e *Evidence) {
			cases("f32", 1000, [2]float64{5e-3, 1e-3})(e)
			e.Correctness.Cases[0].Errors.Outputs = nil
		}, Pass, ""},
		{"a baseline that fails", "", func(e *Evidence) {
			cases("f32", 1000, [2]float64{5e-3, 1e-3})(e)
			e.Correctness.Cases[0].BaselineFailure = &Failure{Kind: FailureInputs, Detail: "it wrote to x"}
		}, Pass, ""},
		{"an expected output of nearly zero", "", func(e *Evidence) {
			cases("f32", 1000, [2]float64{0.9e-2, 1e-3}, [2]float64{1e-3, 1e-3})(e)
			e.Correctness.Tolerance.Abs = 1
			e.Correctness.Cases[0].Errors.Outputs[0].MaxAbs = 1e-9
			e.Correctness.Cases[1].Distribution = "constant"
		}, Pass, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := evidence("mission")
			c.change(e)
			p := parsePolicy(t, "version: 1\ngates:\n  correctness: {shapes: [mission], seeds: [0], norm_error: '<= 1%'}\n"+c.policy+"rules:\n  - name: default\n")
			reason := Reason("")
			if c.outcome == Defer {
				reason = ReasonPrecision
			}
			expect(t, Judge(p, "test.yaml", e), c.outcome, reason, c.says)
			if need := Next(p, e); need.Gate != "" {
				t.Errorf("it asks for evidence of %s", need.Gate)
			}
		})
	}
}

// A quantiser of public code writes bytes that may be off by one, and a scale. A scale that is off by a hundredth is within no
// tolerance that was made for the bytes, and within its norm error.
func TestOutputsApart(t *testing.T) {
	quantised := func(bytes, scale Errors) *Errors {
		bytes.Elements, scale.Elements = 65536, 64
		return figuresOfOutputs(OutputErrors{Name: "q", DType: "i8", Errors: bytes}, OutputErrors{Name: "scale", DType: "f32", Errors: scale})
	}
	verdict := func(t *testing.T, candidate *Errors, bounds string) *Verdict {
		e := evidence("mission")
		e.Correctness.Tolerance = Tolerance{Abs: 1}
		e.Correctness.Tolerances = map[string]Tolerance{"scale": {Rel: 1e-5}}
		e.Correctness.Cases[0].Errors = candidate
		e.Correctness.Cases[0].Baseline = quantised(Errors{MaxAbs: 1, MeanAbs: 1e-4, Norm: 7e-4}, Errors{MaxAbs: 1e-9, Norm: 3e-8})
		return Judge(parsePolicy(t, "version: 1\ngates:\n  correctness: {shapes: [mission], seeds: [0], "+bounds+"}\nrules:\n  - name: default\n"), "test.yaml", e)
	}
	right := Errors{MaxAbs: 1, MeanAbs: 1e-4, Norm: 7e-4}
	t.Run("right", func(t *testing.T) {
		expect(t, verdict(t, quantised(right, Errors{MaxAbs: 1e-9, Norm: 3e-8}), "norm_error: '<= 1%'"), Pass, "", "")
	})
	t.Run("a wrong scale", func(t *testing.T) {
		expect(t, verdict(t, quantised(right, Errors{MaxAbs: 3e-4, Norm: 7.9e-3}), "norm_error: '<= 1%'"), Defer, ReasonPrecision, "scale is less precise")
	})
	t.Run("a wrong scale, by its tolerance", func(t *testing.T) {
		expect(t, verdict(t, quantised(right, Errors{MaxAbs: 3e-4, Norm: 7.9e-3, Bad: 64}), "norm_error: '<= 1%'"), Defer, ReasonCorrectness, "scale: 64 of 64 elements (100%)")
	})
	t.Run("a share of all elements does not hide it", func(t *testing.T) {
		v := verdict(t, quantised(right, Errors{MaxAbs: 3e-4, Norm: 7.9e-3, Bad: 64}), "norm_error: '<= 1%', bad_elements: '<= 1%'")
		expect(t, v, Defer, ReasonCorrectness, "scale: 64 of 64 elements (100%)")
		if strings.Contains(v.Summary, "q:") {
			t.Errorf("%s", v.Summary)
		}
	})
}

// A launch that does not end has computed nothing that could agree with the reference.
func TestTimeoutAdvice(t *testing.T) {
	e := evidence("mission")
	e.Correctness.Cases[0].Errors = nil
	e.Correctness.Cases[0].Failure = &Failure{Kind: FailureTimeout, Detail: "the kernel did not return within 10s and was killed"}
	p := parsePolicy(t, "version: 1\ngates:\n  correctness: {shapes: [mission], seeds: [0], norm_error: '<= 1%'}\nrules:\n  - name: default\n")
	v := Judge(p, "test.yaml", e)
	expect(t, v, Defer, ReasonCorrectness, "the kernel did not return within 10s")
	if len(v.ToPass) != 1 || !strings.HasPrefix(v.ToPass[0], "make every launch end: ") {
		t.Errorf("%q", v.ToPass)
	}
}
