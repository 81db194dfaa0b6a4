package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// play is what people are offered to ask for.
const play = "/rebench rounds=4"

// end sums up, and says whether every verdict was the expected one.
func (s *story) end() bool {
	s.chapter("The story")
	s.say("%s\n\n", strings.Join(s.lines, "\n"))
	if line := s.history(); line != "" {
		s.say("%s\n\n", line)
	}
	if s.wrong > 0 {
		s.say("Not every verdict is the expected one: see above.\n")
		return false
	}
	s.say("Every verdict is the expected one.\n")
	return true
}

// history is what the merges made of main: the bot measures that too.
func (s *story) history() string {
	runs, err := s.bot.Ledger.OnMain(s.ctx, s.repo.ID(), folder, 10)
	var times []string
	for _, r := range slices.Backward(runs) {
		if us, ok := r.P50["mission"]; ok {
			times = append(times, fmt.Sprintf("%.0f µs", us))
		}
	}
	if err != nil || len(times) == 0 {
		return "" // an ornament: the verdicts are above
	}
	return "Mission on main, commit by commit: " + strings.Join(times, " → ")
}

// linger lets people look around and try commands of their own, until they have
// seen enough.
func (s *story) linger(ctx context.Context) {
	s.say("\nLook around; Ctrl-C stops everything and removes it.\n\n")
	s.say("  GitHub   %s\n  pages    %s\n  metrics  %s/metrics\n  data     %s\n  log      %s\n", s.hub.URL(), s.bot.URL(), s.bot.URL(), s.data(), s.logPath())
	if s.open != nil {
		s.say("\nBe %s, and ask for more rounds:\n\n  curl -sSf -o /dev/null -H 'Authorization: Bearer %s' -d '{\"body\": \"%s\"}' \\\n    %s/repos/%s/issues/%d/comments\n\n",
			writer, s.hub.CreateToken(writer), play, s.hub.URL(), s.repo.FullName(), s.open.Number())
	}
	shown := map[int]string{}
	for _, pr := range s.repo.PRs() {
		shown[pr.Number()] = s.standing(pr)
	}
	for {
		err := s.hub.WaitFor(s.ctx, func() bool {
			for _, pr := range s.repo.PRs() {
				if now := s.standing(pr); now != shown[pr.Number()] {
					shown[pr.Number()] = now
					s.note("#%d %s", pr.Number(), now)
				}
			}
			return false
		})
		if err != nil {
			if ctx.Err() == nil {
				s.say("%v\n", err)
			}
			return
		}
	}
}

// standing is the required check in one line.
func (s *story) standing(pr *embedded.PR) string {
	c, ok := s.repo.Check(pr.HeadSHA(), required)
	if !ok {
		return "has no check yet"
	}
	return fmt.Sprintf("%s: %s", strings.TrimSpace(c.Status+" "+c.Conclusion), c.Title)
}
