package tune

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// confirm takes a finalist through all gates, as kernelgate check does, and keeps the results next to
// the log.
func (r *runner) confirm(ctx context.Context, name string, side runners.Side, a Attempt, progress runners.Progress) (Confirmed, error) {
	job, err := r.plan(ctx, name)
	if err != nil {
		return Confirmed{}, err
	}
	if side.Dir != r.job.Baseline.Dir { // it brings files
		job.Candidate.Dir, job.Candidate.Sources = side.Dir, side.Sources
	}
	if side.Manifest != nil { // the candidate has a different configuration
		job.Candidate.Manifest, job.Candidate.ManifestText = side.Manifest, side.ManifestText
	}
	job.Record = counted{a}
	if r.record != nil {
		job.Record = onlyCounts{r.record}
	}
	scratch := filepath.Join(r.scratch, fmt.Sprintf("confirm-%d-%d", a.CodeNumber, a.Number))
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return Confirmed{}, fmt.Errorf("making a scratch folder: %w", err)
	}
	measured, err := r.host.Measure(ctx, job, scratch, progress)
	if err != nil {
		return Confirmed{}, err
	}
	r.verdict = gates.JudgeForTerminal(job.Policy, job.PolicyFile, measured.Evidence)
	folder := fmt.Sprintf("verdict-%d", a.CodeNumber)
	if a.Number > 1 {
		folder += fmt.Sprintf("-attempt-%d", a.Number)
	}
	if err := os.MkdirAll(filepath.Join(r.folder, folder), 0o755); err != nil {
		return Confirmed{}, fmt.Errorf("writing the verdict: %w", err)
	}
	if err := check.WriteResults(filepath.Join(r.folder, folder), measured, job.PolicyText, r.verdict); err != nil {
		return Confirmed{}, err
	}
	return Confirmed{Outcome: r.verdict.Outcome, Reason: r.verdict.Reason, Summary: r.verdict.Summary, Folder: folder}, nil
}

// verdictOf is the last verdict. That of an earlier part of the search is judged again from its
// evidence.
func (r *runner) verdictOf(result *Result) *gates.Verdict {
	if r.verdict != nil || len(result.Confirmed) == 0 {
		return r.verdict
	}
	last := result.Confirmed[len(result.Confirmed)-1]
	e, err := check.ReadEvidence(filepath.Join(r.folder, last.Folder, "evidence.json"))
	if err != nil {
		return nil
	}
	return gates.JudgeForTerminal(r.job.Policy, r.job.PolicyFile, e)
}

// counted is a record that knows nothing but how often the gate was asked.
type counted struct{ a Attempt }

func (counted) Earlier(context.Context, runners.Code) (runners.Earlier, error) {
	return runners.Earlier{}, nil
}

func (c counted) Begin(context.Context, runners.Code) (runners.Attempt, error) {
	return runners.Attempt{Number: c.a.Number, CodeNumber: c.a.CodeNumber}, nil
}

// onlyCounts is a record that counts attempts but returns no earlier evidence: that evidence is about a
// different comparison.
type onlyCounts struct{ runners.Record }

func (onlyCounts) Earlier(context.Context, runners.Code) (runners.Earlier, error) {
	return runners.Earlier{}, nil
}
