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

// looksBack is how many verdicts of a repository are judged again by a new policy.
const looksBack = 20

// rejudgePast tells which of the last verdicts would be others by the policy that a change
// brings: the evidence is there, and the base's policy and the new one are asked alike. It
// is for people to read, and decides nothing.
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
			k.Log.Debug("a past verdict is not judged again", "change", row.Change.String(), "err", err) // too old to be kept, perhaps
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

// outcome is what comes of evidence by a policy. Judging takes up to a third of a second,
// for the thousands of resamples behind an interval; of the same evidence by the same
// policy comes the same, so it is done once, however often a change is planned.
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

// judged is evidence, by its name, and a policy, by the digest of its text.
type judged struct {
	evidence string
	policy   [sha256.Size]byte
}
