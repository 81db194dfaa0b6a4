package verify

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// A checker is one look at one answer.
type checker struct {
	job      runners.Job
	rule     *policy.Rule
	evidence *gates.Evidence
	mode     runners.ModeInfo
}

// correctness: that no case is missing is for the judge to see; those that are there
// must be ones that the manifest knows.
func (c checker) correctness() error {
	found, m := c.evidence.Correctness, c.job.Manifest
	if want := c.job.RecordingsOnRecord(); !slices.Equal(c.evidence.Recorded, want) {
		return differs("recorded", c.evidence.Recorded, want)
	}
	if found == nil {
		return nil
	}
	want, own := gates.Tolerance{Abs: m.Tolerance.Abs, Rel: m.Tolerance.Rel}, runners.OwnTolerances(m)
	if c.mode.OwnHarness() {
		want = gates.Tolerance{} // a harness has its own
	}
	if found.Tolerance != want {
		return differs("correctness.tolerance", found.Tolerance, want)
	}
	if !maps.Equal(found.Tolerances, own) {
		return differs("correctness.tolerances", found.Tolerances, own)
	}
	if tests := m.Command != nil && m.Command.Test != nil; tests != (found.Test != nil) || tests && len(found.Cases) > 0 {
		return fmt.Errorf("correctness.test: the manifest has a test command: %v, and the evidence has its end: %v, beside %d cases", tests, found.Test != nil, len(found.Cases))
	} else if tests {
		return nil
	}
	secret := map[string]bool{}
	for i, k := range found.Cases {
		field := fmt.Sprintf("correctness.cases[%d]", i)
		if err := c.problem(field, k.Shape, k.Dims, k.Secret); err != nil {
			return err
		}
		if k.Secret {
			secret[fmt.Sprintf("%s %d %s", k.Dims, k.Seed, k.Distribution)] = true
		}
		if err := c.baseline(field, k, found.Cases[:i]); err != nil {
			return err
		}
		if kinds := distribution.On([]distribution.Kind{distribution.Kind(k.Distribution)}, c.job.RecordingsOnRecord(), k.Shape); distribution.Kind(k.Distribution).FromRecording() && len(kinds) == 0 {
			return fmt.Errorf("%s.distribution: the kernel has no %.60q inputs of the shape %.60q", field, k.Distribution, k.Shape)
		}
		for _, e := range []*gates.Errors{k.Errors, k.EndToEnd, k.Baseline, k.BaselineEndToEnd, k.Replayed} {
			if e != nil && !c.mode.OwnHarness() && !sound(*e) {
				return fmt.Errorf("%s: %d elements with %d bad, %d NaN, %d infinite and %d unwritten ones, or a negative error, cannot be", field, e.Elements, e.Bad, e.NaN, e.Inf, e.Unwritten)
			}
			if e != nil && len(e.Outputs) > 0 {
				if err := c.outputs(field, e); err != nil {
					return err
				}
			}
		}
	}
	gate := c.rule.Gates.Correctness
	if gate == nil || slices.ContainsFunc(found.Cases, func(k gates.Case) bool { return k.Failure != nil }) {
		return nil // a launch that fails may end the comparing
	}
	if len(secret) < int(gate.SecretCases) {
		return fmt.Errorf("correctness.cases: there are %d different secret cases, and %d were asked for", len(secret), gate.SecretCases)
	}
	return c.public("correctness", runners.Cases(c.job, gate, anyRand()), func(k runners.Case) bool {
		return slices.ContainsFunc(found.Cases, func(h gates.Case) bool {
			return !h.Secret && h.Shape == k.Shape.Name && h.Seed == k.Seed && h.Distribution == string(k.Distribution)
		})
	})
}

// outputs checks that the figures of each output are those of the manifest's outputs, and come to the figures of the case.
func (c checker) outputs(field string, e *gates.Errors) error {
	var names []string
	sum := gates.Errors{}
	for _, o := range e.Outputs {
		names = append(names, o.Name+" "+o.DType)
		if o.Elements > 0 && !sound(o.Errors) || len(o.Outputs) > 0 {
			return fmt.Errorf("%s: the figures of %.60q cannot be", field, o.Name)
		}
		sum.Elements, sum.Bad, sum.Norm = sum.Elements+o.Elements, sum.Bad+o.Bad, max(sum.Norm, o.Norm)
	}
	var want []string
	for _, o := range c.job.Manifest.Outputs() {
		want = append(want, o.Name+" "+string(o.DType))
	}
	switch {
	case !slices.Equal(names, want):
		return differs(field+".outputs", names, want)
	case sum.Elements != e.Elements || sum.Bad != e.Bad || sum.Norm != e.Norm:
		return fmt.Errorf("%s.outputs: their figures do not come to those of the case", field)
	}
	return nil
}

