package controller

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/change/facts"
	"github.com/kernelgate/kernelgate/bot/github/client"
)

// findMembers finds the pull requests of a merge group. Each of them takes part in choosing the rule,
// and an override applies only to the kernels that its own pull request touches.
func (k *Controller) findMembers(ctx context.Context, s *change.State) error {
	numbers, more, err := k.Planner.Merges(ctx, s.Facts)
	if err != nil {
		return err
	}
	f := s.Facts
	var pulls []*change.State
	for _, n := range numbers {
		pull, err := k.pull(ctx, change.ID{Kind: change.Pull, Repo: s.ID.Repo, Number: n}, f.Repo)
		if client.NotFound(err) {
			more = true // the commit message may be wrong
			continue
		}
		if err != nil {
			return err
		}
		pulls = append(pulls, pull)
		f.Members = append(f.Members, facts.Member(n, pull.Facts))
	}
	if more || len(f.Members) == 0 {
		f.Members = append(f.Members, change.Member{})
	}
	if len(pulls) > 0 {
		last := pulls[0].Facts
		f.Title, f.Author, f.Labels = last.Title, last.Author, last.Labels
	}
	override := overrideOf(f, pulls)
	_, err = k.states.update(ctx, s.ID, func(now *change.State) (change.Event, error) {
		if len(now.Facts.Members) > 0 || !now.Facts.Open {
			return nil, nil
		}
		return change.Seen{Facts: f, Override: override, RulesApproved: k.rulesApproved(f, pulls)}, nil
	})
	return err
}

// rulesApproved returns an approval if every pull request of a group that changes the rules is
// approved. A pull request that the bot does not know counts as not approved.
func (k *Controller) rulesApproved(f change.Facts, pulls []*change.State) *change.RulesApproved {
	var by []string
	for _, pull := range pulls {
		plan := pull.Current()
		switch approved := pull.ApprovedRules(plan); {
		case approved != nil:
			by = append(by, approved.By)
		case plan == nil || pull.RulesWait(plan):
			return nil
		}
	}
	if len(by) == 0 || len(pulls) < len(f.Members) {
		return nil
	}
	return &change.RulesApproved{SHA: f.Head, By: strings.Join(by, ", @"), At: k.Now().UTC().Format(time.RFC3339)}
}

// pull returns a pull request from the journal, or from GitHub.
func (k *Controller) pull(ctx context.Context, id change.ID, repo string) (*change.State, error) {
	s, err := k.states.load(ctx, id)
	if err != nil || s.Facts.Head != "" {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	p, err := k.GitHub.Pull(ctx, repo, id.Number)
	if err == nil {
		s.Facts = facts.OfPull(repo, "", p)
	}
	return s, err
}

// overrideOf returns the override that a group inherits. In a group of one pull request, its
// override applies to everything; in a larger group, each override applies to the kernels that its
// pull request touches.
func overrideOf(f change.Facts, pulls []*change.State) *change.Override {
	var by, reasons []string
	all := change.Override{SHA: f.Head}
	for _, pull := range pulls {
		o := pull.Override
		if o == nil || o.SHA != pull.Facts.Head || len(f.Members) > 1 && len(pull.Runs) == 0 {
			continue
		}
		if !slices.Contains(by, o.By) {
			by = append(by, o.By)
		}
		reasons, all.At = append(reasons, o.Reason), max(all.At, o.At)
		for _, r := range pull.Runs {
			if len(f.Members) > 1 && !slices.Contains(all.Folders, r.Folder) {
				all.Folders = append(all.Folders, r.Folder)
			}
		}
	}
	if len(by) == 0 {
		return nil
	}
	all.By, all.Reason = strings.Join(by, ", @"), strings.Join(reasons, "; ")
	return &all
}
