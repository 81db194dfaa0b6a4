package check

import (
	"context"
	"fmt"
	"path"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/shell"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// Next returns what to do after a check that found nothing to judge because the work tree equals
// the base, as after the first commit of a manifest. It returns "" in all other cases.
func Next(ctx context.Context, opt Options) string {
	c, err := open(ctx, opt)
	if err != nil {
		return ""
	}
	defer c.close()
	if c.tip == "" || len(c.plan.Changed()) > 0 {
		return ""
	}
	keys, err := c.repo.Kernels(ctx, opt.Head)
	if err != nil || len(keys) == 0 {
		return ""
	}
	name, shape := exampleOf(ctx, c.repo, opt.Head, keys[0])
	return fmt.Sprintf("Nothing differs from the base. Change a kernel on a branch and check that, or look at one case of a kernel: kernelgate check %s --shape %s", shell.Quote(name), shell.Quote(shape))
}

// exampleOf returns a kernel's shortest name, and one of its shapes.
func exampleOf(ctx context.Context, repo *checkout.Repo, rev, key string) (name, shape string) {
	name, shape = path.Base(key), "NAME"
	text, err := repo.Read(ctx, rev, manifest.FileOf(key))
	if err != nil {
		return name, shape
	}
	if m, err := manifest.Parse(manifest.FileOf(key), text); err == nil && len(m.Shapes) > 0 {
		name, shape = m.Name, m.Shapes[0].Name
	}
	return name, shape
}
