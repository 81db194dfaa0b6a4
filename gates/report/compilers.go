package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// recompiled reports whether the sides of a verdict were built by different compilers of one kind: what is under the gate then is the
// compiler.
func recompiled(v *gates.Verdict) bool {
	if v == nil || len(v.Builds) != 2 {
		return false
	}
	before, after := v.Builds[0], v.Builds[1]
	kind := func(b gates.Build) string { word, _, _ := strings.Cut(b.Compiler, " "); return word }
	return kind(before) != "" && kind(before) == kind(after) && (before.Compiler != after.Compiler || before.Digest != after.Digest)
}

// Compilers is one table over all kernels that another compiler builds, worst first, as Markdown; it is empty where there are
// fewer than two.
func Compilers(all []*gates.Verdict) string {
	if t, ok := compilers(all); ok {
		return markdown([]block{t})
	}
	return ""
}

// TerminalCompilers is the same for a terminal.
func TerminalCompilers(all []*gates.Verdict, opt TerminalOptions) string {
	t, ok := compilers(all)
	if !ok {
		return ""
	}
	w := terminalWriter{TerminalOptions: opt}
	w.block(t)
	return strings.TrimRight(w.b.String(), "\n") + "\n"
}

func compilers(all []*gates.Verdict) (table, bool) {
	moved := slices.DeleteFunc(slices.Clone(all), func(v *gates.Verdict) bool { return !recompiled(v) })
	if len(moved) < 2 {
		return table{}, false
	}
	slices.SortStableFunc(moved, worse)
	var rows [][]line
	for _, v := range moved {
		before, after := v.Builds[0], v.Builds[1]
		was, is := resourcesOf(before), resourcesOf(after)
		rows = append(rows, []line{
			codeCell(v.Kernel), verdictCell(v), cell(codeWords(v)), cell(moves(was.Registers, is.Registers)), cell(moves(was.SpillStores, is.SpillStores)), speedCell(v),
			cell(compilerMove(before, after)),
		})
	}
	return newTable([]column{
		{title: "kernel"}, {title: "verdict"}, {title: "instructions", right: true}, {title: "registers", right: true, optional: true},
		{title: "spilled", right: true, optional: true, spare: 2}, {title: "worst speedup", right: true, optional: true}, {title: "compiler", spare: 1},
	}, rows), true
}

// worse orders kernels that do not pass first, then by lost time, then by growth of the code; equal
// code comes last.
func worse(a, b *gates.Verdict) int {
	rank := func(v *gates.Verdict) int {
		switch {
		case v.Outcome == gates.Defer && v.Reason.ProvenWrong():
			return 0
		case v.Outcome != gates.Pass:
			return 1
		case sameBuild(v):
			return 3
		}
		return 2
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(worstSpeedup(a), worstSpeedup(b)), cmp.Compare(growth(b), growth(a)))
}

func sameBuild(v *gates.Verdict) bool {
	return v.Builds[0].Code != "" && v.Builds[0].Code == v.Builds[1].Code
}

// worstSpeedup is the least of all shapes; 0 where nothing was timed.
func worstSpeedup(v *gates.Verdict) float64 {
	worst, found := 0.0, false
	for _, c := range v.Comparisons {
		if measured(c) && number.Finite(c.Speedup.Value) && (!found || c.Speedup.Value < worst) {
			worst, found = c.Speedup.Value, true
		}
	}
	return worst
}

// growth is by how much the instructions have become more, as a share.
func growth(v *gates.Verdict) float64 {
	if m := v.MachineCode; m != nil && len(m.Changes) > 0 {
		if c := m.Changes[0]; c.Baseline != nil && c.Candidate != nil && c.Baseline.All() > 0 {
			return float64(c.Candidate.All())/float64(c.Baseline.All()) - 1
		}
	}
	return 0
}

// codeWords says how the machine code changed.
func codeWords(v *gates.Verdict) string {
	switch {
	case sameBuild(v):
		return "the same code"
	case !v.Builds[1].OK:
		return "does not build"
	case v.MachineCode == nil || len(v.MachineCode.Changes) == 0:
		return "other code"
	}
	c := v.MachineCode.Changes[0]
	if c.Baseline == nil || c.Candidate == nil {
		return "other code"
	}
	if change := growth(v); change != 0 && number.Finite(change) {
		return fmt.Sprintf("%d → %d (%s)", c.Baseline.All(), c.Candidate.All(), number.Percent(change))
	}
	return fmt.Sprintf("%d → %d", c.Baseline.All(), c.Candidate.All())
}

// resourcesOf knows no figure where the compiler reported none.
func resourcesOf(b gates.Build) gates.Resources {
	if b.Resources == nil {
		return gates.Resources{}
	}
	return *b.Resources
}

// moves is a figure before and after, or once where it is the same.
func moves(before, after *int) string {
	switch {
	case after == nil:
		return dash
	case before == nil || *before == *after:
		return fmt.Sprint(*after)
	}
	return fmt.Sprintf("%d → %d", *before, *after)
}

func speedCell(v *gates.Verdict) line {
	if !slices.ContainsFunc(v.Comparisons, func(c gates.Comparison) bool { return measured(c) && number.Finite(c.Speedup.Value) }) {
		return cell(dash)
	}
	return cell(number.Speedup(worstSpeedup(v)))
}

// compilerMove is the compilers of both sides, by digest where only that differs.
func compilerMove(before, after gates.Build) string {
	if before.Compiler != after.Compiler {
		_, version, _ := strings.Cut(after.Compiler, " ")
		return before.Compiler + " → " + version
	}
	return before.Compiler + " " + cmp.Or(Short(before.Digest), "the runner's own") + " → " + cmp.Or(Short(after.Digest), "the runner's own")
}
