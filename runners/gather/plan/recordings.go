package plan

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/host/recordings"
)

// recordings gets the recordings that the rule names, into a folder that no build reads. A new kernel has its manifest from
// the head, whose author may not choose what this host connects to.
func (p *Plan) recordings(ctx context.Context, job *runners.Job, rev string, isNew bool, dir string) error {
	asked := job.Recordings()
	if len(asked) == 0 {
		return nil
	}
	from := recordings.Source{Repo: p.opt.Repo, Rev: rev, Folder: manifest.FolderOf(job.Key), Fetcher: p.opt.Fetcher}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("making a folder for recordings: %w", err)
	}
	for _, r := range asked {
		if r.Remote() && isNew {
			return recordings.NotHere{Why: fmt.Sprintf("the recording %s is fetched from its address once its manifest is on the base branch (until then, put the file into the kernel's folder, or leave recorded out of the policy)", r.Name)}
		}
		if err := from.Get(ctx, r, filepath.Join(dir, runners.RecordingFile(r.Name))); err != nil {
			return err
		}
	}
	job.Recorded = dir
	return nil
}

// checkRecordings refuses a policy that names a recording that the kernel does not have.
func checkRecordings(job runners.Job) error {
	rule := job.Rule()
	gate := rule.Gates.Correctness
	if gate == nil {
		return nil
	}
	known := job.Manifest.OnRecord()
	for _, kind := range gate.Distributions {
		name, ok := kind.Recording()
		if !ok || slices.ContainsFunc(known, func(r distribution.Recording) bool { return r.Name == name }) {
			continue
		}
		has := "it has none"
		if len(known) > 0 {
			var names []string
			for _, r := range known {
				names = append(names, r.Name)
			}
			has = "it has " + strings.Join(names, ", ")
		}
		return usage.Errorf("%s: rule %s: gates.correctness.distributions: %s has no recording %q (%s; recorded means all that a kernel has)", job.PolicyFile, rule.Name, job.Manifest.Name, name, has)
	}
	return nil
}
