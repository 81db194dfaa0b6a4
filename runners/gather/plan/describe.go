package plan

import (
	"context"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
)

// A Described is a kernel as a commit has it, and what a change to it is asked.
type Described struct {
	runners.Job                   // its folders are gone
	Commit      string            // of the base
	Folder      string            // of the kernel
	Files       map[string]string // the files of its folder, by their names in it
	Shapes      []gates.Shape
}

// maxFile is the size up to which a file of a kernel is described.
const maxFile = 256 << 10

// Describe reads the one kernel of the plan, as a commit has it.
func (p *Plan) Describe(ctx context.Context, commit string) (Described, error) {
	key, err := p.Only(ctx)
	if err != nil {
		return Described{}, err
	}
	job, err := p.Job(ctx, key)
	if err != nil {
		return Described{}, err
	}
	d := Described{Job: job, Commit: commit, Folder: manifest.FolderOf(key), Files: map[string]string{}}
	if d.Shapes, err = job.ShapesOnRecord(); err != nil {
		return Described{}, err
	}
	names, err := p.opt.Repo.Files(ctx, commit, d.Folder)
	if err != nil {
		return Described{}, err
	}
	for _, name := range names {
		rel := strings.TrimPrefix(name, d.Folder+"/")
		if text, err := p.opt.Repo.Read(ctx, commit, name); err == nil && len(text) <= maxFile && (job.Manifest.IsSource(rel) || rel == manifest.FileName) {
			d.Files[rel] = string(text)
		}
	}
	return d, nil
}

// Only returns the one kernel of the plan.
func (p *Plan) Only(ctx context.Context) (key string, err error) {
	keys, err := p.Kernels(ctx)
	if err == nil && len(keys) != 1 {
		err = usage.Errorf("name one kernel of the repository")
	}
	if err != nil {
		return "", err
	}
	return keys[0], nil
}
