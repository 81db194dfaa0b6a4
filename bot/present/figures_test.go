package present

import (
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

// A figure as it is shown, and rows of five of them in Markdown and on a terminal: shape, both times, speedup and bounds.
const (
	shown = `([+−]?[0-9.]+(?:×|\x{a0}%)(?:\x{a0}slower)?)`
	took  = `([0-9.]+)\x{a0}µs`
)

var (
	markdownRow = regexp.MustCompile(`(?m)^\| (?:\S+\x{a0})?(?:\*\*)?([a-z0-9_]+)(?:\*\*)? \| ` + took + ` \| ` + took + ` \| \*\*` + shown + `\*\* \\\[` + shown + `,\x{a0}` + shown + `\] \|`)
	terminalRow = regexp.MustCompile(`(?m)^  (?:\S\x{a0})?([a-z0-9_]+) +` + took + ` +` + took + ` +` + shown + ` \[` + shown + `,\x{a0}` + shown + `\] `)
)

// figure reads a figure back, with half of its last digit.
func figure(t *testing.T, text string) (value, half float64) {
	t.Helper()
	text, slower := strings.CutSuffix(text, "\u00a0slower")
	number := strings.TrimRight(strings.Replace(strings.TrimPrefix(text, "+"), "−", "-", 1), "%×\u00a0")
	if slower {
		number = "-" + number
	}
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		t.Fatalf("%q is no figure", text)
	}
	_, decimals, _ := strings.Cut(number, ".")
	half = 0.5000001 * math.Pow(10, -float64(len(decimals)))
	switch {
	case strings.HasSuffix(text, "%"):
		return value / 100, half / 100
	case strings.HasSuffix(text, "×") && slower: // the time is so many times as long
		return -1/value - 1, 1/(-value-half) + 1/value
	case strings.HasSuffix(text, "×"):
		return value - 1, half
	}
	return value, half
}

// The five figures of every shape are the verdict's in the comment, in both checks, in report.md and on a terminal, for all
// evidence that is committed.
func TestFiguresOfEveryEvidence(t *testing.T) {
	files, err := filepath.Glob(filepath.FromSlash("../../kernels/sdpa_fp8/evidence/*.json"))
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	compared := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		v := judge(t, name, nil)
		s := tell(t).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", v)
		checks := Checks(s.view)
		for form, text := range map[string]string{
			"the comment": Comment(s.view), "the check": checks[0].Summary, "the kernel's check": checks[1].Summary, "report.md": report.Markdown(v, report.Options{}),
			"a terminal": report.Terminal(v, report.TerminalOptions{Width: 80}),
		} {
			pattern := markdownRow
			if form == "a terminal" {
				pattern = terminalRow
			}
			rows := map[string][]string{}
			for _, m := range pattern.FindAllStringSubmatch(text, -1) {
				if rows[m[1]] == nil { // a kind of input may be called like a shape
					rows[m[1]] = m[2:]
				}
			}
			compared += compareRows(t, name+" in "+form, v, rows)
		}
	}
	if compared < 5*5*30 {
		t.Errorf("only %d figures were compared", compared)
	}
}

func compareRows(t *testing.T, where string, v *gates.Verdict, rows map[string][]string) (compared int) {
	t.Helper()
	for _, c := range v.Comparisons {
		if c.Baseline == nil || c.Candidate == nil || c.Speedup.Lower == nil {
			continue
		}
		if rows[c.Shape] == nil {
			t.Errorf("%s: there is no row of %s", where, c.Shape)
			continue
		}
		shown := rows[c.Shape]
		if strings.HasSuffix(shown[2], "×\u00a0slower") { // bounds of a time, the smaller first
			shown = append(slices.Clone(shown[:3]), shown[4]+"\u00a0slower", shown[3]+"\u00a0slower")
		}
		for i, want := range []float64{c.Baseline.P50, c.Baseline.P50 / (1 + c.Speedup.Value), c.Speedup.Value, *c.Speedup.Lower, *c.Speedup.Upper} {
			if got, half := figure(t, shown[i]); math.Abs(got-want) > half {
				t.Errorf("%s: %s has %s, the verdict %v", where, c.Shape, shown[i], want)
			}
			compared++
		}
	}
	return compared
}
