package planner

import (
	"context"
	"fmt"

	"github.com/kernelgate/kernelgate/bot/highwater"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
)

// History knows what was measured of merges.
type History interface {
	Merges(ctx context.Context, repo int64, folder string) (highwater.History, error)
}

// faster is the merged states of a kernel that are faster than the merge base: by the geometric mean over the shapes that
// the rule times, on the device that the last merge was measured on for the same device of the policy. Which runner will take the
// job is not known yet.
func (s *survey) faster(ctx context.Context, job runners.Job) ([]plan.Faster, error) {
	history, err := s.planner.History.Merges(ctx, s.id.Repo, job.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the history of %s: %w", job.Key, err)
	}
	device, measured := history.DeviceOf(job.Provenance.Label)
	if !measured {
		return nil, nil
	}
	known, err := job.ShapesOnRecord()
	if err != nil {
		return nil, err
	}
	var shapes []highwater.Shape
	for _, name := range gates.TimedShapes(job.Rule(), &gates.Evidence{Shapes: known}) {
		for _, k := range known {
			if k.Name == name && k.Context == "" {
				shapes = append(shapes, highwater.Shape{Name: name, Dims: k.Dims})
			}
		}
	}
	var all []plan.Faster
	for _, c := range history.Ranked(s.base, s.facts.Base, device, shapes) {
		all = append(all, plan.Faster{Commit: c.Commit, Key: c.Folder, On: device.Name, Unbuildable: history.Unbuildable[highwater.OnBranch{Commit: c.Commit, Branch: s.facts.Base, Label: job.Provenance.Label}]})
	}
	return all, nil
}

// renames finds the kernels that the change moves or renames: a new one that solves the problem of one that is gone, or
// bears its name. Its history goes on.
func (s *survey) renames(gone, added []runners.Job) {
	for _, job := range added {
		for _, was := range gone {
			if was.Manifest.Name != job.Manifest.Name && !sameProblem(was.Manifest, job.Manifest) {
				continue
			}
			for i := range s.out.Kernels {
				if s.out.Kernels[i].Folder == job.Key {
					s.out.Kernels[i].Was = was.Key
				}
			}
			break
		}
	}
}

// sameProblem tells whether two manifests ask for the same under different names.
func sameProblem(was, is *manifest.Manifest) bool {
	renamed := *is
	renamed.Name = was.Name
	return len(manifest.Compare(was, &renamed)) == 0
}
