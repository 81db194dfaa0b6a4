package planner

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/plan"
)

// maxMerged bounds how many commits of a group are read; GitHub's largest has a hundred
// pull requests.
const maxMerged = 200

// mergedPattern finds the pull request in the first line of a commit that a queue made,
// by merging it or by squashing it.
var mergedPattern = regexp.MustCompile(`^Merge pull request #([0-9]{1,9}) from |\(#([0-9]{1,9})\)$`)

// Merges is the numbers of the pull requests that a merge group merges, as far as its
// commits tell; the last is known by the group's branch. More tells whether a commit
// is of none of them, as after a rebase of several.
func (p *Planner) Merges(ctx context.Context, f change.Facts) (numbers []int, more bool, err error) {
	numbers = slices.Clone(f.Pulls)
	var refs []string
	for _, n := range f.Pulls {
		refs = append(refs, pullRef(n))
	}
	repo, err := p.Mirrors.Fetch(ctx, f.Repo, refs...)
	if err != nil {
		return nil, false, fmt.Errorf("reading the merge group %.12s: %w", f.Head, err)
	}
	subjects, err := repo.Subjects(ctx, f.BaseSHA, f.Head, maxMerged)
	if err != nil {
		return nil, false, fmt.Errorf("reading the merge group: %w", err)
	}
	unnamed := len(subjects) == maxMerged
	for _, subject := range subjects {
		m := mergedPattern.FindStringSubmatch(subject)
		if m == nil {
			unnamed = true
			continue
		}
		n, _ := strconv.Atoi(m[1] + m[2]) // nine digits always are a number
		if !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
	}
	if !unnamed || len(refs) == 0 {
		return numbers, unnamed, nil
	}
	others, err := repo.Unlike(ctx, f.BaseSHA, f.Head, refs[0], maxMerged) // the last may have been rebased alone
	return numbers, others > 0, err
}

func pullRef(number int) string { return fmt.Sprintf("refs/pull/%d/head", number) }

// members are the pull requests of a group in what a rule may ask of them, with the files
// that each changes by itself.
func (s *survey) members(ctx context.Context) ([]policy.Change, error) {
	var all []policy.Change
	for _, m := range s.facts.Members {
		c := policy.Change{Labels: m.Labels, Branch: s.facts.Base, Title: m.Title, Draft: m.Draft}
		if m.Head != "" {
			base, err := s.repo.MergeBase(ctx, s.trusted, m.Head)
			if err == nil {
				c.Paths, err = s.repo.Changed(ctx, base, m.Head)
			}
			if err != nil {
				return nil, fmt.Errorf("#%d of the merge group: %w", m.Number, err)
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// job is a kernel's, asked for by the rule that counts. Where the pull requests of a
// group that touch the kernel get different rules, each of them counts, and the worst
// verdict is the group's: the kernel is measured by the last of the policy's, which is
// the one with the fewest exceptions, and judged by all.
func (s *survey) job(ctx context.Context, p *plan.Plan, key string) (job runners.Job, rules []string, err error) {
	job, err = p.Job(ctx, key)
	if err != nil || len(s.facts.Members) == 0 {
		return job, nil, err
	}
	all, err := s.members(ctx)
	if err != nil {
		return job, nil, err
	}
	// Whose files are not known may have touched it; so may all, where nobody has.
	touches := func(c policy.Change) bool {
		return c.Paths == nil || p.Touches(key, c.Paths)
	}
	if !slices.ContainsFunc(all, touches) {
		all = append(all, policy.Change{Branch: s.facts.Base})
		touches = func(policy.Change) bool { return true }
	}
	last, as := -1, policy.Change{}
	for _, c := range all {
		if !touches(c) {
			continue
		}
		c.Kernel, c.Paths = job.Manifest.Name, p.PathsOf(key, c.Paths)
		rule := job.Policy.RuleFor(c)
		if slices.Contains(rules, rule.Name) {
			continue
		}
		rules = append(rules, rule.Name)
		if at := slices.IndexFunc(job.Policy.Rules, func(r policy.Rule) bool { return r.Name == rule.Name }); at > last {
			last, as = at, c
		}
	}
	job, err = p.As(as).Job(ctx, key)
	return job, rules, err
}
