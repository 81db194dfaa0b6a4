package plan

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// pins holds the compilers of both sides. The trusted revision's policy decides. A changed pin is
// the only part of the head's policy that takes effect before the merge: it applies to the
// candidate, so that every kernel is gated with the compiler that will build it. A pin names a
// version, and the runner must have it.
type pins struct{ before, after policy.Toolchains }

// byHand reports whether the caller wants to compare two compilers on one state.
func (p *Plan) byHand() bool {
	return p.opt.Before != policy.Toolchains{} || p.opt.After != policy.Toolchains{}
}

// toolchains finds the pins, once.
func (p *Plan) toolchains(ctx context.Context) (pins, error) {
	if p.pins != nil {
		return *p.pins, nil
	}
	trusted, err := p.pinned(ctx, cmp.Or(p.opt.PolicyAt, p.opt.Trusted))
	if err != nil {
		return pins{}, err
	}
	var found pins
	if trusted != nil {
		found = pins{*trusted, *trusted}
	}
	if p.opt.Policy == "" && p.opt.PolicyAt == "" && slices.Contains(p.changed, PolicyFile) {
		base, err := p.pinned(ctx, p.opt.Base)
		if err != nil {
			return pins{}, err
		}
		head, err := p.pinned(ctx, p.opt.Head)
		if err != nil {
			return pins{}, err
		}
		// A pin that the base branch has moved since the head branched off is not the change's
		// doing.
		for _, kind := range policy.ToolchainKinds() {
			if base != nil && head != nil && !base.Of(kind).Equal(head.Of(kind)) {
				found.after = found.after.With(kind, head.Of(kind))
			}
		}
	}
	for _, kind := range policy.ToolchainKinds() {
		if pin := p.opt.Before.Of(kind); pin != nil {
			found.before = found.before.With(kind, pin)
		}
		if pin := p.opt.After.Of(kind); pin != nil {
			found.after = found.after.With(kind, pin)
		}
	}
	p.pins = &found
	return found, nil
}

// pinned returns the pins of a revision's policy. It returns nil if that policy cannot be read,
// which is reported where the policy applies.
func (p *Plan) pinned(ctx context.Context, rev string) (*policy.Toolchains, error) {
	file, text := PolicyFile, []byte(nil)
	var err error
	if p.opt.Policy != "" {
		file, text, err = p.namedPolicy()
	} else {
		text, err = p.opt.Repo.Read(ctx, rev, PolicyFile)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &policy.Toolchains{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the policy: %w", err)
	}
	// A backslash counts, because an escape may spell any word.
	if !bytes.Contains(text, []byte("toolchains")) && !bytes.Contains(text, []byte(`\`)) {
		return &policy.Toolchains{}, nil
	}
	read, err := p.policies.read(file, text)
	if err != nil {
		return nil, nil
	}
	return &read.Toolchains, nil
}

// recompiled finds the kernels whose compiler the change moves.
func (p *Plan) recompiled(ctx context.Context, keys []string) error {
	found, err := p.toolchains(ctx)
	if err != nil {
		return err
	}
	p.moved = map[string]bool{}
	kinds := found.before.Moved(found.after)
	if len(kinds) == 0 {
		return nil
	}
	manifests, err := p.manifests(ctx, p.opt.Head, keys)
	if err != nil {
		return err
	}
	for key, text := range manifests {
		if err := ctx.Err(); err != nil {
			return err // parsing many manifests takes long
		}
		m, err := manifest.Parse(manifest.FileOf(key), text)
		p.moved[key] = err == nil && slices.Contains(kinds, runners.ToolchainOf(m))
	}
	return nil
}

// pin gives the sides their compilers, and adds a note if one moves.
func (p *Plan) pin(ctx context.Context, job *runners.Job) error {
	found, err := p.toolchains(ctx)
	if err != nil {
		return err
	}
	job.Candidate.Toolchains = found.after
	if job.Baseline == nil {
		return nil
	}
	if job.Baseline.Toolchains = found.before; job.Noise {
		job.Baseline.Toolchains = found.after
		return nil
	}
	kind := runners.ToolchainOf(job.Of(job.Candidate))
	if slices.Contains(found.before.Moved(found.after), kind) {
		job.Notes = append(job.Notes, fmt.Sprintf("The baseline is built with %s %s and the candidate with %s: the compiler is under the gate.", kind, found.before.Of(kind), found.after.Of(kind)))
	}
	return nil
}
