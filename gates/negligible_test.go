package gates

import "testing"

// A norm error says nothing about an output that is nothing. It still finds a kernel that writes zeros where the output is small.
func TestNormOfNothing(t *testing.T) {
	const huge = 1.7976931348623157e308
	for name, c := range map[string]struct {
		errors  Errors
		all     bool // of every case
		outcome Outcome
	}{
		"zero was expected":               {Errors{Elements: 100, MaxAbs: 1e-6, MeanAbs: 1e-7, Norm: huge}, false, Pass},
		"rounding of zero":                {Errors{Elements: 100, MaxAbs: 1e-6, MeanAbs: 1e-7, Norm: 0.5}, false, Pass},
		"zeros for something small":       {Errors{Elements: 100, MaxAbs: 0.04, MeanAbs: 0.03, Norm: 1}, false, Defer},
		"zeros for a little":              {Errors{Elements: 100, MaxAbs: 1e-4, MeanAbs: 1e-4, Norm: 1}, false, Defer},
		"a bad element":                   {Errors{Elements: 100, MaxAbs: 1e-6, MeanAbs: 1e-7, Norm: huge, Bad: 1}, false, Defer},
		"nothing was expected anywhere":   {Errors{Elements: 100, MaxAbs: 1e-6, MeanAbs: 1e-7, Norm: 0.5}, true, Defer},
		"an error that is much too large": {Errors{Elements: 100, MaxAbs: 0.05, MeanAbs: 0.05, Norm: 0.5}, false, Defer},
	} {
		t.Run(name, func(t *testing.T) {
			e := passing()
			e.Correctness.Tolerance = Tolerance{Abs: 0.06}
			for i := range e.Correctness.Cases {
				k := &e.Correctness.Cases[i]
				if i == 0 || c.all {
					own := c.errors
					k.Errors = &own
				} else if k.Errors == nil || k.Errors.negligible(e.Correctness.Tolerance) {
					k.Errors = &Errors{Elements: 100, MaxAbs: 0.001, MeanAbs: 0.0005, Norm: 0.001}
				}
			}
			v := Judge(parsePolicy(t, fullPolicy), "test.yaml", e)
			if v.Outcome != c.outcome {
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
			if wrong := e.Wrong(parsePolicy(t, fullPolicy).Rules[0].Gates.Correctness); (len(wrong) == 0) != (c.outcome == Pass) {
				t.Errorf("the wrong cases are %v", wrong)
			}
		})
	}
}

// A harness of the repository has no resource usage: a policy that only shows the figures does not ask for them.
func TestResourcesThatNobodyLimits(t *testing.T) {
	for limits, want := range map[string]Status{"{}": Passed, "{registers: \"<= 64\"}": Missing} {
		e := passing()
		e.Candidate.Resources = nil
		v := Judge(parsePolicy(t, "version: 1\ngates:\n  ptxas: "+limits+"\nrules: [{name: default}]\n"), "test.yaml", e)
		for _, r := range v.Gates {
			if r.Gate == GatePTXAS && r.Status != want {
				t.Errorf("%s: %s, %s", limits, r.Status, r.Text)
			}
		}
	}
}
