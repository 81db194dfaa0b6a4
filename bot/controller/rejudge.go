package controller

import (
	"context"
	"crypto/sha256"
	"fmt"
	"reflect"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/hindsight"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/policy"
)

const (
	// looksBack is how many runs of a repository are judged again by a new policy.
	looksBack = 50
	// rejudgeFor bounds the time that this takes. Other pull requests wait for their plans.
	rejudgeFor = 15 * time.Second
	// maxWhy is how many characters of a reason a plan keeps.
	maxWhy = 160
)

// rejudgePast tells which of the last verdicts would be different by the policy that a change brings,
// and which evidence would not suffice. The base's policy and the new one judge the same evidence.
// The result is for people to read, and decides nothing.
func (k *Controller) rejudgePast(ctx context.Context, id change.ID, p *planner.Proposal) error {
	if p.RuleChange == nil || p.NewPolicy == nil {
		return nil
	}
	old, err := p.ReadPolicy()
	if err != nil {
		return err
	}
	rows, err := k.Ledger.Runs(ctx, ledger.RunFilter{RepoID: id.Repo, Phase: change.Done, Verdicts: true, Limit: looksBack})
	if err != nil {
		return fmt.Errorf("asking the ledger: %w", err)
	}
	begun, seen := k.Now(), map[string]bool{"": true}
	var judgedRows []hindsight.Row
	for _, row := range rows {
		if row.Extra || seen[row.Evidence] {
			continue // for information, or judged again under a different rule
		}
		seen[row.Evidence] = true
		if k.Now().Sub(begun) > rejudgeFor {
			p.RuleChange.Unjudged++
			continue
		}
		e, err := k.evidence(ctx, row.Evidence)
		if err != nil {
			k.Log.Debug("a past verdict is not judged again", "change", row.Change.String(), "err", err) // too old, and no longer stored
			continue
		}
		p.RuleChange.Judged++
		if asksTheSame(old, p.NewPolicy, e) {
			continue
		}
		is := k.hindsight(row.Evidence, p.Policy, p.NewText, func() hindsight.Row {
			return hindsight.Judge(hindsight.Policy{Policy: old, File: p.PolicyFile}, hindsight.Policy{Policy: p.NewPolicy, File: p.PolicyFile}, row.Job, e)
		})
		judgedRows = append(judgedRows, is)
		past := change.PastVerdict{Kernel: row.Kernel, Change: row.Change, Head: row.Head, Old: judgementOf(is.Old), New: judgementOf(is.New)}
		switch {
		case is.Lacks != nil && !is.Lacks.Both:
			past.Why = report.Clip(report.Plain(is.Lacks.String()), maxWhy)
			p.RuleChange.Lacking = append(p.RuleChange.Lacking, past)
		case is.Flips():
			past.Why = report.Clip(report.Plain(is.New.Summary), maxWhy)
			p.RuleChange.Past = append(p.RuleChange.Past, past)
		}
	}
	if sum := hindsight.Summarize(judgedRows); sum.Runs > 0 {
		p.RuleChange.OldSeconds, p.RuleChange.NewSeconds = sum.OldSeconds, sum.NewSeconds
	}
	return nil
}

func judgementOf(j hindsight.Judgement) change.Judgement {
	return change.Judgement{Outcome: j.Outcome, Reason: j.Reason, Enforce: j.Enforce}
}

// asksTheSame reports whether two policies have equal rules for a change, so that the verdict is the
// same.
func asksTheSame(old, new *policy.Policy, e *gates.Evidence) bool {
	asked := e.Change
	asked.Kernel = e.Kernel
	was, is := old.RuleFor(asked), new.RuleFor(asked)
	label := e.Provenance.Label
	return was.Enforce == is.Enforce && old.Devices.Informs(label) == new.Devices.Informs(label) && reflect.DeepEqual(was.Gates, is.Gates)
}

// hindsight is evidence by two policies. Judging takes up to a third of a second for the thousands of
// resamples behind an interval. The same evidence and policies give the same result, so it is done
// once, however often a change is planned.
func (k *Controller) hindsight(evidence, old, new string, judge func() hindsight.Row) hindsight.Row {
	key := judged{evidence, sha256.Sum256([]byte(old)), sha256.Sum256([]byte(new))}
	if known, ok := k.outcomes.Get(key); ok {
		return known
	}
	row := judge()
	k.outcomes.Add(key, row)
	return row
}

// judged is evidence, by its name, and two policies, by the digests of their texts.
type judged struct {
	evidence string
	old, new [sha256.Size]byte
}
