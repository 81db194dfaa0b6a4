package demo

import (
	"context"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates/number"
)

// play is the command that users are invited to try.
const play = "/rebench rounds=4"

// end prints the summary, and reports whether every verdict was the expected one.
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

// history returns the times on main after each merge, which the bot measures, too.
func (s *story) history() string {
	runs, err := s.Bot.Ledger.OnMain(s.Ctx, s.Repo.ID(), folder, 10)
	var times []string
	for _, r := range slices.Backward(runs) {
		if us, ok := r.P50["mission"]; ok {
			times = append(times, number.Time(us))
		}
	}
	if err != nil || len(times) == 0 {
		return "" // optional: the verdicts are above
	}
	return "Mission on main, commit by commit: " + strings.Join(times, " → ")
}

// linger lets users look around and try commands until they press Ctrl-C.
func (s *story) linger(ctx context.Context) {
	s.Offer(s.Teller, writer, play, s.open)
	s.Linger(ctx, s.Teller)
}
