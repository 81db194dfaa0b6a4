package highwater

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

var (
	l4      = Device{"NVIDIA L4", "sm_89"}
	h200    = Device{"NVIDIA H200", "sm_90"}
	mission = Shape{"mission", "N=1000"}
)

// A line is a history that a test writes down. Commits are called what the test likes.
type line struct{ History }

func newLine() *line { return &line{History{Before: map[string]string{}}} }

// push brings a tip onto main that touched the kernel; a ratio of 0 was not measured.
func (l *line) push(commit, before string, ratio float64) *line {
	return l.measured(commit, before, before, l4, ratio)
}

func (l *line) measured(commit, before, against string, d Device, ratio float64) *line {
	l.Before[commit] = before
	m := Merge{Commit: commit, Folder: "kernels/scale", Branch: "main", Against: against, Device: d, Outcome: gates.Pass}
	if ratio > 0 {
		m.Ratios = map[Shape]float64{mission: ratio}
	}
	l.Merges = append(l.Merges, m)
	return l
}

// untouched brings a tip onto main that did not touch the kernel.
func (l *line) untouched(commit, before string) *line {
	l.Before[commit] = before
	return l
}

func TestPositions(t *testing.T) {
	sandbag := func() *line {
		return newLine().push("a", "o", 0.96).push("b", "a", 0.96).push("c", "b", 0.96)
	}
	for _, c := range []struct {
		name       string
		line       *line
		at         string
		mark       string
		level      float64
		unmeasured int
		lost       int
	}{
		{"the start is the best", sandbag(), "c", "o", 0.884736, 0, 3},
		{"the start itself", sandbag(), "o", "o", 1, 0, 0},
		{"in the middle", sandbag(), "a", "o", 0.96, 0, 1},
		{"a gain is a new mark", sandbag().push("d", "c", 1.2), "d", "d", 1, 0, 0},
		{"a gain that wins back less", sandbag().push("d", "c", 1.1), "d", "o", 0.9732096, 0, 3},
		{"a revert", sandbag().push("d", "c", 1/0.884736), "d", "o", 1, 0, 3},
		{"equal machine code", sandbag().push("d", "c", 1), "d", "o", 0.884736, 0, 3},
		{"a merge that was not measured", sandbag().push("d", "c", 0).push("e", "d", 0.96), "e", "o", 0.84934656, 1, 4},
		{"a merge that was measured elsewhere", sandbag().measured("d", "c", "c", h200, 0.5).push("e", "d", 0.96), "e", "o", 0.84934656, 1, 4},
		{"pushes of other files", sandbag().untouched("x", "c").untouched("y", "x").push("e", "y", 0.96), "e", "o", 0.84934656, 0, 4},
		{"a commit after pushes of other files", sandbag().untouched("x", "c").untouched("y", "x"), "y", "o", 0.884736, 0, 3},
		{"a commit before the first push that touched it", newLine().untouched("x", "o").push("a", "x", 0.9), "o", "x", 1, 0, 0},
		{"a commit in the middle of a push", sandbag(), "?", "o", 0.884736, 1, 3},
		{"measured against the best", sandbag().measured("d", "c", "o", l4, 0.9), "d", "o", 0.9, 0, 3},
		{"measured against a tag", newLine().measured("a", "o", "v1", l4, 1.5).measured("b", "a", "v1", l4, 1.2), "b", "a", 0.8, 0, 1},
		{"a fast branch that was never merged", newLine().measured("a", "o", "topic", l4, 0.5).measured("b", "a", "topic", l4, 0.45), "b", "a", 0.9, 0, 1},
		{"a tag after merges", sandbag().measured("d", "c", "v1", l4, 1.5).measured("e", "d", "v1", l4, 1.2), "e", "o", 0.8 * 0.884736, 1, 4},
		{"a push that was not heard of", sandbag().push("e", "d", 0.96), "e", "o", 0.84934656, 1, 4},
		{"a forced push onto an old tip", sandbag().push("n", "a", 0.9), "n", "o", 0.864, 0, 2},
		{"a forced push that drops the best", newLine().push("a", "o", 1.3).push("n", "o", 0.99), "n", "a", 0.99 / 1.3, 0, 1},
		{"a forced push that drops changes of the kernel", sandbag().untouched("x", "a").push("n", "x", 0.99), "n", "o", 0.9504, 0, 2},
		{"deliveries out of order", newLine().push("c", "b", 0.96).push("b", "a", 0.96).push("a", "o", 0.96), "c", "o", 0.884736, 0, 3},
		{"a push onto itself", newLine().push("a", "o", 0.96).untouched("o", "o"), "o", "o", 1, 0, 0},
		{"a kernel that was deleted and came back", sandbag().measured("d", "c", "", l4, 0).measured("e", "d", "", Device{}, 0).push("f", "e", 0.99), "f", "o", 0.99 * 0.884736, 2, 4},
		{"judged again", sandbag().push("c", "b", 0.90), "c", "o", 0.96 * 0.96 * 0.9, 0, 3},
		{"judged again in vain", sandbag().push("c", "b", 0), "c", "o", 0.884736, 0, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, ok := c.line.Positions(c.at, "main", l4)[mission]
			if !ok || p.Commit != c.mark || math.Abs(p.Level-c.level) > 1e-12 || p.Unmeasured != c.unmeasured || len(p.Lost) != c.lost {
				t.Errorf("%+v (%v), want %s %.6f, %d not measured, %d lost", p, ok, c.mark, c.level, c.unmeasured, c.lost)
			}
		})
	}
}

