package keeper

import (
	"context"
	"errors"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// rulesOf has the open pull requests to a branch planned again where what it asks of
// kernels is not what they were planned with: a verdict that stands is one by the
// rules that stand. What was measured is not measured again for that, unless the new
// rules ask for more.
func (k *Keeper) rulesOf(ctx context.Context, repo, branch string, pulls []ledger.PullRow) (err error) {
	rules := ""
	for _, p := range pulls {
		if p.Base != branch {
			continue
		}
		if rules == "" {
			rules, err = k.Planner.Rules(ctx, repo, branch)
			if errors.Is(err, planner.ErrMoved) {
				return nil // GitHub tells where the pull requests go now
			}
			if err != nil {
				return err
			}
		}
		news := false
		_, err := k.states.update(ctx, p.ID, func(now *change.State) (change.Event, error) {
			// One that has no plan yet gets it by the rules that stand then.
			f, planned := now.Facts, now.Plan
			if news = planned != nil && planned.Rules != rules && f.Open && f.Base == branch && f.Rules != rules; !news {
				return nil, nil
			}
			f.Rules = rules
			return change.Seen{Facts: f}, nil
		})
		if err != nil {
			return err
		}
		if news {
			k.wake(p.ID)
		}
	}
	return nil
}
