package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// A manifest with a mistake does not say which files its kernel is built from, so nobody can tell
// whether a change touches the kernel. "No kernel changed" would then be a guess. So every change
// is refused as long as a merge of it would leave a manifest, or a policy, that cannot be read. A
// change that edits the manifest is planned as a change of its kernel, see [Plan.Job].

// refuseUnreadable returns every mistake in the files that decide what is gated and that a merge
// would take from the trusted revision. It does not look if the caller names the kernels to check,
// because it then concludes nothing about the others.
func (p *Plan) refuseUnreadable(ctx context.Context) error {
	if p.chosen() {
		return nil
	}
	if err := p.readablePolicy(ctx); err != nil {
		return err
	}
	keys, err := p.opt.Repo.Kernels(ctx, p.opt.Trusted)
	if err != nil {
		return err
	}
	var files []string
	for _, key := range keys {
		if file := manifest.FileOf(key); !p.edited[file] {
			files = append(files, file)
		}
	}
	texts, err := p.texts(ctx, p.opt.Trusted, files)
	if err != nil {
		return err
	}
	var all strict.Problems
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return err // parsing many manifests takes long
		}
		err := errNotRegular(file)
		if text, ok := texts[file]; ok {
			err = p.opt.CheckManifest(file, text)
		}
		var found strict.Problems
		if errors.As(err, &found) {
			all = append(all, found...)
		} else if err != nil {
			return usage.Error{Err: err}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return usage.Error{Err: fmt.Errorf("%w\nThe base's manifest does not say which files the kernel is built from, so no change can be judged (fix it on the base branch first)", all)}
}

// chosen reports whether the caller names the kernels to check, or two ways to build them.
func (p *Plan) chosen() bool { return len(p.opt.Kernels) > 0 || p.opt.Variant != "" || p.byHand() }

func errNotRegular(file string) error {
	return strict.Problems{{File: file, Line: 1, Message: "it is a link or a submodule, and no regular file (put the file itself in its place)"}}
}

// readablePolicy reads the policy that applies, whether or not a kernel is judged by it.
func (p *Plan) readablePolicy(ctx context.Context) error {
	if p.opt.Policy != "" || p.opt.PolicyAt != "" {
		return nil
	}
	text, err := p.opt.Repo.Read(ctx, p.opt.Trusted, PolicyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return NoPolicy(ctx, p.opt.Repo, p.opt.Trusted)
	}
	if err != nil {
		return fmt.Errorf("reading the policy: %w", err)
	}
	if _, err := p.policies.read(PolicyFile, text); err != nil {
		return usage.Error{Err: err}
	}
	return nil
}

// newPolicy reads the policy that the change brings. Its mistakes concern no kernel, but a change
// that only brings mistakes is not harmless. A bot has somebody approve the policy instead.
func (p *Plan) newPolicy(ctx context.Context) error {
	if p.chosen() || p.opt.Repairs || !p.edited[PolicyFile] {
		return nil
	}
	text, err := p.opt.Repo.Read(ctx, p.opt.Head, PolicyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return NoPolicy(ctx, p.opt.Repo, p.opt.Head)
	}
	if err != nil {
		return fmt.Errorf("reading the head's policy: %w", err)
	}
	if _, err := p.policies.read(PolicyFile, text); err != nil {
		return usage.Error{Err: err}
	}
	return nil
}

// NoPolicy returns a mistake if a revision without a policy has something that was meant to be one:
// a link in the policy's place, or a file with a similar name.
func NoPolicy(ctx context.Context, repo *checkout.Repo, rev string) error {
	entries, err := repo.Entries(ctx, rev, path.Dir(PolicyFile))
	if err != nil {
		return fmt.Errorf("looking for a policy: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		switch {
		case name == PolicyFile:
			return usage.Error{Err: errNotRegular(name)}
		case normalized(name) == PolicyFile:
			return usage.Error{Err: strict.Problems{{File: name, Line: 1, Message: fmt.Sprintf("this file is not read: the policy is %s (rename it)", PolicyFile)}}}
		}
	}
	return nil
}

// unread plans a kernel whose manifest at the trusted revision has mistakes. If the change removes
// the manifest, there is nothing to build. If the caller has somebody approve it, a repaired
// manifest takes the place of the trusted one: both sides are built and judged by it. In every
// other case the mistakes are the result.
func (p *Plan) unread(ctx context.Context, job *runners.Job, file string, mistakes error) (text []byte, err error) {
	if job.Removed {
		job.Manifest = &manifest.Manifest{Name: path.Base(manifest.FolderOf(job.Key))}
		job.Notes = append(job.Notes, fmt.Sprintf("The base's manifest has mistakes, so the kernel is called by its folder: %v", mistakes))
		return nil, nil
	}
	repaired, err := p.repaired(ctx, file)
	if err != nil {
		return nil, err
	}
	if repaired == nil {
		return nil, usage.Error{Err: mistakes}
	}
	if !p.opt.Repairs {
		return nil, usage.Error{Err: fmt.Errorf("%w\nThe change repairs this, and the base's manifest holds until it is merged: nothing here can judge the change before that (the bot judges it by the repaired manifest, once somebody has approved that)", mistakes)}
	}
	if job.Manifest, err = manifest.Parse(file, repaired); err != nil {
		return nil, err
	}
	job.Notes = append(job.Notes, fmt.Sprintf("The change repairs the base's manifest. Both sides are built and judged by the repaired one, which somebody must approve. The mistakes were: %v", mistakes))
	return repaired, nil
}

// repaired returns the head's manifest if the change fixes the mistakes in that of the base; nil if
// it does not. If the base branch has changed the manifest since the head branched off, a merge may
// have neither text.
func (p *Plan) repaired(ctx context.Context, file string) ([]byte, error) {
	if !p.edited[file] {
		return nil, nil
	}
	var texts [3][]byte
	for i, rev := range []string{p.opt.Trusted, p.opt.Base, p.opt.Head} {
		text, err := p.opt.Repo.Read(ctx, rev, file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		texts[i] = text
	}
	if string(texts[0]) != string(texts[1]) {
		return nil, nil
	}
	if _, err := manifest.Parse(file, texts[2]); err != nil {
		return nil, nil
	}
	return texts[2], nil
}

// replaceManifest writes a repaired manifest into the folder of trusted files, in place of the one
// with mistakes: a runner parses it there.
func replaceManifest(job *runners.Job) error {
	file := filepath.Join(job.Trusted, path.Base(manifest.FileOf(job.Key)))
	if text, err := os.ReadFile(file); err == nil && string(text) == job.ManifestText || errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("reading the trusted manifest: %w", err)
	}
	if err := os.WriteFile(file, []byte(job.ManifestText), 0o644); err != nil {
		return fmt.Errorf("writing the repaired manifest: %w", err)
	}
	return nil
}
