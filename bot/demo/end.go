package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// play is what people are offered to ask for.
const play = "/rebench rounds=4"

// end sums up, and says whether every verdict was the expected one.
func (s *story) end() bool {
	s.chapter("The story")
	s.Say("%s\n\n", strings.Join(s.lines, "\n"))
	if line := s.history(); line != "" {
		s.Say("%s\n\n", line)
	}
	if s.wrong > 0 {
		s.Say("Not every verdict is the expected one: see above.\n")
		return false
	}
	s.Say("Every verdict is the expected one.\n")
	return true
}

// history is what the merges made of main: the bot measures that too.
func (s *story) history() string {
	runs, err := s.Bot.Ledger.OnMain(s.Ctx, s.Repo.ID(), folder, 10)
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
	s.Offer(s.Teller, writer, play, s.open)
	s.Linger(ctx, s.Teller)
}
