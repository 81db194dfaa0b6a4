package report

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kernelgate/kernelgate/gates"
)

func TestOneLine(t *testing.T) {
	for name, want := range map[string]string{
		"pass":                    "PASS sdpa_fp8: +16.1_% [+15.7_%,_+16.4_%] on mission",
		"defer-build":             "DEFER (build) sdpa_fp8: The candidate does not build: 2 errors in sdpa.cu",
		"defer-too-slow":          "DEFER (too-slow) sdpa_fp8: +0.2_% [−0.2_%,_+0.5_%] on mission, goal speedup ≥_+10_%",
		"defer-regression":        "DEFER (regression) sdpa_fp8: 6.3_%_slower [−6.7_%,_−5.9_%] on long, goal speedup ≥_−2_%",
		"defer-inconclusive":      "DEFER (inconclusive) sdpa_fp8: +11.3_% [+9.97_%,_+12.6_%] on mission, goal speedup ≥_+10_%",
		"error-runner":            "ERROR (runner) sdpa_fp8: The runner is not fit to measure: the A/A control on mission is +4.1_% [+3.6_%, +4.7_%] instead of 0: two copies…",
		"defer-suspicious":        "DEFER (suspicious) sdpa_fp8: Too good to be true: mission takes 1.021 µs, and the device needs at least 2.219 µs for this work",
		"defer-same-machine-code": "DEFER (too-slow) sdpa_fp8: Too slow: the machine code is the same as the baseline's, so nothing was gained (asked speedup ≥_+10_% on…",
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.ReplaceAll(OneLine(verdicts()[name]), string(nbsp), "_")
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// A verdict that hangs on all launches of a step is not told by the figure of a shape.
func TestOneLineOfAStep(t *testing.T) {
	for name, want := range map[string]string{
		"weighted-pass":  "PASS sdpa_fp8: +6.6_% [+6.1_%,_+7.1_%] on all launches of a step",
		"weighted-defer": "DEFER (too-slow) sdpa_fp8: +6.6_% [+6.1_%,_+7.1_%] on all launches of a step, goal speedup ≥_+10_%",
		"weighted-warm":  "DEFER (too-slow) sdpa_fp8: +2.5_% [+2.1_%,_+3.0_%] on all launches of a warm step, goal speedup ≥_+3_%",
		"weighted-info":  "PASS sdpa_fp8: +16.1_% [+15.7_%,_+16.4_%] on mission",
	} {
		if got := strings.ReplaceAll(OneLine(weighted()[name]), string(nbsp), "_"); got != want {
			t.Errorf("%s: got  %s\nwant %s", name, got, want)
		}
	}
}

// The line about a regression names a guard, and that of a DEFER names nothing that passed.
func TestOneLineOfTwoSums(t *testing.T) {
	v := weighted()["weighted-warm"]
	small := &v.Comparisons[slices.IndexFunc(v.Comparisons, func(c gates.Comparison) bool { return c.Shape == "small" })]
	v.Reason, small.Status, small.Speedup = gates.ReasonRegression, gates.Failed, gates.Estimate{Value: -0.08}
	if got := OneLine(v); !strings.Contains(got, "on small") {
		t.Errorf("a regression: %s", got)
	}
	v = weighted()["weighted-warm"]
	v.Reason, v.Weighted, v.WeightedWarm.Status, v.Summary = gates.ReasonInconclusive, nil, gates.Passed, "Not decided: too few clean samples"
	if got := OneLine(v); strings.Contains(got, "warm step") || !strings.Contains(got, "too few clean samples") {
		t.Errorf("a sum that is not there: %s", got)
	}
	v = weighted()["weighted-warm"]
	v.Outcome, v.Reason, v.WeightedWarm.Status = gates.Pass, "", gates.Passed
	if got := Headline(v); !strings.Contains(got, "2.5\u00a0% faster on all launches of a warm step") || strings.Contains(got, "more target") {
		t.Errorf("the headline of a PASS: %s", got)
	}
}

// The steps to pass name the sum where the reason of the verdict is a shape.
func TestToPassNamesTheStep(t *testing.T) {
	v := weighted()["weighted-defer"]
	v.Reason, v.ToPass = gates.ReasonRegression, []string{"bring `small` to ≤ 9.30 µs"}
	steps := strings.Join(ToPass(v), "\n")
	if !strings.Contains(steps, "bring all launches of a step to ≤") || !strings.Contains(steps, "`small`") {
		t.Errorf("the steps are\n%s", steps)
	}
	v = weighted()["weighted-info"]
	if steps := ToPass(v); len(steps) > 0 {
		t.Errorf("a sum for information has the steps %q", steps)
	}
}

// A terminal says why nothing is known about lines, where they would be.
func TestTerminalWhySaysWhatWasNotSampled(t *testing.T) {
	got := oneSpace(TerminalWhy(explained(), TerminalOptions{Width: 120}))
	if !strings.Contains(got, "Lines and instructions on mission were not sampled: ncu prints no source: it needs 2024.1 or later") || strings.Count(got, "not sampled") != 1 {
		t.Error(got)
	}
}

func oneSpace(s string) string { return strings.Join(strings.Fields(s), " ") }

func TestOneLineIsShort(t *testing.T) {
	v := unbuilt()
	v.Summary = strings.Repeat("a long story\n", 100)
	got := OneLine(v)
	if n := utf8.RuneCountInString(got); n > oneLineRunes || strings.Contains(got, "\n") || !strings.HasSuffix(got, "…") {
		t.Errorf("%d characters: %q", n, got)
	}
}
