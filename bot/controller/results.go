package controller

import (
	"context"
	"errors"
	"fmt"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/bot/store/jobs"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/trace"
	"github.com/kernelgate/kernelgate/bot/verify"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/bundle"
)

// Started records that a runner has started a job, unless the job is no longer needed.
func (k *Controller) Started(ctx context.Context, job string, token uint64, by fleet.Runner) error {
	id, err := change.OfJob(job)
	if err != nil {
		return fmt.Errorf("%w: %w", jobs.ErrCancelled, err)
	}
	_, err = k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		run, err := k.activeRun(now, job, token)
		if err != nil {
			return nil, err
		}
		if run.Phase == change.Running && run.Token == token {
			return nil, nil
		}
		return change.Started{Job: job, Token: token, Runner: by.Name, Builds: by.Builds}, nil
	})
	k.enqueueChange(id)
	return err
}

// ofJob returns the change that a job belongs to.
func (k *Controller) ofJob(ctx context.Context, job string) (*change.State, error) {
	id, err := change.OfJob(job)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", jobs.ErrCancelled, err)
	}
	return k.states.load(ctx, id)
}

// activeRun returns the run of a job. It refuses a result for a superseded or cancelled run, or of
// an earlier lease.
func (k *Controller) activeRun(s *change.State, job string, token uint64) (change.Run, error) {
	run, ok := s.Run(job)
	switch {
	case !ok || run.Phase == change.Abandoned || s.Held() || !s.Facts.Open:
		return run, fmt.Errorf("job %s: %w", job, jobs.ErrCancelled)
	case run.Phase == change.Done || token < run.Token:
		return run, fmt.Errorf("job %s: %w", job, jobs.ErrLeaseLost)
	}
	return run, nil
}

// Finished judges the evidence of a runner. A runner never decides a verdict, and evidence that
// does not answer the job is the runner's fault.
func (k *Controller) Finished(ctx context.Context, job string, token uint64, by fleet.Runner, evidence, log []byte, artifacts []string) error {
	return k.finish(ctx, job, token, by.Name, log, artifacts, evidence, func(s *change.State, run change.Run) (*gates.Evidence, error) {
		e, err := gates.ParseEvidence("the runner's evidence", evidence)
		earlier := 0
		if err == nil {
			earlier, err = k.verifyAttempts(ctx, s, run, token, e)
		}
		if err == nil {
			err = k.matchesJob(ctx, run, earlier, e)
		}
		return e, err
	})
}

// Lost ends a job that has lost its runners, as their fault.
func (k *Controller) Lost(ctx context.Context, job string, token uint64, why string) error {
	return k.finish(ctx, job, token, "", nil, nil, nil, func(*change.State, change.Run) (*gates.Evidence, error) { return nil, errors.New(why) })
}

// finish judges the evidence that gather returns. An error of gather is the runner's fault. A search has
// no verdict: its evidence, in sent, only says whether the search ended without a fault.
func (k *Controller) finish(ctx context.Context, job string, token uint64, by string, log []byte, artifacts []string, sent []byte, gather evidenceSource) error {
	s, err := k.ofJob(ctx, job)
	if err != nil {
		return err
	}
	run, ok := s.Run(job)
	if ok && run.Phase == change.Done && run.Token == token {
		return nil // the answer to the first delivery was lost
	}
	if _, err := k.activeRun(s, job, token); err != nil {
		return err
	}
	if run.Search != nil {
		return k.finishedSearch(ctx, s, run, token, by, sent, log, artifacts)
	}
	var evidence *gates.Evidence
	came := k.Now()
	result, err := k.verdictOn(ctx, s, run, func(s *change.State, r change.Run) (*gates.Evidence, error) {
		e, err := gather(s, r)
		evidence = e
		return e, err
	})
	if err != nil {
		return err
	}
	if err := k.attempts.Record(ctx, s, run, token, *result); err != nil {
		return err
	}
	result.Files = artifacts
	if len(log) > 0 {
		if result.Log, err = k.storeBytes(ctx, "log", log); err != nil {
			return err
		}
	}
	_, err = k.states.update(ctx, s.ID, func(now *change.State) (change.Event, error) {
		if _, err := k.activeRun(now, job, token); err != nil {
			return nil, err
		}
		return change.Finished{Job: job, Token: token, Runner: by, Result: *result}, nil
	})
	if err == nil {
		k.forgetJob(job)
		k.Trace.Tell(headOf(s), trace.OfRun(run, evidence, came, k.Now(), *result)...)
		k.Log.Info("verdict", "change", s.ID.String(), "repo", s.Facts.Repo, "job", job, "outcome", result.Outcome, "reason", result.Reason, "runner", by)
		fault := ""
		if result.Outcome == gates.Error && result.Reason == gates.ReasonRunner {
			fault = result.Line
		}
		k.reportFault(ctx, by, s, run, fault)
	}
	k.enqueueChange(s.ID)
	return err
}

