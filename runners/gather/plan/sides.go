package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// sides writes the folders to compile: the trusted files with the base's implementation, and the
// trusted files with the head's.
func (p *Plan) sides(ctx context.Context, job *runners.Job, rev string, isNew bool) error {
	room, err := p.room(job.Key)
	if err != nil {
		return err
	}
	dir := func(name string) string { return filepath.Join(room, name) }
	job.Trusted = dir("base")
	if err := p.opt.Repo.Export(ctx, rev, manifest.FolderOf(job.Key), job.Trusted, unrecorded(job)); err != nil {
		return err
	}
	if err := replaceManifest(job); err != nil {
		return err
	}
	job.Candidate = runners.Side{Dir: dir("head"), Variant: job.Manifest.DefaultVariant}
	if job.Removed {
		return nil
	}
	if err := p.recordings(ctx, job, rev, isNew, dir("recorded")); err != nil {
		return err
	}
	if p.opt.Variant != "" {
		return p.variants(ctx, job)
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
	if err := p.layOut(ctx, job, rev); err != nil {
		return err
	}
	if job.Broken = absent(job); len(job.Broken) > 0 {
		return nil
	}
	if job.Candidate.Differs, err = p.differs(ctx, job, p.opt.Head, job.Candidate); err != nil {
		return err
	}
	switch {
	case p.opt.Versus == Self:
		same := job.Candidate
		job.Baseline, job.Noise = &same, true
		job.Notes = append(job.Notes, "The head is compared with itself: any difference is noise of the machine.")
		return nil
	case isNew && p.opt.Versus == "":
		return nil
	case isNew:
		baseline = &runners.Side{Dir: job.Trusted, Variant: job.Manifest.DefaultVariant}
	case baseline.Dir == job.Trusted:
		if baseline.Differs, err = p.differs(ctx, job, rev, *baseline); err != nil {
			return err
		}
	}
	job.Baseline = baseline
	return p.otherBaseline(ctx, job, dir("baseline"))
}

func everything(string) bool { return true }

// unrecorded keeps recordings out of the folders that builds read: a kernel could contain them.
func unrecorded(job *runners.Job) func(rel string) bool {
	return func(rel string) bool { return !job.Manifest.HoldsRecording(rel) }
}

// layOut writes the candidate's folder as a merge would have it: the trusted revision's files,
// replaced by the files that the change edits. The candidate's own globs say which files it
// supplies. But none of them replaces a file of the trusted revision that is not a source there.
func (p *Plan) layOut(ctx context.Context, job *runners.Job, rev string) error {
	s := job.Candidate
	m, folder := job.Of(s), manifest.FolderOf(job.Key)
	edits := p.edits(rev)
	brings := func(rel string) bool {
		if !edits(path.Join(folder, rel)) || !m.IsSource(rel) || job.Manifest.HoldsRecording(rel) {
			return false
		}
		if job.Manifest.IsSource(rel) {
			return true
		}
		_, err := os.Lstat(filepath.Join(job.Trusted, filepath.FromSlash(rel)))
		return errors.Is(err, fs.ErrNotExist)
	}
	if m.Root == "" {
		err := p.opt.Repo.Export(ctx, rev, folder, s.Dir, func(rel string) bool { return !brings(rel) && !job.Manifest.HoldsRecording(rel) })
		if err == nil {
			err = p.opt.Repo.Export(ctx, p.opt.Head, folder, s.Dir, brings)
		}
		if err != nil {
			return err
		}
	}
	if err := p.elsewhere(ctx, rev, job.Key, m, s.Dir, func(name string) bool { return !edits(name) }); err != nil {
		return err
	}
	return p.elsewhere(ctx, p.opt.Head, job.Key, m, s.Dir, edits)
}

// edits returns a function that reports which files of a merge come from the head: those that the
// change edits. If the trusted revision is the head, all files do.
func (p *Plan) edits(rev string) func(name string) bool {
	if rev == p.opt.Head {
		return everything
	}
	return func(name string) bool { return p.edited[name] }
}

// elsewhere writes the other folders of the repository that a side needs into the side's folder, as
// they are at a revision. keep selects files by their paths from the top.
func (p *Plan) elsewhere(ctx context.Context, rev, key string, m *manifest.Manifest, dir string, keep func(name string) bool) error {
	own := manifest.FolderOf(key)
	plain := keep
	keep = func(name string) bool {
		rel, within := strings.CutPrefix(name, own+"/")
		return plain(name) && !(within && m.HoldsRecording(rel))
	}
	for _, folder := range m.Elsewhere() {
		to := filepath.Join(dir, manifest.RepositoryFolder, filepath.FromSlash(folder))
		if err := os.MkdirAll(dir, 0o755); err != nil { // it may hold nothing else
			return err
		}
		within, err := p.opt.Repo.Submodule(ctx, rev, folder)
		if err == nil && within != nil {
			if keep(within.Path) {
				err = p.opt.Repo.ExportSubmodule(ctx, *within, to)
			}
		} else if err == nil {
			err = p.opt.Repo.Export(ctx, rev, folder, to, func(rel string) bool { return keep(path.Join(folder, rel)) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// before returns the kernel without the change: that of the trusted revision, into which the change
// will be merged. If the trusted revision is the head itself, two states of one branch are
// compared, and it is the base's.
func (p *Plan) before(ctx context.Context, job *runners.Job, rev, dir string) (*runners.Side, error) {
	s := &runners.Side{Dir: job.Trusted, Variant: job.Manifest.DefaultVariant}
	if rev != p.opt.Head || rev == p.opt.Base {
		if rev != p.opt.Base {
			job.Provenance.Baseline = rev
		}
		return s, p.elsewhere(ctx, rev, job.Key, job.Manifest, s.Dir, everything)
	}
	s.Dir = dir
	if err := p.adopt(ctx, job, p.opt.Base, job.Key, s); err != nil {
		return nil, err
	}
	m, folder := job.Of(*s), manifest.FolderOf(job.Key)
	if m.Root == "" {
		source := func(rel string) bool { return job.Manifest.IsSource(rel) && m.IsSource(rel) }
		err := p.opt.Repo.Export(ctx, rev, folder, s.Dir, func(rel string) bool { return !source(rel) && !job.Manifest.HoldsRecording(rel) })
		if err == nil {
			err = p.opt.Repo.Export(ctx, p.opt.Base, folder, s.Dir, source)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, p.elsewhere(ctx, p.opt.Base, job.Key, m, s.Dir, everything)
}

// adopt gives a side the implementation of a revision. If that does not fit today's problem it is
// ignored, and the side is built as the trusted manifest says.
func (p *Plan) adopt(ctx context.Context, job *runners.Job, rev, key string, s *runners.Side) error {
	text, err := p.own(ctx, rev, key, job)
	if err != nil || text == nil {
		return err
	}
	m, err := manifest.Join(manifest.FileOf(job.Key), []byte(job.ManifestText), text)
	if err != nil {
		job.Notes = append(job.Notes, fmt.Sprintf("The manifest of %.12s does not fit what is asked now: what is compared with is built as the base's says.", rev))
		return nil
	}
	s.Manifest, s.ManifestText, s.Variant = m, string(text), m.DefaultVariant
	return nil
}

// own returns a revision's manifest. It returns nil if there is none, or if it equals the trusted
// one.
func (p *Plan) own(ctx context.Context, rev, key string, job *runners.Job) ([]byte, error) {
	text, err := p.opt.Repo.Read(ctx, rev, manifest.FileOf(key))
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(text) == job.ManifestText {
		return nil, nil
	}
	return text, err
}

// variants sets up a comparison of two ways to build the same files.
func (p *Plan) variants(ctx context.Context, job *runners.Job) error {
	for _, name := range []string{p.opt.BaselineVariant, p.opt.Variant} {
		if err := job.Manifest.Try(name); err != nil {
			return usage.Error{Err: err}
		}
	}
	job.Baseline = &runners.Side{Dir: job.Trusted, Variant: p.opt.BaselineVariant}
	job.Candidate = runners.Side{Dir: job.Trusted, Variant: p.opt.Variant}
	return p.elsewhere(ctx, p.opt.Base, job.Key, job.Manifest, job.Trusted, everything)
}

// otherBaseline applies a baseline other than the base branch, which the caller or the policy asks
// for.
func (p *Plan) otherBaseline(ctx context.Context, job *runners.Job, dir string) error {
	if p.opt.Versus != "" {
		rev, err := p.opt.Repo.Resolve(ctx, p.opt.Versus)
		if _, unknown := errors.AsType[checkout.UnknownCommit](err); unknown {
			return usage.Error{Err: err}
		} else if err != nil {
			return err
		}
		job.Notes = append(job.Notes, fmt.Sprintf("The baseline is %s (%.12s), as was asked.", p.opt.Versus, rev))
		return p.baselineAt(ctx, job, rev, job.Key, dir)
	}
	gate := job.Rule().Gates.Performance
	if gate == nil {
		return nil
	}
	if rev := p.opt.Pinned[job.Key]; rev != "" {
		return p.baselineAt(ctx, job, rev, job.Key, dir)
	}
	if p.opt.Baseline != nil {
		if p.opt.Baseline.Kind == policy.BaselineBest {
			return p.best(ctx, job, dir)
		}
		return nil
	}
	switch gate.Baseline.Kind {
	case policy.BaselineBest:
		return p.best(ctx, job, dir)
	case policy.BaselineVariant:
		if err := job.Of(*job.Baseline).Try(gate.Baseline.Name); err != nil {
			return usage.Errorf("the policy's baseline: %w", err)
		}
		job.Baseline.Variant = gate.Baseline.Name
	case "ref", "tag":
		rev, err := p.opt.Repo.Resolve(ctx, gate.Baseline.Name)
		if _, unknown := errors.AsType[checkout.UnknownCommit](err); unknown {
			return usage.Errorf("the policy's baseline: %w", err)
		} else if err != nil {
			return err
		}
		job.Notes = append(job.Notes, fmt.Sprintf("The baseline is %s (%.12s), as the policy says.", gate.Baseline, rev))
		return p.baselineAt(ctx, job, rev, job.Key, dir)
	}
	return nil
}

// baselineAt takes the whole baseline from a different revision, into a new folder. The kernel may
// have had a different key at that revision.
func (p *Plan) baselineAt(ctx context.Context, job *runners.Job, rev, key, dir string) error {
	job.Baseline = &runners.Side{Dir: dir + "-asked", Variant: job.Manifest.DefaultVariant}
	job.Provenance.Baseline = rev
	if err := p.adopt(ctx, job, rev, key, job.Baseline); err != nil {
		return err
	}
	if err := p.opt.Repo.Export(ctx, rev, manifest.FolderOf(key), job.Baseline.Dir, unrecorded(job)); err != nil {
		return err
	}
	return p.elsewhere(ctx, rev, job.Key, job.Of(*job.Baseline), job.Baseline.Dir, everything)
}
