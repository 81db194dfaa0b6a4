package planner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/ident"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// A Branch is a branch of a repository that drafts are compared with.
type Branch struct{ Repo, Name string }

// A Draft is an implementation that no change brings: new content of files, or a commit. Its author is a
// stranger.
type Draft struct {
	Kernel string            // by name or folder
	Files  map[string]string // by their names in the kernel's folder
	Ref    string            // a commit, branch or tag instead
	Part   runners.Part
}

// A Drafted is a draft that was packed for a runner.
type Drafted struct {
	Head   string
	Base   string // the tip
	Bundle string
	Labels []string // of the runners that may measure it, most wanted first
	Job    runners.Job
	// Decided is evidence about a draft that no runner needs to see.
	Decided *gates.Evidence
}

// Kernels lists the kernels at the tip of a branch, by folder.
func (p *Planner) Kernels(ctx context.Context, b Branch) (names []string, err error) {
	err = p.atTip(ctx, b, func(ctx context.Context, s *survey) error {
		keys, err := s.repo.Kernels(ctx, s.trusted)
		for _, key := range keys {
			names = append(names, manifest.FolderOf(key))
		}
		return err
	})
	return names, err
}

// Describe reads a kernel at the tip of a branch, and what its policy asks of a change to it.
func (p *Planner) Describe(ctx context.Context, b Branch, kernel string) (d plan.Described, err error) {
	err = p.atTip(ctx, b, func(ctx context.Context, s *survey) error {
		s.facts.Head = s.trusted
		o, err := s.draftOptions(ctx, kernel)
		if err != nil {
			return err
		}
		found, err := plan.New(ctx, o)
		if err == nil {
			d, err = found.Describe(ctx, s.trusted)
		}
		return err
	})
	return d, err
}

// Draft packs a draft for a runner. Problem and policy are those of the tip, and so is the baseline: whoever
// names an old commit is not compared with its older baseline. A policy that keeps forks off the runners keeps
// drafts off, too.
func (p *Planner) Draft(ctx context.Context, b Branch, d Draft) (out Drafted, err error) {
	err = p.atTip(ctx, b, func(ctx context.Context, s *survey) error {
		if err := s.draftHead(ctx, d); err != nil {
			return err
		}
		o, err := s.draftOptions(ctx, d.Kernel)
		if err != nil {
			return err
		}
		if change.NeverRuns(s.out.Forks) {
			return usage.Errorf("the policy of %s does not let code from forks run, and a submission is treated like one (forks: {run: never} in %s)", b.Repo, plan.PolicyFile)
		}
		found, err := plan.New(ctx, o)
		if err != nil {
			return err
		}
		key, err := found.Only(ctx)
		if err != nil {
			return err
		}
		job, _, err := s.job(ctx, found, key)
		if err != nil {
			return err
		}
		wanted := labels(job)
		if device := job.Policy.Devices.First(); device != "" && !s.unrunnable(job) { // a draft has one verdict, and the pull request that it leads to one for each device
			wanted = []string{device}
			if job, err = s.jobOn(ctx, found, job, device); err != nil {
				return err
			}
		}
		if job.Removed || job.Baseline == nil && len(job.Broken) == 0 {
			return usage.Errorf("%s is not at both %s and %.12s (name a commit that has it in ref)", d.Kernel, b.Name, s.facts.Head)
		}
		if err := job.Ask(d.Part); err != nil {
			return err
		}
		out = Drafted{Head: s.facts.Head, Base: s.trusted, Labels: wanted, Job: job}
		switch {
		case len(job.Broken) > 0:
			out.Decided = job.BrokenEvidence()
		case job.Unready != "":
			out.Decided = job.UnreadyEvidence()
		default:
			out.Bundle, err = p.pack(ctx, job)
		}
		return err
	})
	return out, err
}

// atTip looks at the tip of a branch.
func (p *Planner) atTip(ctx context.Context, b Branch, look func(context.Context, *survey) error) error {
	s := p.survey(change.ID{Kind: change.Pull}, change.Facts{Repo: b.Repo, Base: b.Name})
	defer s.close()
	var err error
	if s.repo, err = p.Mirrors.Fetch(ctx, b.Repo); err == nil {
		err = p.within(ctx, func(ctx context.Context) (err error) {
			if s.trusted, err = s.repo.Resolve(ctx, "refs/heads/"+b.Name); err != nil {
				return goneIfUnknown(err)
			}
			s.base = s.trusted
			if err := s.begin(); err != nil {
				return err
			}
			return look(ctx, s)
		})
	}
	var refused checkout.Refused
	if errors.As(err, &refused) {
		return usage.Error{Err: refused}
	}
	if err != nil {
		return fmt.Errorf("reading %s of %s: %w", b.Name, b.Repo, err)
	}
	return nil
}

// draftOptions are those of a change that nobody approves.
func (s *survey) draftOptions(ctx context.Context, kernel string) (plan.Options, error) {
	at, err := s.policy(ctx)
	switch {
	case err != nil:
		return plan.Options{}, err
	case len(s.out.Problems) > 0:
		return plan.Options{}, usage.Errorf("%s: %s (fix it on the default branch)", s.out.Problems[0].File, s.out.Problems[0].Message)
	case at != s.trusted || s.out.NoPolicy:
		return plan.Options{}, usage.Errorf("%s has no policy on %s: nothing can be judged (add %s)", s.facts.Repo, s.facts.Base, plan.PolicyFile)
	}
	o := s.options(at, "")
	o.Kernels, o.Repairs = []string{kernel}, false
	return o, nil
}

var plainRef = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/-]{0,199}$`)

// draftHead finds or makes the commit of a draft. The mirror itself gets no commit.
func (s *survey) draftHead(ctx context.Context, d Draft) (err error) {
	if d.Ref != "" {
		s.facts.Head, err = s.named(ctx, d.Ref)
		return err
	}
	s.facts.Head = s.trusted
	o, err := s.draftOptions(ctx, d.Kernel)
	if err != nil {
		return err
	}
	found, err := plan.New(ctx, o)
	if err != nil {
		return err
	}
	key, err := found.Only(ctx)
	if err != nil {
		return err
	}
	s.repo, s.facts.Head, err = s.repo.Overlay(ctx, filepath.Join(s.scratch, "overlay.git"), s.trusted, manifest.FolderOf(key), d.Files)
	if err == nil {
		s.repo = s.repo.WithSubmodules(s.submodule)
	}
	return err
}

// named is the commit that a stranger names. Git has more ways to name a commit than anybody needs here.
func (s *survey) named(ctx context.Context, ref string) (string, error) {
	names := []string{"refs/heads/" + ref, "refs/tags/" + ref}
	if ident.IsCommit(ref) {
		names = []string{ref}
	} else if !plainRef.MatchString(ref) {
		return "", usage.Errorf("ref: %.80q names no commit (write a whole commit hash, a branch or a tag)", ref)
	}
	for _, name := range names {
		commit, err := s.repo.Resolve(ctx, name)
		if _, unknown := errors.AsType[checkout.UnknownCommit](err); !unknown {
			return commit, err
		}
	}
	return "", usage.Errorf("ref: the repository has no commit, branch or tag %q", ref)
}
