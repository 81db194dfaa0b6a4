package gates

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/policies/ident"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// A guard bounds the loss of one change. Many changes that each stay within it may lose much more
// together, and a revert of them would look like a gain. So evidence may name the kernel's
// high-water mark, the merged commit with the best cumulative speed on this device, and the
// baseline's speed relative to it. The product of that and of the change's speedup is the cumulative
// loss.
//
// The baseline's relative speed is a product of point estimates and counts as exact; only the
// change's interval is used. A high-water mark is the maximum of estimates, and therefore a little
// too high: where several commits are equally fast, by about the noise of one run.

// A Best is the high-water mark of one shape. The server that judges computes it from the history of
// the base branch. A runner does not know it, and evidence of a runner that has one is refused.
type Best struct {
	Shape  string    `json:"shape"`
	Commit string    `json:"commit"`
	Time   time.Time `json:"time,omitzero"`     // when it was judged
	Result Outcome   `json:"outcome,omitempty"` // its verdict; none where it was never judged as a candidate
	// Baseline is the speed of this run's baseline relative to the mark: 0.9 is 10 % below it.
	Baseline float64 `json:"baseline"`
	// Lost is the merges from the mark to the baseline that made the kernel slower, in their order; the
	// largest losses, where there are many.
	Lost []Loss `json:"lost,omitempty"`
	// Unmeasured counts the merges from the mark to the baseline that were not measured on this device.
	// Their speedup counts as 0.
	Unmeasured int `json:"unmeasured,omitempty"`
}

// MaxLosses is how many losses evidence names for one shape.
const MaxLosses = 20

// An AgainstBest is one shape of the candidate against its high-water mark.
type AgainstBest struct {
	Shape      string    `json:"shape"`
	Commit     string    `json:"commit"`
	Time       time.Time `json:"time,omitzero"`
	Result     Outcome   `json:"outcome,omitempty"`
	Speedup    Estimate  `json:"speedup"`  // of the candidate over the mark
	Baseline   float64   `json:"baseline"` // the baseline's speedup over the mark
	Lost       []Loss    `json:"lost,omitempty"`
	Unmeasured int       `json:"unmeasured,omitempty"`
}

// problem is the first field that the judge cannot use.
func (b Best) problem(shapes map[string]bool) (field, problem string) {
	switch {
	case !shapes[b.Shape]:
		return "shape", fmt.Sprintf("%q is not among the shapes", b.Shape)
	case !ident.IsCommit(b.Commit):
		return "commit", fmt.Sprintf("%q is not the id of a commit", b.Commit)
	case !(b.Baseline > 0) || math.IsInf(b.Baseline, 0):
		return "baseline", fmt.Sprintf("is %v, which is not above 0", b.Baseline)
	case b.Unmeasured < 0:
		return "unmeasured", fmt.Sprintf("is %d", b.Unmeasured)
	case len(b.Lost) > MaxLosses:
		return "lost", fmt.Sprintf("has %d merges (at most %d)", len(b.Lost), MaxLosses)
	}
	for i, l := range b.Lost {
		if !ident.IsCommit(l.Commit) || !(l.Speedup > -1 && l.Speedup < 0) {
			return fmt.Sprintf("lost[%d]", i), "is no commit with a speedup from -1 to 0"
		}
	}
	return "", ""
}

// leastShown is the smallest difference from the mark that a note mentions. Products of estimates
// are not more exact.
const leastShown = 0.01

// compareWithBest compares the candidate with the high-water mark of each shape. It adds notes, and
// defers a change that is proven to be below the mark by more than the policy allows. It never turns
// a failure into a pass.
func (j *judgement) compareWithBest(r GateResult) GateResult {
	gate := j.rule.Gates.Performance
	goals, _ := goalsOf(gate, j.evidence)
	var failed []AgainstBest
	var unknown []string
	for _, g := range goals {
		own, timed := j.ownSpeedup(g.shape.Name)
		if !timed {
			continue
		}
		i := slices.IndexFunc(j.evidence.Best, func(b Best) bool { return b.Shape == g.shape.Name })
		if i < 0 {
			if g.goal.BelowBest != nil {
				unknown = append(unknown, g.shape.Name)
			}
			continue
		}
		row := j.evidence.Best[i].against(own)
		j.best = append(j.best, row)
		if note, ok := row.note(own, allowance(g.goal, gate.Guard)); ok {
			j.note(note)
		}
		if g.goal.BelowBest != nil && row.provenBelow(*g.goal.BelowBest, own) {
			failed = append(failed, row)
		}
	}
	if len(unknown) > 0 {
		j.note(facts.NoMark{Shapes: unknown})
	}
	if len(failed) == 0 || r.Status != Passed && r.Status != Open {
		return r
	}
	return j.belowBest(failed, goals)
}

