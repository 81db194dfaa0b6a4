package hindsight

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/gates/report"
)

// PowerText is the simulation for a terminal.
func PowerText(all []*Power) string {
	if len(all) == 0 {
		return "Nothing can be simulated: the evidence has no A/A control, or the policy compares no times.\n"
	}
	var b strings.Builder
	device := ""
	for _, p := range all {
		if p.Device != device {
			device = p.Device
			b.WriteString(report.Hanging("", "  ", fmt.Sprintf("%s: noise of %s in %s on %s", device, counted(p.noise.Rounds, "recorded round"), counted(p.noise.Controls, "A/A control"), counted(p.noise.Shapes, "shape")), columns))
		}
		rules := "rule " + p.Rules[0]
		if len(p.Rules) > 1 {
			rules = "rules " + strings.Join(p.Rules, ", ")
		}
		b.WriteString(report.Hanging("  ", "    ", fmt.Sprintf("%s, %s %s:", rules, p.Role, number.Condition(p.Goal)), columns))
		if p.Needs != "" {
			b.WriteString(report.Hanging("    ", "      ", fmt.Sprintf("not known. It needs %s.", p.Needs), columns))
			continue
		}
		for i, r := range p.Rates {
			if i > 0 {
				b.WriteString(report.Hanging("    ", "      ", r.gain(), columns))
			}
		}
		b.WriteString(report.Hanging("    ", "      ", p.Rates[0].exactly(p.Allows), columns))
	}
	return b.String()
}

// gain is such as "a true +13 % passes in 82 % of 240 runs, after 7.1 rounds on average".
func (r Rate) gain() string {
	if r.Runs == 0 {
		return fmt.Sprintf("a true %s: no run was simulated in time", signed(r.Speedup))
	}
	who := "a true " + signed(r.Speedup)
	if near(r.Speedup, 0) {
		who = "an equal kernel"
	}
	text := fmt.Sprintf("%s passes in %.0f\u00a0%% of %s (95\u00a0%% interval: %s to %s), after %.1f rounds on average",
		who, 100*float64(r.Passed)/float64(r.Runs), counted(r.Runs, "run"), share(r.Lower), share(r.Upper), r.Rounds)
	return text + r.blamed()
}

// exactly is about a kernel exactly at the threshold.
func (r Rate) exactly(allows float64) string {
	if r.Runs == 0 {
		return fmt.Sprintf("a false one (exactly %s): no run was simulated in time", signed(r.Speedup))
	}
	return fmt.Sprintf("a false one (exactly %s) passes in %d of %s (95\u00a0%% interval: %s to %s; the policy allows %s)",
		signed(r.Speedup), r.Passed, counted(r.Runs, "run"), share(r.Lower), share(r.Upper), share(allows)) + r.blamed()
}

func (r Rate) blamed() string {
	if r.Errors == 0 {
		return ""
	}
	return fmt.Sprintf("; %s blamed the runner", counted(r.Errors, "verdict"))
}

// share is a small share with two digits.
func share(x float64) string {
	if x > 0 && x < 0.1 {
		return fmt.Sprintf("%.2g\u00a0%%", 100*x)
	}
	return fmt.Sprintf("%.0f\u00a0%%", 100*x)
}

func signed(x float64) string {
	if near(x, 0) {
		return "0\u00a0%"
	}
	return strings.Replace(fmt.Sprintf("%+.3g\u00a0%%", 100*x), "-", "−", 1)
}

// SuggestText is the suggestions for a terminal.
func SuggestText(all []Suggestion) string {
	if len(all) == 0 {
		return "No guard can be suggested: the evidence has no A/A control.\n"
	}
	var b strings.Builder
	for _, s := range all {
		if s.Needs != "" {
			b.WriteString(report.Hanging("", "  ", fmt.Sprintf("%s: no guard is suggested. It needs %s.", s.Device, s.Needs), columns))
			continue
		}
		text := fmt.Sprintf("%s: guard: {speedup: \">= -%.3g%%\"} had no alarm on %s", s.Device, 100*s.Guard, counted(s.Controls, "recorded A/A control"))
		if s.AlarmsAt > 0 {
			text += fmt.Sprintf(" (half a percent less: %s)", counted(s.AlarmsAt, "alarm"))
		}
		text += fmt.Sprintf(". So many silent runs prove, at 95\u00a0%%, that fewer than %s of runs have one. %d of them pass with the rounds that were recorded", share(s.Below), s.Passed)
		if s.AllPass > s.Guard {
			text += fmt.Sprintf(", and all of them from -%.3g%% on", 100*s.AllPass)
		}
		b.WriteString(report.Hanging("", "  ", text+".", columns))
	}
	return b.String()
}
