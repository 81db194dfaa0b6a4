package plan

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/shell"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
	"github.com/kernelgate/kernelgate/runners/host/folderhash"
	"github.com/kernelgate/kernelgate/runners/host/recordings"
)

// Job writes one kernel's files below the scratch folder and returns what a run needs to know about
// them.
func (p *Plan) Job(ctx context.Context, key string) (runners.Job, error) {
	job := runners.Job{Change: p.opt.Change, Key: key, Removed: slices.Contains(p.removed, key)}
	job.Change.Paths = p.PathsOf(key, job.Change.Paths)
	job.Provenance.Label = p.opt.Device
	file := manifest.FileOf(key)
	text, rev, isNew, err := p.manifest(ctx, file)
	if err != nil {
		return job, fmt.Errorf("reading the manifest: %w", err)
	}
	if isNew {
		job.Notes = append(job.Notes, "The kernel is new: it is judged by its own manifest, and it is timed without a baseline.")
	}
	if job.Manifest, err = manifest.Parse(file, text); err != nil {
		if isNew {
			return job, usage.Error{Err: err}
		}
		if text, err = p.unread(ctx, &job, file, err); err != nil {
			return job, err
		}
	}
	job.ManifestText = string(text)
	if err := p.policy(ctx, &job); err != nil {
		return job, err
	}
	if text == nil {
		return job, p.provenance(ctx, &job) // the change removes what nobody could read
	}
	if err := errors.Join(checkShapes(job), checkAbilities(job, isNew), checkRecordings(job)); err != nil {
		return job, err
	}
	err = p.sides(ctx, &job, rev, isNew)
	if missing, ok := errors.AsType[checkout.NotHere](err); ok {
		job.Unready, err = fmt.Sprintf("%s needs %v", file, missing), nil
	}
	if missing, ok := errors.AsType[recordings.NotHere](err); ok {
		job.Unready, err = fmt.Sprintf("%s: %v", file, missing), nil
	}
	if err == nil {
		err = p.pin(ctx, &job)
	}
	builds := !job.Removed && len(job.Broken) == 0 && job.Unready == ""
	if err == nil && builds {
		err = p.checkLimits(job)
	}
	if err == nil && builds {
		err = hashSources(&job)
	}
	if err != nil {
		return job, err
	}
	return job, p.provenance(ctx, &job)
}

// hashSources records a hash of each side's sources if its machine code depends on the problem
// size.
func hashSources(job *runners.Job) (err error) {
	for _, side := range []*runners.Side{job.Baseline, &job.Candidate} {
		if side == nil || !job.Of(*side).Specializes() {
			continue
		}
		dir := side.Dir
		if job.Of(*side).Root != "" {
			dir = filepath.Join(dir, manifest.RepositoryFolder) // the kernel's own folder has no sources
		}
		if side.Sources, err = folderhash.Sum(dir); err != nil {
			return fmt.Errorf("hashing the sources of %s: %w", job.Manifest.Name, err)
		}
	}
	return nil
}

// manifest finds the manifest that applies, and the revision that it comes from.
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

// room makes a separate folder for a kernel. Another kernel elsewhere may have the same name.
func (p *Plan) room(key string) (string, error) {
	for n := 1; ; n++ {
		name := path.Base(key)
		if n > 1 {
			name = fmt.Sprintf("%s-%d", name, n)
		}
		room := filepath.Join(p.opt.Scratch, name)
		if err := os.Mkdir(room, 0o755); err == nil || !errors.Is(err, fs.ErrExist) {
			return room, err
		}
	}
}

// provenance records where everything came from, and how to run it again.
func (p *Plan) provenance(ctx context.Context, job *runners.Job) error {
	at := &job.Provenance
	at.Time, at.Program, at.Host = p.opt.Started, p.opt.Version, p.opt.Host
	at.Manifest = fmt.Sprintf("%x", sha256.Sum256([]byte(job.ManifestText)))
	if own := job.Candidate.ManifestText; own != "" {
		at.Implementation = fmt.Sprintf("%x", sha256.Sum256([]byte(own)))
	}
	at.Repository = cmp.Or(p.opt.Repository, filepath.Base(p.opt.Repo.Dir()))
	var err error
	if at.Base, err = p.opt.Repo.Describe(ctx, p.opt.Base); err != nil {
		return err
	}
	if at.Head, err = p.opt.Repo.Describe(ctx, p.opt.Head); err != nil {
		return err
	}
	for _, v := range job.Of(job.Candidate).Variants {
		if v.Name == job.Candidate.Variant {
			at.Head.Lesson = v.Lesson
		}
	}
	words := []string{"kernelgate", "check"}
	for _, kind := range policy.ToolchainKinds() {
		if pin := p.opt.Before.Of(kind); pin != nil {
			words = append(words, "--toolchain", "old="+kind+"@"+pin.Version)
		}
		if pin := p.opt.After.Of(kind); pin != nil {
			words = append(words, "--toolchain", "new="+kind+"@"+pin.Version)
		}
	}
	if p.opt.Variant != "" {
		at.Base.Variant, at.Head.Variant = p.opt.BaselineVariant, p.opt.Variant
		words = append(words, "--baseline-variant", p.opt.BaselineVariant, "--variant", p.opt.Variant)
	} else if !p.byHand() {
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
	at.Command = commandLine(append(words, kernelWord(job.Key)))
	return nil
}

// kernelWord names a kernel for kernelgate check by its folder. If that looks like a flag, it uses
// the path.
func kernelWord(key string) string {
	if base := path.Base(key); !strings.HasPrefix(base, "-") {
		return base
	}
	if strings.HasPrefix(key, "-") {
		return "./" + key
	}
	return key
}

// commandLine quotes words for a shell, because labels and folders may have any name.
func commandLine(words []string) string {
	for i, w := range words {
		words[i] = shell.Quote(w)
	}
	return strings.Join(words, " ")
}
