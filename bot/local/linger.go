package local

import (
	"context"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// Offer prints where to look, and how to run a command on a pull request. pr is nil if there is
// none.
func (w *World) Offer(t *Teller, login, command string, pr *embedded.PR) {
	t.Say("\nLook around; Ctrl-C stops everything and removes it.\n\n")
	t.Say("  GitHub   %s\n  pages    %s\n  metrics  %s/metrics\n  data     %s\n  log      %s\n", w.Hub.URL(), w.Bot.URL(), w.Bot.URL(), w.Data(), w.LogPath())
	if pr == nil {
		return
	}
	t.Say("\nAsk for more rounds as %s:\n\n  curl -sSf -o /dev/null -H 'Authorization: Bearer %s' -d '{\"body\": \"%s\"}' \\\n    %s/repos/%s/issues/%d/comments\n\n",
		login, w.Hub.CreateToken(login), command, w.Hub.URL(), w.Repo.FullName(), pr.Number())
}

// Linger prints the state of the pull requests whenever it changes, until ctx ends.
func (w *World) Linger(ctx context.Context, t *Teller) {
	shown := map[int]string{}
	for _, pr := range w.Repo.PRs() {
		shown[pr.Number()] = w.Standing(pr)
	}
	err := w.Hub.WaitFor(w.Ctx, func() bool {
		for _, pr := range w.Repo.PRs() {
			if now := w.Standing(pr); now != shown[pr.Number()] {
				shown[pr.Number()] = now
				t.Note("#%d %s", pr.Number(), now)
			}
		}
		return false
	})
	if ctx.Err() == nil {
		t.Say("%v\n", err)
	}
}
