package report

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/gates/stats"
)

// spanned is a comparison of which a bar is drawn.
func spanned(goal string, lower, value, upper float64) gates.Comparison {
	return gates.Comparison{Goal: goal, Baseline: &stats.Summary{P50: 2}, Candidate: &stats.Summary{P50: 1},
		Speedup: gates.Estimate{Value: value, Lower: &lower, Upper: &upper}}
}

func TestBars(t *testing.T) {
	point := spanned("speedup >= +10% on all", 0, 0.5, 0)
	point.Speedup.Lower, point.Speedup.Upper = nil, nil
	unmeasured := spanned("speedup >= +10% on all", 0.1, 0.2, 0.3)
	unmeasured.Candidate = nil
	for _, c := range []struct {
		name string
		rows []gates.Comparison
		want []string // "_" is a space that does not break
	}{
		{"met, far and near", []gates.Comparison{spanned("speedup >= +10% on a", 0.4, 0.5, 0.62), spanned("speedup >= -2% on all", -0.01, 0.02, 0.05)},
			[]string{"_┆_____________├●┤", "_┆___├──●─┤_______"}},
		{"missed", []gates.Comparison{spanned("speedup >= +10% on a", 0.01, 0.02, 0.03)}, []string{"├●______________┆_"}},
		{"not decided", []gates.Comparison{spanned("speedup >= +10% on a", 0.05, 0.11, 0.15)}, []string{"├────────┆───●───┤"}},
		{"one of each", []gates.Comparison{spanned("speedup >= +10% on a", 0.01, 0.02, 0.03), spanned("speedup >= +10% on a", 0.2, 0.3, 0.4)},
			[]string{"●┤_____┆__________", "_______┆______├─●┤"}},
		{"a gain of 700 % beside one of 1 %", []gates.Comparison{spanned("speedup >= +0% on a", 6.9, 7, 7.1), spanned("speedup >= +0% on a", 0.005, 0.01, 0.015)},
			[]string{"_┆_______________●", "_┆_├●_____________"}},
		{"at the goal to the digit", []gates.Comparison{spanned("speedup >= +10% on a", 0.1, 0.1, 0.1)}, []string{"_┆●_______________"}},
		{"a latency reduction", []gates.Comparison{spanned("latency reduction >= 50% on a", 1.2, 1.3, 1.4)}, []string{"_┆____________├─●┤"}},
		{"no interval", []gates.Comparison{point}, []string{"_┆_______________●"}},
		{"asked in microseconds", []gates.Comparison{spanned("p50 <= 5us on a", 0.1, 0.2, 0.3)}, []string{""}},
		{"not measured", []gates.Comparison{unmeasured}, []string{""}},
		{"none", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, got := range bars(c.rows) {
				if got = strings.ReplaceAll(got, string(nbsp), "_"); got != c.want[i] {
					t.Errorf("row %d\ngot  %s\nwant %s", i, got, c.want[i])
				}
			}
		})
	}
}

// No bar contradicts its verdict: what meets the goal lies to the right of it, what
// misses it to the left, and all goals are in one column.
func TestBarsTellTheTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 2000 {
		rows := make([]gates.Comparison, 1+rng.IntN(6))
		for i := range rows {
			switch rng.IntN(3) {
			case 0:
				rows[i] = spanned("speedup >= -2% on all", someFloat(rng), someFloat(rng), someFloat(rng))
			default:
				value, reach := 0.1+rng.NormFloat64()*0.1, rng.ExpFloat64()*0.02
				rows[i] = spanned("speedup >= +10% on all", value-reach, value, value+reach)
			}
		}
		column := -1
		for i, bar := range bars(rows) {
			if bar == "" {
				continue
			}
			cells := []rune(bar)
			goal := strings.IndexRune(strings.ReplaceAll(bar, string(nbsp), " "), '┆')
			goal = utf8.RuneCountInString(strings.ReplaceAll(bar, string(nbsp), " ")[:max(goal, 0)])
			if len(cells) != barCells || cells[goal] != '┆' || column >= 0 && goal != column {
				t.Fatalf("%q: %d cells, the goal in %d, in %d before", bar, len(cells), goal, column)
			}
			column = goal
			asked, _ := speedupGoal(rows[i].Goal)
			e := rows[i].Speedup
			drawn := func(part []rune) bool { return strings.ContainsAny(string(part), "├─●┤") }
			lower, upper := e.Value, e.Value
			if number.Finite(*e.Lower) {
				lower = min(lower, *e.Lower)
			}
			if number.Finite(*e.Upper) {
				upper = max(upper, *e.Upper)
			}
			if left := drawn(cells[:goal]); left != (lower-asked <= -1e-12) {
				t.Fatalf("%q of [%v, %v] against %v", bar, lower, upper, asked)
			}
			if right := drawn(cells[goal+1:]); right != (upper-asked > -1e-12) {
				t.Fatalf("%q of [%v, %v] against %v", bar, lower, upper, asked)
			}
			if strings.Count(bar, "●") != 1 || strings.ContainsRune(string(cells[:goal]), '●') != (e.Value-asked <= -1e-12) {
				t.Fatalf("%q of %v against %v", bar, e.Value, asked)
			}
		}
	}
}

// What is proven to miss its goal has another mark than what is not decided.
func TestSigns(t *testing.T) {
	for _, c := range []struct {
		outcome gates.Outcome
		reason  gates.Reason
		want    string
	}{
		{gates.Pass, "", "✅"},
		{gates.Defer, gates.ReasonBuild, "❌"}, {gates.Defer, gates.ReasonResources, "❌"}, {gates.Defer, gates.ReasonCorrectness, "❌"},
		{gates.Defer, gates.ReasonRegression, "❌"}, {gates.Defer, gates.ReasonSuspicious, "❌"},
		{gates.Defer, gates.ReasonTooSlow, "❌"}, {gates.Defer, gates.ReasonInconclusive, "❓"}, {gates.Defer, gates.ReasonProfile, "❌"},
		{gates.Error, gates.ReasonRunner, "⚠️"}, {"", "", "⚠️"},
	} {
		if got := Sign(c.outcome, c.reason); got != c.want {
			t.Errorf("%s (%s) is %s, want %s", c.outcome, c.reason, got, c.want)
		}
	}
}
