package gates

// A norm error is relative to the expected output. Where that output is practically zero, as of a
// layer norm on constant inputs, any rounding is a large part of it. The bound is meant for small
// outputs, not for such ones: it does not apply where no element is bad and the expected values, on
// average, are within a thousandth of the manifest's absolute tolerance. A kernel all of whose
// outputs are that small must keep the bound all the same: no other test would judge it.
const negligibleShare = 1e-3

// negligible reports whether the expected output is certainly negligible. No element differs by more
// than MaxAbs, so the root mean square of the expected values is at most MaxAbs/Norm.
func (e *Errors) negligible(t Tolerance) bool {
	return e != nil && e.Bad == 0 && e.Norm > 0 && e.MaxAbs <= e.Norm*t.Abs*negligibleShare
}

// judged is the cases with only those norm errors to which the bound applies; the rest are 0.
func (c *Correctness) judged() []Case {
	some := false
	for _, k := range c.Cases {
		some = some || k.Errors != nil && !k.Errors.negligible(c.Tolerance)
	}
	if !some {
		return c.Cases
	}
	cases := make([]Case, len(c.Cases))
	for i, k := range c.Cases {
		for _, e := range []**Errors{&k.Errors, &k.Baseline} {
			if (*e).negligible(c.Tolerance) {
				small := **e
				small.Norm = 0
				*e = &small
			}
		}
		cases[i] = k
	}
	return cases
}

// judgedErrors is the errors of timed launches without a norm error to which the bound does not
// apply.
func (c *Correctness) judgedErrors(e *Errors) *Errors {
	if c == nil || !e.negligible(c.Tolerance) {
		return e
	}
	small := *e
	small.Norm = 0
	return &small
}
