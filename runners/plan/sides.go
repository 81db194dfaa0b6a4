package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners"
)

// sides lays out the folders to compile: the trusted files with the base's
// implementation, and the trusted files with the head's.
func (p *Plan) sides(ctx context.Context, job *runners.Job, rev string, isNew bool) error {
	room, err := p.room(job.Key)
	if err != nil {
		return err
	}
	dir := func(name string) string { return filepath.Join(room, name) }
	job.Trusted = dir("base")
	if err := p.opt.Repo.Export(ctx, rev, kernels.FolderOf(job.Key), job.Trusted, everything); err != nil {
		return err
	}
	job.Candidate = runners.Side{Dir: dir("head"), Variant: job.Manifest.DefaultVariant}
	if p.opt.Variant != "" {
		return p.variants(ctx, job)
	}
	if job.Removed {
		return nil
	}
	var baseline *runners.Side
	if !isNew {
		if baseline, err = p.before(ctx, job, rev, dir("baseline")); err != nil {
			return err
		}
	}
	if err := p.candidate(ctx, job, baseline); err != nil || len(job.Broken) > 0 {
		return err
	}
	if err := p.layOut(ctx, job, rev, p.opt.Head, job.Candidate); err != nil {
		return err
	}
	if job.Broken = absent(job); len(job.Broken) > 0 {
		return nil
	}
	if job.Broken, err = p.withheld(ctx, job); err != nil || len(job.Broken) > 0 {
		return err
	}
	switch {
	case p.opt.Versus == Self:
		same := job.Candidate
		job.Baseline, job.Noise = &same, true
		job.Notes = append(job.Notes, "The head is compared with itself: what is found is the noise of the machine.")
		return nil
	case isNew && p.opt.Versus == "":
		return nil
	case isNew:
		baseline = &runners.Side{Dir: job.Trusted, Variant: job.Manifest.DefaultVariant}
	}
	job.Baseline = baseline
	return p.otherBaseline(ctx, job, dir("baseline"))
}

func everything(string) bool { return true }

// layOut writes a side's folder. A side's own globs say which files it brings, but none of
// them replaces a file of the trusted revision that is no source there.
func (p *Plan) layOut(ctx context.Context, job *runners.Job, rev, sources string, s runners.Side) error {
	m, folder := job.Of(s), kernels.FolderOf(job.Key)
	if m.Root != "" {
		return p.elsewhere(ctx, sources, m, s.Dir)
	}
	err := p.opt.Repo.Export(ctx, rev, folder, s.Dir, func(rel string) bool { return !job.Manifest.IsSource(rel) || !m.IsSource(rel) })
	if err != nil {
		return err
	}
	err = p.opt.Repo.Export(ctx, sources, folder, s.Dir, func(rel string) bool {
		if !m.IsSource(rel) || job.Manifest.IsSource(rel) {
			return m.IsSource(rel)
		}
		_, err := os.Lstat(filepath.Join(job.Trusted, filepath.FromSlash(rel)))
		return errors.Is(err, fs.ErrNotExist)
	})
	if err != nil {
		return err
	}
	return p.elsewhere(ctx, sources, m, s.Dir)
}

