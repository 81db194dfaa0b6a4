package plan

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners"
)

// Job lays out one kernel's files below the scratch folder and says what a run
// needs to know of them.
func (p *Plan) Job(ctx context.Context, folder string) (runners.Job, error) {
	job := runners.Job{Change: p.opt.Change, Folder: folder, Removed: slices.Contains(p.removed, folder)}
	file := folder + "/kernel.yaml"
	text, rev, isNew, err := p.manifest(ctx, file)
	if err != nil {
		return job, fmt.Errorf("reading the manifest: %w", err)
	}
	if isNew {
		job.Notes = append(job.Notes, "The kernel is new: it is judged by its own manifest, and there is nothing to compare its speed with.")
	}
	if job.Manifest, err = kernels.Parse(file, text); err != nil {
		return job, strict.Mistake{Err: err}
	}
	job.ManifestText = string(text)
	if err := p.policy(ctx, &job); err != nil {
		return job, err
	}
	if err := checkShapes(job); err != nil {
		return job, err
	}
	if !isNew && !job.Removed && slices.Contains(p.changed, file) {
		job.Notes = append(job.Notes, "The change edits kernel.yaml: it is judged by the base's, and takes effect when it is merged.")
	}
	if err := p.sides(ctx, &job, rev, isNew); err != nil {
		return job, err
	}
	return job, p.provenance(ctx, &job)
}

// manifest finds the kernel.yaml that holds, and where it comes from.
func (p *Plan) manifest(ctx context.Context, file string) (text []byte, rev string, isNew bool, err error) {
	for _, rev := range []string{p.opt.Trusted, p.opt.Base} {
		text, err = p.opt.Repo.Read(ctx, rev, file)
		if !errors.Is(err, fs.ErrNotExist) {
			return text, rev, false, err
		}
	}
	text, err = p.opt.Repo.Read(ctx, p.opt.Head, file)
	return text, p.opt.Head, true, err
}

// sides lays out the folders to compile: the trusted files with the base's
// sources, and the trusted files with the head's.
func (p *Plan) sides(ctx context.Context, job *runners.Job, rev string, isNew bool) error {
	m := job.Manifest
	room, err := p.room(job.Folder)
	if err != nil {
		return err
	}
	dir := func(name string) string { return filepath.Join(room, name) }
	everything := func(string) bool { return true }
	job.Trusted = dir("base")
	if err := p.opt.Repo.Export(ctx, rev, job.Folder, job.Trusted, everything); err != nil {
		return err
	}
	job.Candidate = runners.Side{Dir: dir("head"), Variant: m.DefaultVariant}
	if p.opt.Variant != "" {
		return p.variants(job)
	}
	with := func(sources, into string) error {
		if err := p.opt.Repo.Export(ctx, rev, job.Folder, into, func(rel string) bool { return !m.IsSource(rel) }); err != nil {
			return err
		}
		return p.opt.Repo.Export(ctx, sources, job.Folder, into, m.IsSource)
	}
	if err := with(p.opt.Head, job.Candidate.Dir); err != nil {
		return err
	}
	if p.opt.Versus == Self {
		job.Baseline, job.Noise = &runners.Side{Dir: job.Candidate.Dir, Variant: m.DefaultVariant}, true
		job.Notes = append(job.Notes, "The head is compared with itself: what is found is the noise of the machine.")
		return nil
	}
	if isNew && p.opt.Versus == "" {
		return nil
	}
	job.Baseline = &runners.Side{Dir: job.Trusted, Variant: m.DefaultVariant}
	if rev != p.opt.Base && !isNew {
		job.Baseline.Dir = dir("baseline")
		if err := with(p.opt.Base, job.Baseline.Dir); err != nil {
			return err
		}
	}
	return p.otherBaseline(ctx, job, dir("baseline"))
}

// room makes a folder for a kernel of its own: another one elsewhere may have the same
// name.
func (p *Plan) room(folder string) (string, error) {
	for n := 1; ; n++ {
		name := path.Base(folder)
		if n > 1 {
			name = fmt.Sprintf("%s-%d", name, n)
		}
		room := filepath.Join(p.opt.Scratch, name)
		if err := os.Mkdir(room, 0o755); err == nil || !errors.Is(err, fs.ErrExist) {
			return room, err
		}
	}
}

// variants compares two ways to build the same files.
func (p *Plan) variants(job *runners.Job) error {
	for _, name := range []string{p.opt.BaselineVariant, p.opt.Variant} {
		if err := job.Manifest.Try(name); err != nil {
			return strict.Mistake{Err: err}
		}
	}
	job.Baseline = &runners.Side{Dir: job.Trusted, Variant: p.opt.BaselineVariant}
	job.Candidate = runners.Side{Dir: job.Trusted, Variant: p.opt.Variant}
	return nil
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
		job.Baseline.Dir = dir
		return p.opt.Repo.Export(ctx, rev, job.Folder, dir, func(string) bool { return true })
	}
	gate := job.Rule().Gates.Performance
	if gate == nil {
		return nil
	}
	switch gate.Baseline.Kind {
	case "variant":
		if err := job.Manifest.Try(gate.Baseline.Name); err != nil {
			return strict.Mistakef("the policy's baseline: %w", err)
		}
		job.Baseline.Variant = gate.Baseline.Name
	case "ref", "tag":
		rev, err := p.opt.Repo.Resolve(ctx, gate.Baseline.Name)
		if err != nil {
			return strict.Mistakef("the policy's baseline: %w", err)
		}
		if err := p.opt.Repo.Export(ctx, rev, job.Folder, dir, func(string) bool { return true }); err != nil {
			return err
		}
		job.Baseline.Dir = dir
		job.Notes = append(job.Notes, fmt.Sprintf("The baseline is %s (%.12s), as the policy says.", gate.Baseline, rev))
	}
	return nil
}

// provenance records where everything came from, and how to run it again.
func (p *Plan) provenance(ctx context.Context, job *runners.Job) error {
	at := &job.Provenance
	sum := sha256.Sum256([]byte(job.ManifestText))
	at.Time, at.Program, at.Host, at.Manifest = p.opt.Started, p.opt.Version, p.opt.Host, hex.EncodeToString(sum[:])
	at.Repository = p.opt.Repository
	if at.Repository == "" {
		at.Repository = filepath.Base(p.opt.Repo.Dir())
	}
	var err error
	if at.Base, err = p.opt.Repo.Describe(ctx, p.opt.Base); err != nil {
		return strict.Mistake{Err: err}
	}
	if at.Head, err = p.opt.Repo.Describe(ctx, p.opt.Head); err != nil {
		return strict.Mistake{Err: err}
	}
	words := []string{"kernelgate", "check"}
	if p.opt.Variant != "" {
		at.Base.Variant, at.Head.Variant = p.opt.BaselineVariant, p.opt.Variant
		words = append(words, "--baseline-variant", p.opt.BaselineVariant, "--variant", p.opt.Variant)
	} else {
		words = append(words, "--base", at.Base.SHA)
		if !at.Head.Dirty {
			words = append(words, "--head", at.Head.SHA)
		}
	}
	if p.opt.Policy != "" {
		words = append(words, "--policy", p.opt.Policy)
	}
	for _, l := range job.Change.Labels {
		words = append(words, "--label", l)
	}
	at.Command = strings.Join(append(words, path.Base(job.Folder)), " ")
	return nil
}
