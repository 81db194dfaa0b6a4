package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/bot/attempts"
	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// reuseEvidence decides a kernel of a new plan without a runner, if possible: the kernel is gone,
// or the same sources were measured already. Evidence is about sources, so a new label or policy
// only changes what is asked of it.
func (k *Controller) reuseEvidence(ctx context.Context, s *change.State, p planner.Proposal, kernel *change.Kernel) error {
	if e := p.Evidence[kernel.Folder]; e != nil {
		policy, err := p.ReadPolicy()
		if err == nil {
			kernel.Result, err = k.judge(ctx, subjectOf(s, &p.Plan, kernel.Folder), policy, e, kernel.Rules)
		}
		return err
	}
	if s.ID.Kind.Scheduled() {
		return nil // the kernel still exists, so it must be measured
	}
	old, holds := s.Measured(p.Head, kernel.KernelSpec)
	if s.ID.Kind == change.Push {
		var err error
		if old, holds, err = k.merged(ctx, s.ID.Repo, *kernel); err != nil || !holds {
			return err
		}
	} else if !holds || s.Plan == nil {
		return nil
	} else if old.Key() == kernel.Key() && old.Rule == kernel.Rule && old.Trial == kernel.Trial && slices.Equal(old.Rules, kernel.Rules) && s.Plan.Policy == p.Policy {
		kernel.Reused = true
		return nil
	}
	if s.ID.Kind == change.Group || old.Phase != change.Done || old.Result == nil || old.Result.Evidence == "" {
		return nil
	}
	e, err := k.evidence(ctx, old.Result.Evidence)
	if err != nil {
		return err
	}
	changed := e.Change
	changed.Labels, changed.Title, changed.Draft, changed.Branch = s.Facts.Labels, s.Facts.Title, s.Facts.Draft, s.Facts.Base
	e.Change, e.Provenance.Label = changed, kernel.Device
	policy, err := p.ReadPolicy()
	if err != nil {
		return err
	}
	if s.ID.Kind != change.Push && s.Plan.Policy != p.Policy && e.Fault == "" && gates.Next(policy, e).Gate == "" {
		if e, err = k.attempts.Carry(ctx, attempts.KeyOf(s.ID, &p.Plan, change.Run{KernelSpec: kernel.KernelSpec}), old, e); err != nil || e == nil {
			return err
		}
		e.Change, e.Provenance.Label = changed, kernel.Device
	}
	if e.Fault != "" || gates.Next(policy, e).Gate != "" {
		return nil // the new rule asks for more than was gathered
	}
	kernel.Result, err = k.judge(ctx, subjectOf(s, &p.Plan, kernel.Folder), policy, e, nil)
	return err
}

// merged finds the run of the pull request that a push merged. Its evidence is about the same bytes
// that are on the default branch now, so the history needs no new measurement.
func (k *Controller) merged(ctx context.Context, repo int64, kernel change.Kernel) (change.Run, bool, error) {
	const lately = 20
	rows, err := k.Ledger.Runs(ctx, ledger.RunFilter{RepoID: repo, Folder: kernel.Folder, Phase: change.Done, Verdicts: true, Limit: lately})
	if err != nil {
		return change.Run{}, false, fmt.Errorf("asking the ledger: %w", err)
	}
	for _, row := range rows {
		if row.Extra || row.Change.Kind != change.Pull {
			continue
		}
		s, err := k.states.load(ctx, row.Change)
		if err != nil {
			return change.Run{}, false, err
		}
		if run, ok := s.Run(row.Job); ok && change.EvidenceHolds(run, run.Head, kernel.KernelSpec) && run.Result != nil && run.Result.Outcome != gates.Error {
			return run, true, nil
		}
	}
	return change.Run{}, false, nil
}

// judge makes all verdicts of the bot.
func (k *Controller) judge(ctx context.Context, of subject, policy *policy.Policy, e *gates.Evidence, rules []string) (*change.Result, error) {
	if err := k.fillBest(ctx, of, policy, e); err != nil {
		return nil, err
	}
	v := change.Judge(policy, of.policyFile, e, rules)
	k.count(func(c *Counts) { c.Judged++ })
	result := change.NewResult(v)
	result.Attempt = attempts.Last(e)
	result.Compare(v, e, of.against(policy, e))
	var err error
	if result.Evidence, err = k.storeJSON(ctx, "evidence", e); err != nil {
		return nil, err
	}
	result.Verdict, err = k.storeJSON(ctx, "verdict", v)
	return &result, err
}

// storeJSON stores a value under the hash of its JSON, so storing it twice has no effect.
func (k *Controller) storeJSON(ctx context.Context, what string, value any) (string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("storing %s: %w", what, err)
	}
	return k.storeBytes(ctx, what, data)
}

func (k *Controller) storeBytes(ctx context.Context, what string, data []byte) (string, error) {
	sum := sha256.Sum256(data)
	name := what + "-" + hex.EncodeToString(sum[:])
	if err := k.Journal.Artifacts.Pack(ctx, name, data); err != nil {
		return "", fmt.Errorf("storing %s: %w", what, err)
	}
	return name, nil
}

func (k *Controller) evidence(ctx context.Context, blob string) (*gates.Evidence, error) {
	data, err := k.Journal.Artifacts.Read(ctx, blob)
	if err != nil {
		return nil, fmt.Errorf("reading stored evidence: %w", err)
	}
	return gates.ParseEvidence(blob, data)
}

func (k *Controller) verdict(ctx context.Context, r change.Result) (*gates.Verdict, error) {
	data, err := k.Journal.Artifacts.Read(ctx, r.Verdict)
	if err != nil {
		return nil, fmt.Errorf("reading a stored verdict: %w", err)
	}
	v := &gates.Verdict{}
	if err := json.Unmarshal(data, v); err != nil {
		return nil, fmt.Errorf("reading a stored verdict: %w", err)
	}
	if v.Outcome == gates.Defer && v.Reason != gates.ReasonBuild && len(v.Comparisons) == 0 && r.Evidence != "" {
		if e, err := k.evidence(ctx, r.Evidence); err == nil { // it may have expired
			v.Unjudged = gates.UnjudgedTimes(e)
		}
	}
	return v, nil
}