// elsewhere lays the other folders of the repository that a side needs into its own, as
// they are at its revision.
func (p *Plan) elsewhere(ctx context.Context, rev string, m *kernels.Manifest, dir string) error {
	for _, folder := range m.Elsewhere() {
		to := filepath.Join(dir, kernels.RepositoryFolder, filepath.FromSlash(folder))
		if err := os.MkdirAll(dir, 0o755); err != nil { // it may hold nothing else
			return err
		}
		within, err := p.opt.Repo.Submodule(ctx, rev, folder)
		if err == nil && within != nil {
			err = p.opt.Repo.ExportSubmodule(ctx, *within, to)
		} else if err == nil {
			err = p.opt.Repo.Export(ctx, rev, folder, to, everything)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// before is the kernel as the head found it: of the trusted revision, or of the base
// where that is older.
func (p *Plan) before(ctx context.Context, job *runners.Job, rev, dir string) (*runners.Side, error) {
	s := &runners.Side{Dir: job.Trusted, Variant: job.Manifest.DefaultVariant}
	if rev == p.opt.Base {
		return s, p.elsewhere(ctx, rev, job.Manifest, s.Dir)
	}
	s.Dir = dir
	if err := p.adopt(ctx, job, p.opt.Base, s); err != nil {
		return nil, err
	}
	return s, p.layOut(ctx, job, rev, p.opt.Base, *s)
}

// adopt gives a side the implementation of a revision. One that does not fit what is asked
// now is as good as none: the side is built as the trusted manifest says.
func (p *Plan) adopt(ctx context.Context, job *runners.Job, rev string, s *runners.Side) error {
	text, err := p.own(ctx, rev, job)
	if err != nil || text == nil {
		return err
	}
	m, err := kernels.Join(kernels.FileOf(job.Key), []byte(job.ManifestText), text)
	if err != nil {
		job.Notes = append(job.Notes, fmt.Sprintf("The manifest of %.12s does not fit what is asked now: what is compared with is built as the base's says.", rev))
		return nil
	}
	s.Manifest, s.ManifestText, s.Variant = m, string(text), m.DefaultVariant
	return nil
}

// own is a revision's manifest; nil where it has none, or the trusted one.
func (p *Plan) own(ctx context.Context, rev string, job *runners.Job) ([]byte, error) {
	text, err := p.opt.Repo.Read(ctx, rev, kernels.FileOf(job.Key))
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(text) == job.ManifestText {
		return nil, nil
	}
	return text, err
}

// variants compares two ways to build the same files.
func (p *Plan) variants(ctx context.Context, job *runners.Job) error {
	for _, name := range []string{p.opt.BaselineVariant, p.opt.Variant} {
		if err := job.Manifest.Try(name); err != nil {
			return strict.Mistake{Err: err}
		}
	}
	job.Baseline = &runners.Side{Dir: job.Trusted, Variant: p.opt.BaselineVariant}
	job.Candidate = runners.Side{Dir: job.Trusted, Variant: p.opt.Variant}
	return p.elsewhere(ctx, p.opt.Base, job.Manifest, job.Trusted)
}

// otherBaseline honours somebody, or a policy, who compares with something else
// than the merge base.
func (p *Plan) otherBaseline(ctx context.Context, job *runners.Job, dir string) error {
	if p.opt.Versus != "" {
		rev, err := p.opt.Repo.Resolve(ctx, p.opt.Versus)
		if err != nil {
			return strict.Mistake{Err: err}
		}
		job.Notes = append(job.Notes, fmt.Sprintf("The baseline is %s (%.12s), as was asked.", p.opt.Versus, rev))
		return p.baselineAt(ctx, job, rev, dir)
	}
	gate := job.Rule().Gates.Performance
	if gate == nil {
		return nil
	}
	switch gate.Baseline.Kind {
	case "variant":
		if err := job.Of(*job.Baseline).Try(gate.Baseline.Name); err != nil {
			return strict.Mistakef("the policy's baseline: %w", err)
		}
		job.Baseline.Variant = gate.Baseline.Name
	case "ref", "tag":
		rev, err := p.opt.Repo.Resolve(ctx, gate.Baseline.Name)
		if err != nil {
			return strict.Mistakef("the policy's baseline: %w", err)
		}
		job.Notes = append(job.Notes, fmt.Sprintf("The baseline is %s (%.12s), as the policy says.", gate.Baseline, rev))
		return p.baselineAt(ctx, job, rev, dir)
	}
	return nil
}

// baselineAt takes the baseline from another revision as a whole, into a folder that
// nothing else was put into.
func (p *Plan) baselineAt(ctx context.Context, job *runners.Job, rev, dir string) error {
	job.Baseline = &runners.Side{Dir: dir + "-asked", Variant: job.Manifest.DefaultVariant}
	if err := p.adopt(ctx, job, rev, job.Baseline); err != nil {
		return err
	}
	if err := p.opt.Repo.Export(ctx, rev, kernels.FolderOf(job.Key), job.Baseline.Dir, everything); err != nil {
		return err
	}
	return p.elsewhere(ctx, rev, job.Of(*job.Baseline), job.Baseline.Dir)
}
