package change

import (
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// Judge is the verdict by the rule that applies and by others that count as well: the
// worst of them. A verdict that blocks is worse than any that does not.
func Judge(p *policy.Policy, file string, e *gates.Evidence, others []string) *gates.Verdict {
	worst := gates.Judge(p, file, e)
	bad := func(v *gates.Verdict) int {
		rank := map[gates.Outcome]int{gates.Pass: 0, gates.Defer: 1, gates.Error: 2}[v.Outcome]
		if v.Blocks() {
			rank += 2
		}
		return rank
	}
	for _, rule := range p.Rules {
		if !slices.Contains(others, rule.Name) || rule.Name == worst.Rule {
			continue
		}
		alone := *p
		alone.Rules = []policy.Rule{rule}
		if v := gates.Judge(&alone, file, e); bad(v) > bad(worst) {
			worst = v
		}
	}
	return worst
}

// FaultEvidence is the evidence of a planned run of which nothing is known but the runner's fault. It
// has the facts of the change, so that the rule of the plan applies to it.
func (s *State) FaultEvidence(run Run, fault string) *gates.Evidence {
	f := s.Facts
	e := &gates.Evidence{
		Schema: gates.EvidenceSchema, Kernel: run.ManifestName(), Fault: fault,
		Provenance: gates.Provenance{Repository: f.Repo, Base: gates.Commit{SHA: s.Plan.Base}, Head: gates.Commit{SHA: run.Head}, Label: run.Device},
		Change:     policy.Change{Labels: f.Labels, Branch: f.Base, Title: f.Title, Claims: f.Claims, Draft: f.Draft},
	}
	if i := slices.IndexFunc(s.Plan.Kernels, func(k Kernel) bool { return k.Key() == run.Key() }); i >= 0 {
		e.Change.Paths = s.Plan.Kernels[i].Paths
	}
	return e
}

// Blocks reports whether the verdict keeps the change from being merged. A run without a verdict
// does.
func (r *Result) Blocks() bool {
	return r == nil || r.Outcome != gates.Pass && (r.Enforce.Blocks() || r.Outcome != gates.Defer && r.Outcome != gates.Error)
}

// Tried is an earlier attempt at a kernel, in another pull request, that did not pass.
type Tried struct {
	Number  int // of the pull request
	Title   string
	Outcome gates.Outcome
	Reason  gates.Reason
	Line    string // the verdict in one line
	At      time.Time
}

// NewResult is what a change remembers of a verdict.
func NewResult(v *gates.Verdict) Result {
	r := Result{
		Outcome: v.Outcome, Reason: v.Reason, Line: report.OneLine(v), Rule: v.Rule, Enforce: v.Enforce, Device: v.Device.Name,
		Speedups: map[string]float64{}, P50: map[string]float64{},
	}
	for _, c := range v.Judged() {
		if c.Secret {
			continue // another size in every run: its times have no history
		}
		if c.Candidate != nil {
			r.P50[c.Shape] = c.CandidateTime()
		}
		if c.Role == gates.RoleTarget && c.Baseline != nil {
			r.Speedups[c.Shape] = c.Speedup.Value
		}
	}
	return r
}

// Compare adds what the kernel's high-water mark is derived from. A verdict that finds the figures suspicious, or the
// machine unfit, says nothing of the kernel's speed.
func (r *Result) Compare(v *gates.Verdict, e *gates.Evidence, against string) {
	if e.Baseline == nil || against == "" {
		return
	}
	r.Against, r.Arch, r.Unbuildable = against, e.Device.Arch, !e.Baseline.OK
	if v.Outcome == gates.Error || v.Reason == gates.ReasonSuspicious || v.Reason == gates.ReasonCorrectness || v.Reason == gates.ReasonPrecision {
		return
	}
	for _, s := range e.Shapes {
		ratio := Ratio{Value: 1, Dims: s.Dims}
		switch c := v.ComparisonOf(s.Name); {
		case c == nil && e.SameCode, c != nil && c.Same:
		case c != nil && c.Baseline != nil && c.Baseline.N > 0 && c.Speedup.Value > -1 && c.Speedup != (gates.Estimate{}):
			ratio.Value += c.Speedup.Value
		default:
			continue
		}
		if r.Ratios == nil {
			r.Ratios = map[string]Ratio{}
		}
		r.Ratios[s.Name] = ratio
	}
}
