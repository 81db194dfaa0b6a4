package keeper

import (
	"context"
	"fmt"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
)

// A repository that cannot be read may be readable in a minute. After so many
// failures people should know.
const patience = 3

// troubled says on the check why it does not go on.
func (k *Keeper) troubled(ctx context.Context, s *change.State) error {
	n, _ := k.troubles.Get(s.ID)
	n++
	k.troubles.Add(s.ID, n)
	if n < patience || !k.GitHub.UsesChecks() || ctx.Err() != nil {
		return nil
	}
	for _, have := range s.ChecksOf(s.Facts.Head) {
		if have.Done {
			continue
		}
		err := k.GitHub.UpdateCheck(client.Spare(ctx), s.Facts.Repo, have.ID, client.Check{
			Status: "in_progress", Title: fmt.Sprintf("The change cannot be read (%d attempts)", n),
			// The reason may name folders and hosts that are nobody's business here.
			Summary: fmt.Sprintf("The bot tries again by itself. If this stays so, its operator finds the reason in its log, under `%s`.\n", s.ID),
		})
		if err != nil {
			return err
		}
	}
	return nil
}
