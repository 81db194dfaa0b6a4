package controller

import (
	"context"
	"errors"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/gates"
)

// Built accepts the result of a runner that only compiles. If no measurement could change the
// verdict, the bot judges now. Otherwise, and also if the build runner failed, the job goes to a
// runner that measures: it can compile the kernel, too.
func (k *Controller) Built(ctx context.Context, job string, token uint64, by fleet.Runner, b fleet.Build) (over bool, err error) {
	s, err := k.ofJob(ctx, job)
	if err != nil {
		return false, err
	}
	run, ok := s.Run(job)
	switch {
	case ok && run.Token == token && run.Phase == change.Done:
		return true, nil // the answer to the first delivery was lost
	case ok && run.Token == token && run.Phase == change.Queued && run.Compiled != nil:
		return false, nil
	}
	if _, err := k.activeRun(s, job, token); err != nil {
		return false, err
	}
	e, err := k.staticEvidence(ctx, s, run, b)
	if own := (unavailable{}); errors.As(err, &own) {
		return false, own
	}
	if err == nil && !b.Open {
		gather := func(*change.State, change.Run) (*gates.Evidence, error) { return e, nil }
		return true, k.finish(ctx, job, token, by.Name, []byte(b.Log), b.Artifacts, nil, gather)
	}
	compiled := change.Compiled{By: by.Name}
	fault := ""
	if err != nil {
		fault, compiled.Fault = err.Error(), change.BuildUnreadable
		if known := (buildFault{}); errors.As(err, &known) {
			compiled.Fault = known.kind
		}
	} else if compiled.Evidence, err = k.storeJSON(ctx, "evidence", e); err != nil {
		return false, err
	}
	if len(b.Log) > 0 {
		if compiled.Log, err = k.storeBytes(ctx, "log", []byte(b.Log)); err != nil {
			return false, err
		}
	}
	_, err = k.states.update(ctx, s.ID, func(now *change.State) (change.Event, error) {
		if _, err := k.activeRun(now, job, token); err != nil {
			return nil, err
		}
		return change.Built{Job: job, Token: token, Compiled: compiled}, nil
	})
	if err == nil {
		k.forgetJob(job)
		k.Log.Info("compiled", "change", s.ID.String(), "repo", s.Facts.Repo, "job", job, "runner", by.Name, "fault", fault)
		k.reportFault(ctx, by.Name, s, run, fault)
	}
	k.enqueueChange(s.ID)
	return false, err
}

// A buildFault is an error about what a runner that compiles has sent, with its kind for the journal.
type buildFault struct {
	kind change.BuildFault
	error
}

func (f buildFault) Unwrap() error { return f.error }

// staticEvidence returns the result of a build runner if the bot can judge it. The evidence must
// answer the job, must have nothing that only a measurement can show, and must give a verdict on
// the change: a fault of the setup may be a fault of this runner only.
func (k *Controller) staticEvidence(ctx context.Context, s *change.State, run change.Run, b fleet.Build) (*gates.Evidence, error) {
	if b.Fault != "" {
		return nil, buildFault{change.BuildLost, errors.New(b.Fault)}
	}
	e, err := gates.ParseEvidence("the runner's evidence", b.Evidence)
	if err != nil {
		return nil, err
	}
	if e.Fault != "" {
		return nil, buildFault{change.BuildRunner, errors.New(e.Fault)}
	}
	if e.Measured() {
		return nil, buildFault{change.BuildMeasured, errors.New("the runner compiles and measures nothing, and sent what only a measurement can tell")}
	}
	if b.Open {
		return e, nil
	}
	if err := k.matchesJob(ctx, run, 0, e); err != nil {
		return nil, buildFault{change.BuildOfOtherJob, err}
	}
	policy, err := s.Plan.ReadPolicy()
	if err != nil {
		return nil, unavailable{err}
	}
	if run.ExtraRun != nil {
		if policy, err = narrowed(s.Plan, run, e); err != nil {
			return nil, unavailable{err}
		}
	}
	if v := change.Judge(policy, s.Plan.PolicyFile, e, run.Rules); v.Outcome == gates.Error {
		return nil, buildFault{change.BuildUndecided, errors.New(v.Summary)}
	}
	return e, nil
}
