package demo

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// chapter starts a new chapter.
func (s *story) chapter(format string, args ...any) {
	s.Say("\n─── %s ───\n\n", fmt.Sprintf(format, args...))
}

func outcome(o gates.Outcome, r gates.Reason) string {
	if r == "" {
		return string(o)
	}
	return fmt.Sprintf("%s (%s)", o, r)
}

// summary returns the line of one stage at the end.
func summary(s stage, v *gates.Verdict) (line string, expected bool) {
	got, want := outcome(v.Outcome, v.Reason), outcome(s.outcome, s.reason)
	if got != want {
		return fmt.Sprintf("✗ %-8s %-20s expected %s", s.name, got, want), false
	}
	line = fmt.Sprintf("✓ %-8s %-20s", s.name, got)
	for _, c := range v.Comparisons {
		if c.Role == gates.RoleTarget && c.Baseline != nil && c.Candidate != nil {
			line += fmt.Sprintf(" %s: %s", c.Shape, number.FromTo(c.Baseline.P50, c.CandidateTime()))
			break
		}
	}
	return strings.TrimRight(line, " "), true
}
