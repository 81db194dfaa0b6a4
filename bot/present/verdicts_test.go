package present

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// scaled multiplies the times of launches on a shape by a factor for each side, on one kind of input or on all.
func scaled(shape, kind string, by map[rune]float64) func(*gates.Evidence) {
	return func(e *gates.Evidence) {
		for r := range e.Performance.Rounds {
			for i := range e.Performance.Rounds[r].Series {
				if s := &e.Performance.Rounds[r].Series[i]; s.Shape == shape {
					scale(s, kind, by)
				}
			}
		}
	}
}

func scale(s *gates.Series, kind string, by map[rune]float64) {
	meant := func(n int) bool { return kind == "" || s.Distributions[n%len(s.Distributions)] == kind }
	at := 0
	for block, order := range strings.Fields(s.Order) {
		for _, side := range order {
			if factor, ok := by[side]; ok && meant(block) {
				s.Nanos[at] *= factor
				if at < len(s.Wall) {
					s.Wall[at] *= factor
				}
			}
			at++
		}
	}
	if s.Single == nil {
		return
	}
	for side, times := range map[rune][]float64{'b': s.Single.Baseline, 'c': s.Single.Candidate} {
		for n := range times {
			if factor, ok := by[side]; ok && meant(n) {
				times[n] *= factor
			}
		}
	}
}

// losesOneKind gains on all kinds of input but one, whose launches are short: neither the median nor the slow launches show it.
func losesOneKind(e *gates.Evidence) {
	scaled("mission", "constant", map[rune]float64{'a': 0.5, 'b': 0.5, 'c': 0.66})(e)
}

func undecided(e *gates.Evidence) {
	scaled("mission", "", map[rune]float64{'c': 1.134})(e)
	e.Performance.Exhausted = true
}

func racy(e *gates.Evidence) {
	for i := range e.Sanitize.Tools {
		if t := &e.Sanitize.Tools[i]; t.Tool == "racecheck" {
			t.Findings = []gates.Finding{{Kind: gates.KindRace, Text: "a race between write and read of shared memory", File: "stage1.cu", Line: 123, OtherFile: "stage1.cu", OtherLine: 140, Count: 6144}}
		}
	}
}

// kindsOfVerdict is a change for each kind of verdict that one kernel can get, which is not told elsewhere.
func kindsOfVerdict(t testing.TB) map[string]*story {
	stories := map[string]*story{}
	for name, c := range map[string]struct {
		evidence string
		bend     func(*gates.Evidence)
		says     string // in the heading
	}{
		"pass-large":        {"stage3b", nil, "PASS · `sdpa_fp8` is 4.12× faster on `mission`: 34.9 → 8.49\u00a0µs"},
		"defer-slower":      {"stage6_fp8_short", nil, "DEFER · `sdpa_fp8` is 2.8\u00a0%\u00a0slower on `long`: "},
		"defer-mean":        {"stage6_split", nil, "DEFER · `sdpa_fp8` is 2.9\u00a0%\u00a0slower on `long`: 34.7 → 35.7\u00a0µs (limit 2\u00a0%\u00a0slower)"},
		"defer-kind":        {"stage1", losesOneKind, "DEFER · `sdpa_fp8` is 5.3\u00a0%\u00a0slower on `mission` with constant inputs: "},
		"defer-undecided":   {"stage1", undecided, "DEFER · `sdpa_fp8` is not decided on `mission` after 6 rounds: "},
		"defer-correctness": {"broken", nil, "DEFER · `sdpa_fp8`: the output is wrong in 17 of 36 cases"},
		"defer-sanitizer":   {"stage1", racy, "DEFER · `sdpa_fp8`: racecheck: a race between write and read of shared memory"},
		"new-kernel":        {"stage1", func(e *gates.Evidence) { e.Baseline, e.Provenance.Base = nil, gates.Commit{} }, "PASS · `sdpa_fp8` is new: `mission` takes "},
	} {
		s := tell(t).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", judge(t, c.evidence, c.bend)).shown(false)
		if head, _, _ := strings.Cut(strings.TrimPrefix(Comment(s.view), Marker(s.state.ID)+"\n"), "\n"); !strings.Contains(head, c.says) {
			t.Errorf("%s is headed %q, and not %q", name, head, c.says)
		}
		stories[name] = s
	}
	return stories
}