// public finds the cases that everybody knows among those that were run.
func (c checker) public(gate string, asked []runners.Case, has func(runners.Case) bool) error {
	for _, k := range asked {
		if !k.Secret && !k.Noise && !has(k) {
			return fmt.Errorf("%s.cases: %s was asked for and is not there", gate, k.Name())
		}
	}
	return nil
}

// anyRand draws secret cases that nobody looks at.
func anyRand() *rand.Rand { return rand.New(rand.NewPCG(0, 0)) }

// sound tells whether figures could be of an output.
func sound(e gates.Errors) bool {
	for _, part := range []int{e.Bad, e.NaN, e.Inf, e.Unwritten} {
		if part < 0 || part > e.Elements {
			return false
		}
	}
	return e.Elements > 0 && e.MaxAbs >= 0 && e.MeanAbs >= 0 && e.Norm >= 0
}

// problem holds the shape of a case against the manifest's, or its secret ranges.
func (c checker) problem(field, name, dims string, secret bool) error {
	m := c.job.Manifest
	if !secret {
		shape, ok := m.Shape(name)
		if !ok || !slices.Contains(c.job.ShapeNames(), name) {
			return fmt.Errorf("%s.shape: the kernel has no shape %.60q that both sides take", field, name)
		}
		if want := shape.Dims.String(); dims != want {
			return differs(field+".dims", dims, want)
		}
		return nil
	}
	takes := c.job.Of(c.job.Candidate)
	shapes := takes.ShapesFor(c.job.Candidate.Variant)
	if len(shapes) == 0 {
		return fmt.Errorf("%s: the candidate takes no shape", field)
	}
	drawn := slices.Clone(shapes[0].Dims)
	words := strings.Fields(dims)
	for i, dim := range drawn {
		drawn[i].Value = -1
		if i < len(words) {
			fmt.Sscanf(words[i], dim.Name+"=%d", &drawn[i].Value)
		}
		if r, ok := m.Secret[dim.Name]; ok && !r.Contains(drawn[i].Value) || !ok && drawn[i].Value != dim.Value {
			return fmt.Errorf("%s.dims: %.60q is not within the manifest's secret ranges", field, dims)
		}
	}
	if drawn.String() != dims || !takes.Supports(c.job.Candidate.Variant, drawn) {
		return fmt.Errorf("%s.dims: %.60q is no problem that the candidate takes", field, dims)
	}
	return nil
}

// sanitize: what a tool cannot find in any such kernel is known; that it is not on the
// runner is the runner's word, and no pass unless the policy says so.
func (c checker) sanitize() error {
	found := c.evidence.Sanitize
	if found == nil {
		return nil
	}
	for i, k := range found.Cases {
		if err := c.problem(fmt.Sprintf("sanitize.cases[%d]", i), k.Shape, k.Dims, k.Secret); err != nil {
			return err
		}
	}
	for i, run := range found.Tools {
		if len(run.Baseline) > 0 && (c.job.Baseline == nil || len(run.Findings) == 0) {
			return fmt.Errorf("sanitize.tools[%d].baseline: nobody looks at a baseline that is not there, or beside a candidate without findings", i)
		}
		if len(c.mode.Sanitizers) == 0 {
			return fmt.Errorf("sanitize.tools[%d]: no tool runs on a %s kernel", i, c.job.Manifest.Mode)
		}
		tool := policy.Sanitizer(run.Tool)
		if run.NotApplicable != "" && (slices.Contains(c.mode.Sanitizers, tool) || !slices.Contains(policy.Sanitizers(), tool)) {
			return fmt.Errorf("sanitize.tools[%d].not_applicable: %s has something to look for in every %s kernel", i, run.Tool, c.job.Manifest.Mode)
		}
	}
	gate := c.rule.Gates.Sanitize
	if gate == nil || found.Skipped != "" {
		return nil
	}
	for _, tool := range gate.Tools {
		if !slices.ContainsFunc(found.Tools, func(r gates.Sanitized) bool { return r.Tool == string(tool) }) {
			return fmt.Errorf("sanitize.tools: there is no word of %s", tool)
		}
	}
	secret := 0
	for _, k := range found.Cases {
		if k.Secret {
			secret++
		}
	}
	if secret < int(gate.SecretCases) {
		return fmt.Errorf("sanitize.cases: there are %d secret cases, and %d were asked for", secret, gate.SecretCases)
	}
	return c.public("sanitize", runners.SanitizeCases(c.job, gate, anyRand()), func(k runners.Case) bool {
		return slices.ContainsFunc(found.Cases, func(h gates.Input) bool {
			return !h.Secret && h.Shape == k.Shape.Name && h.Seed == k.Seed && h.Distribution == string(k.Distribution)
		})
	})
}

