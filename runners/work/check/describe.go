package check

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// A Described is a kernel as the base has it, and what a change to it is asked.
type Described struct {
	runners.Job                   // its folders are gone
	Commit      string            // of the base
	Folder      string            // of the kernel
	Files       map[string]string // the files of its folder, by their names in it
	Shapes      []gates.Shape
	Device      gates.Device // of this host; without a name if the kernel cannot run here
	NoDevice    string       // why not
}

// KernelNames lists the kernels of the base by their folders.
func KernelNames(ctx context.Context, opt Options) ([]string, error) {
	c, err := open(ctx, opt)
	if err != nil {
		return nil, err
	}
	defer c.close()
	keys, err := c.repo.Kernels(ctx, c.tip)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, key := range keys {
		names = append(names, manifest.FolderOf(key))
	}
	return names, nil
}

// maxFile is the size up to which a file of a kernel is described.
const maxFile = 256 << 10

// DescribePlanned reads the one kernel of a plan, as a commit has it. It does not look for a device.
func DescribePlanned(ctx context.Context, repo *checkout.Repo, p *plan.Plan, commit string) (Described, error) {
	keys, err := p.Kernels(ctx)
	if err != nil {
		return Described{}, err
	}
	if len(keys) != 1 {
		return Described{}, usage.Errorf("name one kernel of the repository")
	}
	job, err := p.Job(ctx, keys[0])
	if err != nil {
		return Described{}, err
	}
	d := Described{Job: job, Commit: commit, Folder: manifest.FolderOf(keys[0]), Files: map[string]string{}}
	if d.Shapes, err = job.ShapesOnRecord(); err != nil {
		return Described{}, err
	}
	names, err := repo.Files(ctx, commit, d.Folder)
	if err != nil {
		return Described{}, err
	}
	for _, name := range names {
		rel := strings.TrimPrefix(name, d.Folder+"/")
		if text, err := repo.Read(ctx, commit, name); err == nil && len(text) <= maxFile && (job.Manifest.IsSource(rel) || rel == manifest.FileName) {
			d.Files[rel] = string(text)
		}
	}
	return d, nil
}

// Describe reads one kernel of the base, and looks for a device of this host that can run it.
func Describe(ctx context.Context, opt Options) (Described, error) {
	c, err := open(ctx, opt)
	if err != nil {
		return Described{}, err
	}
	defer c.close()
	d, err := DescribePlanned(ctx, c.repo, c.plan, c.tip)
	if err != nil {
		return d, err
	}
	job := d.Job
	ctx, end := context.WithCancel(ctx)
	defer end()
	backend, err := opt.Open(ctx, job, filepath.Join(filepath.Dir(job.Trusted), "device"))
	var setup *runners.SetupError
	switch {
	case err == nil:
		d.Device = backend.Device()
	case errors.As(err, &setup):
		d.NoDevice = setup.Error()
	default:
		d.NoDevice = fmt.Sprintf("the kernel cannot run on this host: %v", err)
	}
	return d, nil
}