// reportFault reports a verdict to the component that watches the runners. An expired bundle is not
// the runner's fault: no runner could have fetched it.
func (k *Controller) reportFault(ctx context.Context, runner string, s *change.State, run change.Run, fault string) {
	if fault != "" {
		if _, err := k.jobOf(ctx, run); errors.Is(err, errExpired) {
			return
		}
	}
	k.Judged(ctx, runner, s.Facts.Repo+" "+run.Name, fault)
}

// evidenceSource returns the evidence for a verdict.
type evidenceSource func(*change.State, change.Run) (*gates.Evidence, error)

func (k *Controller) verdictOn(ctx context.Context, s *change.State, run change.Run, gather evidenceSource) (*change.Result, error) {
	policy, err := s.Plan.ReadPolicy()
	if err != nil {
		return nil, err
	}
	e, err := gather(s, run)
	if own := (unavailable{}); errors.As(err, &own) {
		return nil, own
	}
	if err != nil {
		e = s.FaultEvidence(run, err.Error())
	}
	if run.ExtraRun != nil {
		if policy, err = narrowed(s.Plan, run, e); err != nil {
			return nil, err
		}
	}
	of := subjectOf(s, s.Plan, run.Folder)
	of.extra = run.ExtraRun != nil
	return k.judge(ctx, of, policy, e, run.Rules)
}

// errExpired says that the job's bundle is no longer stored, because its result came too late.
var errExpired = errors.New("the job waited so long that its bundle has expired, which is not the runner's fault (comment /rebench to pack it again)")

// matchesJob refuses evidence that does not answer the job's bundle.
func (k *Controller) matchesJob(ctx context.Context, run change.Run, earlier int, e *gates.Evidence) error {
	job, err := k.jobOf(ctx, run)
	if err != nil {
		return err
	}
	return verify.Check(job, earlier, e)
}

// jobOf returns the job that its bundle describes.
func (k *Controller) jobOf(ctx context.Context, run change.Run) (runners.Job, error) {
	r, _, err := k.Journal.Bundles.Get(ctx, run.Bundle)
	if errors.Is(err, journal.ErrNotFound) && k.Now().Sub(run.Asked) >= journal.KeepBundles {
		return runners.Job{}, errExpired
	}
	if err != nil { // a bundle that is missing too early is a fault of the journal, and is requested again
		return runners.Job{}, unavailable{err}
	}
	defer r.Close()
	job, err := bundle.Peek(r)
	if err != nil {
		return runners.Job{}, unavailable{err}
	}
	return job, nil
}

// narrowed returns a copy of the policy that asks only for what an extra run was asked for.
func narrowed(p *change.Plan, run change.Run, e *gates.Evidence) (*policy.Policy, error) {
	policy, err := p.ReadPolicy()
	if err != nil {
		return nil, err
	}
	r := *run.ExtraRun
	if run.OnlyExplain {
		return policy.OnlyExplain(r.Shapes), nil
	}
	if r.Versus != "" && len(r.Shapes) == 0 {
		for _, s := range e.Shapes {
			r.Shapes = append(r.Shapes, s.Name)
		}
	}
	return policy.Narrow(r.Shapes, r.Seeds), nil
}
