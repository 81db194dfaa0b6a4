package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/present"
)

// sharersOf returns the other open pull requests with the same head. The ledger may lag, so the
// states in memory are read, too.
func (k *Controller) sharersOf(ctx context.Context, s *change.State, head string) ([]*change.State, error) {
	if s.ID.Kind != change.Pull || head == "" {
		return nil, nil
	}
	ids, err := k.Ledger.ByHead(ctx, s.ID.Repo, head)
	if err != nil {
		return nil, fmt.Errorf("asking the ledger: %w", err)
	}
	for _, id := range k.states.withHead(s.ID.Repo, head) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	var others []*change.State
	for _, id := range ids {
		if id == s.ID || id.Kind != change.Pull {
			continue
		}
		other, err := k.states.load(ctx, id)
		if err != nil {
			return nil, err
		}
		if other.Facts.Open && other.Facts.Head == head {
			others = append(others, other)
		}
	}
	slices.SortFunc(others, func(a, b *change.State) int { return a.ID.Number - b.ID.Number })
	return others, nil
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
		others = slices.Concat(others, more)
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
		_, err := k.states.update(ctx, other.ID, func(*change.State) (change.Event, error) { return change.HeadShared{Pull: s.ID.Number}, nil })
		if err != nil {
			return err
		}
		k.publishQueue.add(other.ID)
	}
	_, err = k.states.update(ctx, s.ID, func(*change.State) (change.Event, error) { return change.Published{AnnouncedDigest: told}, nil })
	return err
}
