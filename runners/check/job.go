package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners"
)

// job gathers what a run needs from the two states.
func (c *checker) job(ctx context.Context, folder string) (runners.Job, string, error) {
	job := runners.Job{Change: c.opt.Change}
	manifestRev, isNew := c.base, false
	file := folder + "/kernel.yaml"
	text, err := c.repo.Read(ctx, c.base, file)
	if errors.Is(err, fs.ErrNotExist) && c.base != c.head {
		isNew, manifestRev = true, c.head
		job.Notes = append(job.Notes, "The kernel is new: it is judged by its own manifest, and there is nothing to compare its speed with.")
		text, err = c.repo.Read(ctx, c.head, file)
	}
	if err != nil {
		return job, "", fmt.Errorf("reading the manifest: %w", err)
	}
	if job.Manifest, err = kernels.Parse(file, text); err != nil {
		return job, "", BadInput{err}
	}
	c.manifest = string(text)
	policyFile, err := c.policy(ctx, &job)
	if err != nil {
		return job, "", err
	}
	if err := checkShapes(policyFile, &job); err != nil {
		return job, "", err
	}
	if !isNew && slices.Contains(c.changed, file) {
		job.Notes = append(job.Notes, "The change edits kernel.yaml: it is judged by the base's, and takes effect when it is merged.")
	}
	if err := c.sides(ctx, &job, folder, manifestRev, isNew); err != nil {
		return job, "", err
	}
	return job, policyFile, c.provenance(ctx, &job, folder, text)
}

// sides lays out the folders to compile: the base as it is, and the base with
// the head's sources over it.
func (c *checker) sides(ctx context.Context, job *runners.Job, folder, manifestRev string, isNew bool) error {
	m := job.Manifest
	dir := func(name string) string { return filepath.Join(c.scratch, path.Base(folder), name) }
	everything := func(string) bool { return true }
	job.Trusted = dir("base")
	if err := c.repo.Export(ctx, manifestRev, folder, job.Trusted, everything); err != nil {
		return err
	}
	job.Candidate = runners.Side{Dir: dir("head"), Variant: m.DefaultVariant}
	if c.opt.Variant != "" {
		return c.variants(job)
	}
	if err := c.repo.Export(ctx, manifestRev, folder, job.Candidate.Dir, func(rel string) bool { return !m.IsSource(rel) }); err != nil {
		return err
	}
	if err := c.repo.Export(ctx, c.head, folder, job.Candidate.Dir, m.IsSource); err != nil {
		return err
	}
	if isNew {
		return nil
	}
	job.Baseline = &runners.Side{Dir: job.Trusted, Variant: m.DefaultVariant}
	return c.otherBaseline(ctx, job, folder, dir("baseline"))
}

// variants compares two ways to build the same files.
func (c *checker) variants(job *runners.Job) error {
	for _, name := range []string{c.opt.BaselineVariant, c.opt.Variant} {
		if _, ok := job.Manifest.Variant(name); !ok {
			return badInput("%s has no variant %q (it has %s)", job.Manifest.Name, name, strings.Join(job.Manifest.VariantNames(), ", "))
		}
	}
	job.Baseline = &runners.Side{Dir: job.Trusted, Variant: c.opt.BaselineVariant}
	job.Candidate = runners.Side{Dir: job.Trusted, Variant: c.opt.Variant}
	return nil
}

// otherBaseline honours a policy that compares with something else than the
// merge base.
func (c *checker) otherBaseline(ctx context.Context, job *runners.Job, folder, dir string) error {
	gate := job.Rule().Gates.Performance
	if gate == nil {
		return nil
	}
	switch gate.Baseline.Kind {
	case "variant":
		if _, ok := job.Manifest.Variant(gate.Baseline.Name); !ok {
			return badInput("the policy's baseline is variant %q, which %s does not have", gate.Baseline.Name, job.Manifest.Name)
		}
		job.Baseline.Variant = gate.Baseline.Name
	case "ref", "tag":
		rev, err := c.repo.Resolve(ctx, gate.Baseline.Name)
		if err != nil {
			return badInput("the policy's baseline: %w", err)
		}
		if err := c.repo.Export(ctx, rev, folder, dir, func(string) bool { return true }); err != nil {
			return err
		}
		job.Baseline.Dir = dir
		job.Notes = append(job.Notes, fmt.Sprintf("The baseline is %s (%.12s), as the policy says.", gate.Baseline, rev))
	}
	return nil
}