func TestPositionsThatAreNotKnown(t *testing.T) {
	l := newLine().push("a", "o", 0.96)
	for name, got := range map[string]map[Shape]Position{
		"another device":            l.Positions("a", "main", h200),
		"a commit of a branch":      l.Positions("?", "release", l4),
		"nothing":                   History{}.Positions("a", "main", l4),
		"nothing that was compared": newLine().measured("a", "o", "", l4, 2).Positions("a", "main", l4),
	} {
		if len(got) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	other := l.measured("b", "a", "a", h200, 0.5)
	if p := other.Positions("b", "main", h200)[mission]; p.Commit != "a" || p.Level != 0.5 {
		t.Errorf("on a device that came later: %+v", p)
	}
}

// Any order of merges, reverts, gaps and baselines gives the speeds that the commits really have.
func TestChainProperty(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 3))
		l, speed := newLine(), map[string]float64{"o": 1}
		known, tip, gaps := []string{"o"}, "o", 0
		for i := range 2 + rng.IntN(25) {
			commit, before := fmt.Sprintf("c%d", i), tip
			switch rng.IntN(8) {
			case 0: // other files
				speed[commit] = speed[before]
				l.untouched(commit, before)
			case 1: // not measured, and no other than it was
				speed[commit] = speed[before]
				l.push(commit, before, 0)
				gaps++
			case 2: // measured against something else
				against := known[rng.IntN(len(known))]
				speed[commit] = speed[before] * (0.9 + 0.15*rng.Float64())
				l.measured(commit, before, against, l4, speed[commit]/speed[against])
			case 3: // a revert
				back := known[rng.IntN(len(known))]
				speed[commit] = speed[back]
				l.push(commit, before, speed[commit]/speed[before])
			case 4: // a forced push onto an old commit
				before = known[rng.IntN(len(known))]
				fallthrough
			default:
				speed[commit] = speed[before] * (0.9 + 0.15*rng.Float64())
				l.push(commit, before, speed[commit]/speed[before])
			}
			known, tip = append(known, commit), commit
		}
		if len(l.shapes(l4)) == 0 {
			continue
		}
		if rng.IntN(2) == 0 {
			rng.Shuffle(len(l.Merges), func(i, k int) { l.Merges[i], l.Merges[k] = l.Merges[k], l.Merges[i] })
		}
		best := 0.0
		for _, v := range speed {
			best = max(best, v)
		}
		for _, commit := range known {
			p := l.Positions(commit, "main", l4)[mission]
			if math.Abs(p.Level-speed[commit]/best) > 1e-9 || math.Abs(speed[p.Commit]-best) > 1e-9 || p.Unmeasured > gaps {
				t.Fatalf("seed %d: %s stands at %.6f of %s, want %.6f of the best, %.6f\n%+v", seed, commit, p.Level, p.Commit, speed[commit]/best, best, l)
			}
		}
		r := l.Ranked(tip, "main", l4, []Shape{mission})
		if isBest := math.Abs(speed[tip]-best) < 1e-9; isBest != (len(r) == 0) || !isBest && math.Abs(speed[r[0].Commit]-best) > 1e-9 {
			t.Fatalf("seed %d: of %v the first is to be the best", seed, r)
		}
	}
}

// With several shapes the geometric mean decides; a commit that lacks one of them cannot be compared.
func TestRanked(t *testing.T) {
	small := Shape{"small", "N=10"}
	l := newLine().push("a", "o", 1.2).push("b", "a", 0.95).push("c", "b", 1).push("d", "c", 0.5)
	for i, ratio := range []float64{0.7, 1.1, 1, 0.5} {
		l.Merges[i].Ratios[small] = ratio
	}
	// mission: o 1, a 1.2, b and c 1.14; small: o 1, a 0.7, b and c 0.77.
	for _, c := range []struct {
		at     string
		shapes []Shape
		want   []string
	}{
		{"d", []Shape{mission}, []string{"a", "c", "b", "o"}},
		{"d", []Shape{small}, []string{"o", "c", "b", "a"}},
		{"d", []Shape{mission, small}, []string{"o", "c", "b", "a"}},
		{"c", []Shape{mission}, []string{"a"}},
		{"a", []Shape{mission}, nil},
		{"d", nil, nil},
		{"d", []Shape{{"mission", "N=7"}}, nil},
	} {
		var got []string
		for _, r := range l.Ranked(c.at, "main", l4, c.shapes) {
			got = append(got, r.Commit)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s, %v: %v, want %v", c.at, c.shapes, got, c.want)
		}
	}
}
