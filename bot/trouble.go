package bot

import (
	"context"
	"fmt"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/hub"
)

// A repository that cannot be read may be readable in a minute. After so many
// failures people should know.
const patience = 3

// troubled says on the check why it does not go on.
func (b *Bot) troubled(ctx context.Context, s *change.State) error {
	b.mu.Lock()
	b.troubles[s.ID]++
	n := b.troubles[s.ID]
	b.mu.Unlock()
	if n < patience || !b.Hub.UsesChecks() || ctx.Err() != nil {
		return nil
	}
	for _, have := range s.ChecksOf(s.Facts.Head) {
		if have.Done {
			continue
		}
		err := b.Hub.UpdateCheck(ctx, s.Facts.Repo, have.ID, hub.Check{
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

func (b *Bot) relieved(id change.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.troubles, id)
}