// ownSpeedup is the candidate's speedup over the baseline. Equal machine code has the speedup 0.
func (j *judgement) ownSpeedup(shape string) (Estimate, bool) {
	equal := Estimate{Lower: new(0.0), Upper: new(0.0)}
	for _, c := range j.comparisons {
		if c.Shape == shape {
			if c.Same {
				return equal, true
			}
			return c.Speedup, c.Baseline != nil && c.Baseline.N > 0 && c.Speedup != Estimate{}
		}
	}
	return equal, j.evidence.SameCode
}

func (b Best) against(own Estimate) AgainstBest {
	over := func(speedup float64) float64 { return round(b.Baseline*(1+speedup) - 1) }
	row := AgainstBest{
		Shape: b.Shape, Commit: b.Commit, Time: b.Time, Result: b.Result, Lost: b.Lost, Unmeasured: b.Unmeasured,
		Baseline: round(b.Baseline - 1), Speedup: Estimate{Value: over(own.Value)},
	}
	if own.Lower != nil && own.Upper != nil {
		row.Speedup.Lower, row.Speedup.Upper = new(over(*own.Lower)), new(over(*own.Upper))
	}
	return row
}

// provenBelow reports whether the whole interval is further below the mark than the bound allows. A
// change that is proven to be no slower than its baseline is not blamed for the losses of earlier
// changes.
func (a AgainstBest) provenBelow(bound quantity.Bound[quantity.Percent], own Estimate) bool {
	if a.Speedup.Upper == nil || *own.Lower >= 0 {
		return false
	}
	return !bound.Holds(-*a.Speedup.Upper)
}

// allowance is the loss that the goal of a shape allows one change.
func allowance(goals ...*policy.Goal) float64 {
	for _, g := range goals {
		switch {
		case g == nil:
		case g.Speedup != nil && g.Speedup.Value < 0:
			return -float64(g.Speedup.Value)
		case g.LatencyReduction != nil && g.LatencyReduction.Value < 0:
			return 1 - 1/(1-float64(g.LatencyReduction.Value))
		}
	}
	return 0
}

// note is the note about the mark, where there is one: the candidate has lost more than the goal allows one change, or
// its gain only wins back what was there before.
func (a AgainstBest) note(own Estimate, allowed float64) (note facts.AgainstMark, ok bool) {
	note = facts.AgainstMark{Shape: a.Shape, Mark: a.mark(), Speedup: a.Speedup.Value, Unmeasured: a.Unmeasured}
	if own.Value >= leastShown && a.Baseline <= -leastShown {
		note.Gained = &own.Value
		return note, true
	}
	return note, a.Speedup.Value < -max(allowed, leastShown)
}

func (a AgainstBest) mark() facts.Mark {
	return facts.Mark{Commit: a.Commit, Time: a.Time, Outcome: string(a.Result)}
}

// belowBest defers a change for the sum of what was lost, and names the merges that lost it.
func (j *judgement) belowBest(failed []AgainstBest, goals []goalOf) GateResult {
	r := GateResult{Status: Failed, Reason: ReasonRegression}
	var found facts.BelowBest
	for _, a := range failed {
		i := slices.IndexFunc(goals, func(g goalOf) bool { return g.shape.Name == a.Shape })
		found.Shapes = append(found.Shapes, facts.BelowMark{Shape: a.Shape, Mark: a.mark(), Speedup: a.Speedup, Asked: goals[i].goal.BelowBest.String()})
		if len(a.Lost) > 0 {
			lost := facts.LostBy{Shape: a.Shape, Merges: a.Lost}
			found.Lost = cmp.Or(found.Lost, &lost)
			r.More = append(r.More, lost)
		}
		r.Steps = append(r.Steps, facts.WinBackBest{Shape: a.Shape, Commit: a.Commit})
		for k := range j.comparisons {
			if j.comparisons[k].Shape == a.Shape {
				j.comparisons[k].Status = Failed
			}
		}
	}
	r.Found, r.Steps = found, append(r.Steps, facts.RaiseBelowBest{})
	return r
}
