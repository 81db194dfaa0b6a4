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

// toleranceOf is the tolerance of an output: its own, or else that of all.
func (c *Correctness) toleranceOf(output string) Tolerance {
	if own, ok := c.Tolerances[output]; ok {
		return own
	}
	return c.Tolerance
}

// strictest is a tolerance that allows no more of an element than that of any output does.
func (c *Correctness) strictest() Tolerance {
	t := c.Tolerance
	for _, own := range c.Tolerances {
		t = Tolerance{Abs: min(t.Abs, own.Abs), Rel: min(t.Rel, own.Rel)}
	}
	return t
}

// judged is the cases with only those norm errors to which the bound applies; the rest are 0.
func (c *Correctness) judged() []Case {
	some := false
	for _, k := range c.Cases {
		some = some || k.Errors != nil && (k.Errors.Norm == 0 || c.judgedErrors(k.Errors).Norm > 0)
	}
	if !some {
		return c.Cases
	}
	cases := make([]Case, len(c.Cases))
	for i, k := range c.Cases {
		k.Errors, k.Baseline = c.judgedErrors(k.Errors), c.judgedErrors(k.Baseline)
		cases[i] = k
	}
	return cases
}

// judgedErrors is the errors without a norm error to which the bound does not apply. Of several outputs, each is looked at.
func (c *Correctness) judgedErrors(e *Errors) *Errors {
	if c == nil || e == nil {
		return e
	}
	own := *e
	if len(e.Outputs) == 0 {
		if e.negligible(c.strictest()) {
			own.Norm = 0
		}
		return &own
	}
	own.Norm, own.Outputs = 0, make([]OutputErrors, len(e.Outputs))
	for i, o := range e.Outputs {
		if o.negligible(c.toleranceOf(o.Name)) {
			o.Norm = 0
		}
		own.Outputs[i], own.Norm = o, max(own.Norm, o.Norm)
	}
	return &own
}
