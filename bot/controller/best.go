package controller

import (
	"cmp"
	"context"
	"fmt"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/highwater"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A subject is the kernel of a change that a verdict is about.
type subject struct {
	repo       int64
	folder     string
	branch     string // the base branch of the change
	base       string // the merge base
	policyFile string
	extra      bool // measured for information
}

func subjectOf(s *change.State, p *change.Plan, folder string) subject {
	return subject{repo: s.ID.Repo, folder: folder, branch: s.Facts.Base, base: p.Base, policyFile: p.PolicyFile}
}

// against returns the commit that the evidence compares with. It returns "" if the evidence
// compares with a variant, or was gathered for information.
func (of subject) against(pol *policy.Policy, e *gates.Evidence) string {
	asked := e.Change
	asked.Kernel = e.Kernel
	if gate := pol.RuleFor(asked).Gates.Performance; of.extra || gate == nil || gate.Baseline.Kind == policy.BaselineVariant {
		return ""
	}
	return cmp.Or(e.Provenance.Baseline, of.base)
}

// fillBest records in the evidence how its baseline compares with the kernel's best commit. It does
// so before the first judgement, so that a later judgement of the stored evidence gives the same
// verdict.
func (k *Controller) fillBest(ctx context.Context, of subject, policy *policy.Policy, e *gates.Evidence) error {
	e.Best = nil
	against := of.against(policy, e)
	if against == "" || e.Fault != "" || e.Baseline == nil || e.Device.Name == "" {
		return nil
	}
	history, err := k.Ledger.Merges(ctx, of.repo, of.folder)
	if err != nil {
		return fmt.Errorf("asking the ledger: %w", err)
	}
	positions := history.Positions(against, of.branch, highwater.Device{Name: e.Device.Name, Arch: e.Device.Arch})
	for _, s := range e.Shapes {
		if p, ok := positions[highwater.Shape{Name: s.Name, Dims: s.Dims}]; ok {
			e.Best = append(e.Best, gates.Best{Shape: s.Name, Commit: p.Commit, Time: p.At, Result: p.Outcome, Baseline: p.Level, Lost: p.Lost, Unmeasured: p.Unmeasured})
		}
	}
	return nil
}
