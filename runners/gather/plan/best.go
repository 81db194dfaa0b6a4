package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// A Faster is a merged state of a kernel that is faster than the state that the change started
// from.
type Faster struct {
	Commit string
	Key    string // the kernel's key at that time, see manifest.KeyOf
	On     string // the device on which this was measured
	// Unbuildable means that the state did not build as a baseline before.
	Unbuildable bool
}

// maxFaster bounds how many states are examined: each costs a call of git.
const maxFaster = 10

// best makes the fastest merged state of the kernel the baseline. If no such state is known, or
// none can be measured any more, the base branch stays the baseline: a change must not wait for a
// state that nobody can restore.
func (p *Plan) best(ctx context.Context, job *runners.Job, dir string) error {
	note := func(format string, args ...any) {
		job.Notes = append(job.Notes, fmt.Sprintf(format, args...))
	}
	asks := "The policy compares"
	if p.opt.Baseline != nil {
		asks = "The run compares"
	}
	if p.opt.Faster == nil {
		note("%s with the kernel's best. The history of merges is not known here, so the baseline is the base branch.", asks)
		return nil
	}
	all, err := p.opt.Faster(ctx, *job)
	if err != nil {
		return err
	}
	var left []string
	for _, f := range all[:min(len(all), maxFaster)] {
		rev, why, err := p.usable(ctx, job, f)
		if err != nil {
			return err
		}
		if why != "" {
			left = append(left, fmt.Sprintf("%.12s (%s)", f.Commit, why))
			continue
		}
		said := ", as the policy says"
		if p.opt.Baseline != nil {
			said = ""
		}
		note("The baseline is the kernel's best, %.12s%s. It was found on %s.", rev, said, f.On)
		p.tellLeft(job, left)
		return p.baselineAt(ctx, job, rev, f.Key, dir)
	}
	if len(all) == 0 {
		note("%s with the kernel's best. No merged state is known to be faster than the base branch, which is the baseline.", asks)
	} else {
		note("%s with the kernel's best. No faster state can be measured, so the baseline is the base branch.", asks)
	}
	p.tellLeft(job, left)
	return nil
}

// tellLeft names the faster states that could not be the baseline.
func (p *Plan) tellLeft(job *runners.Job, left []string) {
	if len(left) > 0 {
		job.Notes = append(job.Notes, "Faster states of the kernel that cannot be the baseline: "+strings.Join(left, ", ")+".")
	}
}

// usable reports whether a state may be, and can be, measured today; why is the reason if not. A
// fault of git is an error: it must not make a slower state the baseline.
func (p *Plan) usable(ctx context.Context, job *runners.Job, f Faster) (rev, why string, err error) {
	if f.Unbuildable {
		return "", "it did not build", nil
	}
	rev, err = p.opt.Repo.Resolve(ctx, f.Commit)
	if _, unknown := errors.AsType[checkout.UnknownCommit](err); unknown {
		return "", "the repository does not have it any more", nil
	} else if err != nil {
		return "", "", err
	}
	ours, err := p.opt.Repo.Reached(ctx, rev)
	if err != nil {
		return "", "", err
	}
	if !ours {
		return "", "no branch and no tag leads to it any more", nil
	}
	text, err := p.opt.Repo.Read(ctx, rev, manifest.FileOf(f.Key))
	if _, refused := errors.AsType[checkout.Refused](err); refused || errors.Is(err, fs.ErrNotExist) {
		return "", "it has no manifest in " + manifest.FolderOf(f.Key), nil
	} else if err != nil {
		return "", "", err
	}
	then, err := manifest.Parse(manifest.FileOf(job.Key), text)
	if err == nil {
		_, err = manifest.Join(manifest.FileOf(job.Key), []byte(job.ManifestText), text)
	}
	if err != nil {
		return "", "its manifest does not fit what is asked now", nil
	}
	called := func(d compare.Difference) bool { return d.Path == "mode" || strings.HasPrefix(d.Path, "arguments") }
	if slices.ContainsFunc(manifest.Compare(then, job.Manifest), called) {
		return "", "it takes other arguments than today", nil
	}
	return rev, "", nil
}
