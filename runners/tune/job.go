package tune

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/arm"
)

// RunJob searches the space of a job's candidate, whose own variant is the incumbent. It keeps
// everything in folder, which exists; builds go to scratch. The job's record counts what the gate
// judges. There is nothing to resume: another search of the same job starts from the beginning.
func RunJob(ctx context.Context, host arm.Host, job runners.Job, folder, scratch string, progress runners.Progress) (*Session, error) {
	asked := job.Search.Tune
	r := &runner{
		opt: Options{
			Kernel: job.Manifest.Name, Baseline: job.Candidate.Variant, Variants: asked.Variants, Shapes: asked.Shapes,
			Proposer: asked.Proposer, Candidates: asked.Candidates, Budget: time.Duration(asked.Seconds * float64(time.Second)),
			Epsilon: DefaultEpsilon, Results: folder, Retry: true, Now: time.Now,
		},
		key: job.Key, job: withinCandidate(job), scratch: scratch, results: folder, host: host, record: job.Record,
	}
	if known := Proposers(); !slices.Contains(known, asked.Proposer) {
		return nil, strict.Mistakef("proposer: %q is not built in", asked.Proposer)
	}
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return nil, fmt.Errorf("making a scratch folder: %w", err)
	}
	defer r.close()
	return r.run(ctx, progress, func(folder string) {
		if job.Share != nil {
			job.Share(filepath.Join(folder, LogFile))
		}
	})
}

// withinCandidate returns the job that compares the candidate with itself: its manifest has the space, and
// its variant is the incumbent.
func withinCandidate(job runners.Job) runners.Job {
	job.Manifest = job.Of(job.Candidate)
	if job.Candidate.ManifestText != "" {
		job.ManifestText = job.Candidate.ManifestText
	}
	incumbent := job.Candidate
	job.Baseline, job.Search, job.Record, job.Share = &incumbent, nil, nil, nil
	return job
}

// DefaultEpsilon is how near to the best the rest of a race must be for it to end.
const DefaultEpsilon = 0.01
