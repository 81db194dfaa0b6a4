package planner

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/change/observed"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// GroupRules is the digest of what the base of a merge group asks, at the commit that the group was made on.
func (p *Planner) GroupRules(ctx context.Context, f change.Facts) (string, error) {
	repo, err := p.Mirrors.Fetch(ctx, f.Repo)
	if err != nil {
		return "", fmt.Errorf("reading the rules of the merge group %.12s: %w", f.Head, err)
	}
	return p.known.rulesAt(ctx, repo, f.BaseSHA)
}

// A Queue tells who is in a merge queue.
type Queue interface {
	MergeQueue(ctx context.Context, repo, branch string) ([]client.QueueEntry, error)
	Pull(ctx context.Context, repo string, number int) (client.Pull, error)
}

// askTimeout bounds how long GitHub may take to tell who is in a queue.
const askTimeout = time.Minute

// Members finds the pull requests of a merge group: each of them takes part in choosing the rule. It returns their states, which
// pull reads by number, the last first, and the group's facts with its members. The title, author and labels are the last one's. A
// group of unknown pull requests has one member without a number.
func (p *Planner) Members(ctx context.Context, queue Queue, f change.Facts, pull func(ctx context.Context, number int) (*change.State, error)) (change.Facts, []*change.State, error) {
	entries, err := p.queueEntries(ctx, queue, f)
	if err != nil {
		return f, nil, err
	}
	if len(entries) == 0 {
		f.Members = []change.Member{{}}
		return f, nil, nil
	}
	var pulls []*change.State
	for _, e := range entries {
		s, err := pull(ctx, e.Number)
		if err != nil {
			return f, nil, err
		}
		pulls = append(pulls, s)
		m := observed.Member(e.Number, s.Facts)
		m.Head = e.PullHead
		f.Members = append(f.Members, m)
	}
	last := pulls[0].Facts
	f.Title, f.Author, f.Labels = last.Title, last.Author, last.Labels
	return f, pulls, nil
}

// queueEntries is the entries of the queue that a merge group consists of, the last first. GitHub's queue names them. Where it does
// not, the content of the group's commits shows them. There are no entries if the group has commits whose pull request is not known.
func (p *Planner) queueEntries(ctx context.Context, queue Queue, f change.Facts) ([]client.QueueEntry, error) {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	listed, err := queue.MergeQueue(asking, f.Repo, f.Base)
	if err != nil && !errors.Is(err, client.ErrNoQueueEntries) {
		return nil, fmt.Errorf("finding the pull requests of the merge group %.12s: %w", f.Head, err)
	}
	if entries := observed.Entries(listed, f); len(entries) > 0 {
		return entries, nil
	}
	var entries []client.QueueEntry
	repo, err := p.Mirrors.Fetch(ctx, f.Repo)
	if err == nil {
		err = p.within(ctx, func(ctx context.Context) (err error) {
			g := &groupContent{planner: p, queue: queue, facts: f, repo: repo}
			entries, err = g.entries(ctx)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("finding the pull requests of the merge group %.12s: %w", f.Head, err)
	}
	return entries, nil
}

// A groupContent finds the pull requests of a merge group by what its commits contain. A commit message only proposes a pull
// request: its author writes it. The commit must contain what merging that pull request gives, and the pull request must go to the
// group's base.
type groupContent struct {
	planner *Planner
	queue   Queue
	facts   change.Facts
	repo    *checkout.Repo
}

// maxMerged bounds how many commits of a group are read: GitHub's largest has a hundred
// pull requests, and a rebase brings all commits of each.
const maxMerged = 1000

func (g *groupContent) entries(ctx context.Context) ([]client.QueueEntry, error) {
	f := g.facts
	commits, err := g.repo.History(ctx, f.BaseSHA, f.Head, maxMerged)
	if err != nil {
		return nil, err
	}
	var all []client.QueueEntry
	for i, c := range slices.Backward(commits) {
		before := f.BaseSHA
		if i > 0 {
			before = commits[i-1].SHA
		}
		var proposed []int
		if c.SHA == f.Head {
			proposed = slices.Clone(f.Pulls)
		}
		entry, err := g.mergeOf(ctx, before, c.SHA, append(proposed, namedIn(c.Subject)...))
		if err != nil {
			return nil, err
		}
		if entry.Number == 0 {
			// The last pull request may be the only one, with several commits that were rebased.
			entry, err = g.mergeOf(ctx, f.BaseSHA, f.Head, f.Pulls)
			if err != nil || entry.Number == 0 {
				return nil, err
			}
			return []client.QueueEntry{entry}, nil
		}
		all = append(all, entry)
	}
	return all, nil
}

// mergeOf is the first of these pull requests whose merge into a commit gives the other. Its number is 0 if there is none.
func (g *groupContent) mergeOf(ctx context.Context, base, head string, numbers []int) (client.QueueEntry, error) {
	for _, n := range numbers {
		pull, err := g.queue.Pull(ctx, g.facts.Repo, n)
		if client.NotFound(err) || err == nil && (pull.BaseRef != g.facts.Base || !pull.Open && !pull.Merged) {
			continue
		}
		if err != nil {
			return client.QueueEntry{}, err
		}
		repo, err := g.planner.Mirrors.Fetch(ctx, g.facts.Repo, pullRef(n))
		if err != nil {
			return client.QueueEntry{}, err
		}
		if is, err := repo.IsMerge(ctx, head, base, pull.HeadSHA); err != nil || is {
			return client.QueueEntry{Number: n, PullHead: pull.HeadSHA, Base: base, Head: head}, err
		}
	}
	return client.QueueEntry{}, nil
}

// subjectPattern finds pull requests in the first line of a commit that a queue made, by merging or by squashing.
var subjectPattern = regexp.MustCompile(`^Merge pull request #([0-9]{1,9}) from |\(#([0-9]{1,9})\)$`)

func namedIn(subject string) (numbers []int) {
	for _, m := range subjectPattern.FindAllStringSubmatch(subject, -1) {
		n, _ := strconv.Atoi(m[1] + m[2]) // nine digits always are a number
		numbers = append(numbers, n)
	}
	return numbers
}

// queues is the folder of the branches that GitHub's merge queues make.
const queues = "refs/heads/gh-readonly-queue/"

// queueBranch finds the branch of the merge queue whose tip is the head of a pull request. Whoever can read the repository can open a pull
// request with the commit of a merge group, and GitHub looks up the required check of the group on that commit.
func (s *survey) queueBranch(ctx context.Context) (err error) {
	if s.id.Kind != change.Pull {
		return nil
	}
	branches, err := s.repo.BranchesAt(ctx, queues, s.facts.Head)
	if len(branches) > 0 {
		s.out.QueueBranch = branches[0]
	}
	return err
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
