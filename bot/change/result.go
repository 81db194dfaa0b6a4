package change

import (
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies"
)

// Judge is the verdict by the rule that applies and by others that count as well: the
// worst of them.
func Judge(p *policies.Policy, file string, e *gates.Evidence, others []string) *gates.Verdict {
	worst := gates.Judge(p, file, e)
	bad := map[gates.Outcome]int{gates.Pass: 0, gates.Defer: 1, gates.Error: 2}
	for _, rule := range p.Rules {
		if !slices.Contains(others, rule.Name) || rule.Name == worst.Rule {
			continue
		}
		alone := *p
		alone.Rules = []policies.Rule{rule}
		if v := gates.Judge(&alone, file, e); bad[v.Outcome] > bad[worst.Outcome] {
			worst = v
		}
	}
	return worst
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
		Outcome: v.Outcome, Reason: v.Reason, Line: report.OneLine(v), Rule: v.Rule, Device: v.Device.Name,
		Speedups: map[string]float64{}, P50: map[string]float64{},
	}
	for _, c := range v.Comparisons {
		if c.Candidate != nil {
			r.P50[c.Shape] = c.Candidate.P50
		}
		if c.Role == gates.RoleTarget && c.Baseline != nil {
			r.Speedups[c.Shape] = c.Speedup.Value
		}
	}
	return r
}
