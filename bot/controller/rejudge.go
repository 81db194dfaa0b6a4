package controller

import (
	"context"
	"crypto/sha256"
	"fmt"
	"reflect"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
)

// looksBack is how many recent verdicts of a repository are judged again by a new policy.
const looksBack = 20

// rejudgePast finds which recent verdicts the policy of a change would flip. It judges the stored
// evidence by the base's policy and by the new one. The result is for people to read, and decides
// nothing.
func (k *Controller) rejudgePast(ctx context.Context, id change.ID, p *planner.Proposal) error {
	if p.RuleChange == nil || p.NewPolicy == nil {
		return nil
	}
	old, err := p.ReadPolicy()
	if err != nil {
		return err
	}
	rows, err := k.Ledger.Runs(ctx, ledger.RunFilter{RepoID: id.Repo, Phase: change.Done, Limit: looksBack})
	if err != nil {
		return fmt.Errorf("asking the ledger: %w", err)
	}
	for _, row := range rows {
		if row.Extra || row.Evidence == "" {
			continue
		}
		e, err := k.evidence(ctx, row.Evidence)
		if err != nil {
			k.Log.Debug("a past verdict is not judged again", "change", row.Change.String(), "err", err) // too old, and no longer stored
			continue
		}
		p.RuleChange.Judged++
		asked := e.Change
		asked.Kernel = e.Kernel
		if reflect.DeepEqual(old.RuleFor(asked).Gates, p.NewPolicy.RuleFor(asked).Gates) {
			continue
		}
		was := k.outcome(row.Evidence, p.Policy, func() *gates.Verdict { return gates.Judge(old, p.PolicyFile, e) })
		is := k.outcome(row.Evidence, p.NewText, func() *gates.Verdict { return gates.Judge(p.NewPolicy, p.PolicyFile, e) })
		if was != is {
			p.RuleChange.Past = append(p.RuleChange.Past, change.PastVerdict{
				Kernel: row.Kernel, Change: row.Change, Head: row.Head, Old: was, New: is,
			})
		}
	}
	return nil
}

// outcome judges evidence by a policy. A judgement takes up to a third of a second, because an
// interval needs thousands of resamples. The same evidence and policy give the same outcome, so the
// result is cached.
func (k *Controller) outcome(evidence, policy string, judge func() *gates.Verdict) change.Judgement {
	key := judged{evidence, sha256.Sum256([]byte(policy))}
	if known, ok := k.outcomes.Get(key); ok {
		return known
	}
	v := judge()
	out := change.Judgement{Outcome: v.Outcome, Reason: v.Reason}
	k.outcomes.Add(key, out)
	return out
}

// judged identifies evidence by its name, and a policy by the digest of its text.
type judged struct {
	evidence string
	policy   [sha256.Size]byte
}
