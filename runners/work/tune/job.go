package tune

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/work/arm"
)

// RunJob searches the space of a job's candidate. The incumbent is the candidate's own variant. Results go to
// folder, which must exist, and builds go to scratch. The record of the job counts the machine codes that the
// gate judges. RunJob cannot resume: a second search of the same job starts from the beginning.
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
		return nil, usage.Errorf("proposer: %q is not built in", asked.Proposer)
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

// withinCandidate returns the job that compares the candidate with itself. The candidate's manifest defines
// the space, and the candidate's variant is the incumbent.
func withinCandidate(job runners.Job) runners.Job {
	job.Manifest = job.Of(job.Candidate)
	if job.Candidate.ManifestText != "" {
		job.ManifestText = job.Candidate.ManifestText
	}
	incumbent := job.Candidate
	job.Baseline, job.Search, job.Record, job.Share = &incumbent, nil, nil, nil
	return job
}

// DefaultEpsilon: a race ends when every other arm is proven to be at most this much faster than the best.
const DefaultEpsilon = 0.01
