package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/present"
)

// GitHub asks for a required check by commit, whichever pull request or merge group the bot wrote it for. So
// the check of a commit follows from everything that has the commit as its head.

// A sharing is the other changes with the head of one.
type sharing struct {
	open  []*change.State // pull requests and merge groups
	shown []string        // names of the checks that changes which are closed now have concluded on the head
}

// sharersOf finds the other pull requests and merge groups with a head. The ledger may lag, so the
// states in memory are read, too.
func (k *Controller) sharersOf(ctx context.Context, s *change.State, head string) (sharing, error) {
	var with sharing
	if s.ID.Kind.OnMain() || head == "" {
		return with, nil
	}
	ids, err := k.Ledger.ByHead(ctx, s.ID.Repo, head)
	if err != nil {
		return with, fmt.Errorf("asking the ledger: %w", err)
	}
	for _, id := range k.states.withHead(s.ID.Repo, head) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		if id == s.ID || id.Kind.OnMain() {
			continue
		}
		other, err := k.states.load(ctx, id)
		if err != nil {
			return with, err
		}
		if other.Facts.Open && other.Facts.Head == head {
			with.open = append(with.open, other)
		} else {
			with.shown = append(with.shown, other.Concluded(head)...)
		}
	}
	slices.SortFunc(with.open, func(a, b *change.State) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	slices.Sort(with.shown)
	with.shown = slices.Compact(with.shown)
	return with, nil
}

// notifySharers republishes the changes that have the same head as this one, or had it until now,
// if they show an older state of this one. It does not wait for a free slot to publish: until
// then, an outdated check may let a head pass that must not.
func (k *Controller) notifySharers(ctx context.Context, s *change.State, others []*change.State) error {
	if until := present.ToldHead(s.AnnouncedDigest); until != s.Facts.Head {
		more, err := k.sharersOf(ctx, s, until)
		if err != nil {
			return err
		}
		others = slices.Concat(others, more.open)
	}
	if len(others) == 0 {
		return nil
	}
	view, err := k.ownView(ctx, s)
	if err != nil {
		return err
	}
	told := present.Told(view)
	if told == s.AnnouncedDigest {
		return nil
	}
	for _, other := range others {
		// A change that is queued for publishing may have read the old state already.
		_, err := k.states.update(ctx, other.ID, func(*change.State) (change.Event, error) { return change.HeadShared{Other: s.ID.String()}, nil })
		if err != nil {
			return err
		}
		k.publishQueue.add(other.ID)
	}
	_, err = k.states.update(ctx, s.ID, func(*change.State) (change.Event, error) { return change.Published{AnnouncedDigest: told}, nil })
	return err
}