// performance: every round of this job has every shape that is still open, with all sides,
// and there are no more of them than were asked for.
func (c checker) performance(earlier int) error {
	found, gate := c.evidence.Performance, c.rule.Gates.Performance
	if found == nil || len(found.Rounds) == earlier {
		return nil
	}
	if gate == nil {
		return errors.New("performance: nobody asked for times")
	}
	rounds := found.Rounds[earlier:]
	last := rounds[len(rounds)-1]
	for i, r := range rounds {
		if err := c.round(fmt.Sprintf("performance.rounds[%d]", earlier+i), r, earlier, i); err != nil {
			return err
		}
		if r.Failure != nil && i < len(rounds)-1 {
			return fmt.Errorf("performance.rounds[%d].failure: it was measured on after a failure", earlier+i)
		}
	}
	planned := gates.MostRounds(gate, found.CodeNumber())
	if earlier > 0 && c.job.Rounds > 0 {
		planned = c.job.Rounds
	}
	if len(rounds) > planned {
		return fmt.Errorf("performance.rounds: there are %d, and %d were asked for", len(rounds), planned)
	}
	// The end of an attempt must not depend on what it has shown.
	if fixed := earlier > 0 && c.job.Rounds > 0; fixed && len(rounds) < planned && !found.Exhausted && last.Failure == nil {
		return fmt.Errorf("performance.rounds: there are %d, and %d were asked for", len(rounds), planned)
	}
	if found.Exhausted {
		spent := 0.0
		for _, r := range rounds {
			spent += r.Seconds
		}
		if budget := time.Duration(gate.Budget).Seconds(); spent < budget {
			return fmt.Errorf("performance.exhausted: the budget is %.0f s, and %.1f s were spent", budget, spent)
		}
	}
	return nil
}

// round, the n-th of this job, must be whole: shapes that are left out where they are slow would not be
// missed. Only those may be left out that the rounds before it have settled.
func (c checker) round(field string, r gates.Round, earlier, n int) error {
	if r.Failure != nil {
		return nil
	}
	var timed []string
	for i, s := range r.Series {
		timed = append(timed, s.Shape)
		for _, side := range []rune{gates.SideBaseline, gates.SideCandidate, gates.SideControl} {
			if !strings.ContainsRune(s.Order, side) {
				return fmt.Errorf("%s.series[%d].order: it has no sample of side %c", field, i, side)
			}
		}
		if single := s.Single; c.mode.SingleLaunches && s.Batch > 1 && (single == nil || !single.Isolated || len(single.Candidate) < 2*max(len(s.Distributions), 1)) {
			return fmt.Errorf("%s.series[%d].single_ns: a series of batches needs two launches that ran alone for each kind of input", field, i)
		}
		if s.Worst != nil && (s.Worst.Bad < 0 || s.Worst.NaN < 0 || s.Worst.Inf < 0 || s.Worst.Unwritten < 0) {
			return fmt.Errorf("%s.series[%d].worst: it has negative counts", field, i)
		}
		if err := timedOutputs(fmt.Sprintf("%s.series[%d]", field, i), s); err != nil {
			return err
		}
	}
	want := gates.TimedShapes(c.rule, c.evidence)
	slices.Sort(timed)
	if slices.Sort(want); slices.Equal(timed, want) {
		return nil
	}
	for _, open := range c.openShapes(earlier, n) {
		if slices.Sort(open); len(open) > 0 && slices.Equal(timed, open) {
			return nil
		}
	}
	return differs(field+".series", timed, want)
}

// openShapes is what the n-th round of this job may time alone. The shapes of a further attempt are chosen at its
// beginning, whether or not the budget ended the attempt before it.
func (c checker) openShapes(earlier, n int) [][]string {
	open := func(rounds int, exhausted bool) []string {
		e, p := *c.evidence, *c.evidence.Performance
		p.Rounds, p.Exhausted = p.Rounds[:rounds], exhausted
		e.Performance = &p
		return gates.OpenShapes(c.job.Policy, &e)
	}
	if earlier == 0 {
		return [][]string{open(n, false)}
	}
	return [][]string{open(earlier, false), open(earlier, true)}
}
