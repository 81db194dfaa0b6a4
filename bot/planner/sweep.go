package planner

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// Tip is the commit that a branch is at. A branch that is gone is ErrMoved.
func (p *Planner) Tip(ctx context.Context, repo, branch string) (string, error) {
	mirror, err := p.Mirrors.Fetch(ctx, repo)
	if err != nil {
		return "", fmt.Errorf("reading %s of %s: %w", branch, repo, err)
	}
	tip, err := mirror.Resolve(ctx, "refs/heads/"+branch)
	if err != nil {
		return "", fmt.Errorf("reading %s of %s (%w): %w", branch, repo, err, ErrMoved)
	}
	return tip, nil
}

// settleSweep finds the commits of a sweep or a watch. The rules are those of the default branch now. If the default branch no
// longer contains the commit of the last sweep, there is nothing to compare with: the head is compared with itself, as in the
// first sweep. A watch against the best state has no common base, either.
func (s *survey) settleSweep(ctx context.Context) (err error) {
	if s.trusted, err = s.repo.Resolve(ctx, s.facts.Head); err != nil {
		return fmt.Errorf("%.12s: %w", s.facts.Head, err)
	}
	s.base = s.trusted
	if since := s.facts.BaseSHA; since != "" {
		if base, err := s.repo.MergeBase(ctx, since, s.trusted); err == nil {
			s.base = base
		} else if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return s.begin()
}

// maxSwept bounds how many kernels one sweep or watch measures.
const maxSwept = 500

// swept is the kernels of the head that are to be measured, changed or not.
func (s *survey) swept(ctx context.Context) ([]string, error) {
	all, err := s.repo.Kernels(ctx, s.facts.Head)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(key string) bool { return !Swept(s.facts.Kernels, key) })
	if len(all) > maxSwept {
		return nil, checkout.Refused{Why: fmt.Sprintf("the %s has %d kernels, and at most %d are allowed (choose some of them with kernels in the bot's configuration)", s.id.Kind, len(all), maxSwept)}
	}
	return all, nil
}

// Swept tells whether a kernel is one of those that patterns choose, by its folder or its manifest; none choose all. As in a
// shell, * is anything within one part of a path.
func Swept(patterns []string, key string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
		return slices.ContainsFunc([]string{key, manifest.FolderOf(key), manifest.FileOf(key)}, func(name string) bool {
			ok, _ := path.Match(pattern, name) // the configuration was checked
			return ok
		})
	})
}
