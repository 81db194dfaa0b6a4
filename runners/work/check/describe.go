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

// Describe reads one kernel of the base.
func Describe(ctx context.Context, opt Options) (Described, error) {
	c, err := open(ctx, opt)
	if err != nil {
		return Described{}, err
	}
	defer c.close()
	keys, err := c.plan.Kernels(ctx)
	if err != nil {
		return Described{}, err
	}
	if len(keys) != 1 {
		return Described{}, usage.Errorf("name one kernel of the repository")
	}
	job, err := c.plan.Job(ctx, keys[0])
	if err != nil {
		return Described{}, err
	}
	d := Described{Job: job, Commit: c.tip, Folder: manifest.FolderOf(keys[0]), Files: map[string]string{}}
	if d.Shapes, err = job.ShapesOnRecord(); err != nil {
		return Described{}, err
	}
	names, err := c.repo.Files(ctx, c.tip, d.Folder)
	if err != nil {
		return Described{}, err
	}
	for _, name := range names {
		rel := strings.TrimPrefix(name, d.Folder+"/")
		if text, err := c.repo.Read(ctx, c.tip, name); err == nil && len(text) <= maxFile && (job.Manifest.IsSource(rel) || rel == manifest.FileName) {
			d.Files[rel] = string(text)
		}
	}
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
