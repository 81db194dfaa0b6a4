package controller

import (
	"context"
	"errors"
	"fmt"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/work/search"
)

// finishedSearch stores the report of a tuning or a bisection. A search has no verdict: its evidence only
// says whether the search ended without a fault.
func (k *Controller) finishedSearch(ctx context.Context, s *change.State, run change.Run, token uint64, by string, evidence, log []byte, artifacts []string) error {
	found, blob, err := k.searchReport(ctx, run, token, evidence, artifacts)
	if own := (unavailable{}); errors.As(err, &own) {
		return own
	}
	result := change.Result{Rule: run.Rule, Files: artifacts}
	switch {
	case err != nil:
		result.Outcome, result.Reason, result.Line = gates.Error, gates.ReasonRunner, err.Error()
		if setup, ok := errors.AsType[setupFault](err); ok {
			result.Reason, result.Line = gates.ReasonSetup, setup.Error()
		}
	default:
		result.Outcome, result.Report, result.Device = gates.Defer, blob, found.Device
		if found.Found {
			result.Outcome = gates.Pass
		}
	}
	if len(log) > 0 {
		if result.Log, err = k.storeBytes(ctx, "log", log); err != nil {
			return err
		}
	}
	_, err = k.states.update(ctx, s.ID, func(now *change.State) (change.Event, error) {
		if _, err := k.activeRun(now, run.Job, token); err != nil {
			return nil, err
		}
		return change.Finished{Job: run.Job, Token: token, Runner: by, Result: result}, nil
	})
	if err == nil {
		k.forgetJob(run.Job)
		k.Log.Info("search", "change", s.ID.String(), "repo", s.Facts.Repo, "job", run.Job, "search", run.Search.Name(), "outcome", result.Outcome, "runner", by)
		fault := ""
		if result.Reason == gates.ReasonRunner {
			fault = result.Line
		}
		k.reportFault(ctx, by, s, run, fault)
	}
	k.enqueueChange(s.ID)
	return err
}

// setupFault is the error of a search that cannot run because of a mistake in the request or the setup. The
// runner is not to blame.
type setupFault struct{ error }

// searchReport reads the report among the artifacts of a search. If there is no report, the error says
// why. The error unavailable means that the report may be read later.
func (k *Controller) searchReport(ctx context.Context, run change.Run, token uint64, evidence []byte, artifacts []string) (*search.Report, string, error) {
	if evidence == nil {
		return nil, "", errors.New("its runners stopped responding")
	}
	e, err := gates.ParseEvidence("the runner's evidence", evidence)
	switch {
	case err != nil:
		return nil, "", err
	case e.Fault != "" && e.Setup:
		return nil, "", setupFault{errors.New(e.Fault)}
	case e.Fault != "":
		return nil, "", errors.New(e.Fault)
	}
	want := fleet.ArtifactBlob(run.Job, token, search.ReportFile)
	for _, blob := range artifacts {
		if blob != want {
			continue
		}
		found, err := k.storedReport(ctx, blob)
		if err == nil && string(found.Kind) != run.Search.Name() {
			err = fmt.Errorf("the runner sent the report of a %s, and was asked for a %s", found.Kind, run.Search.Name())
		}
		return found, blob, err
	}
	return nil, "", errors.New("the runner sent no report of the search")
}

func (k *Controller) storedReport(ctx context.Context, blob string) (*search.Report, error) {
	data, err := k.Journal.Artifacts.Read(ctx, blob)
	if err != nil {
		return nil, unavailable{fmt.Errorf("reading the report of a search: %w", err)}
	}
	return search.Parse(data)
}
