package report

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// rebuilt is a kernel that two compilers made.
func rebuilt(kernel string, before, after int, change func(*gates.Verdict)) *gates.Verdict {
	use := func(registers int) *gates.Resources {
		return &gates.Resources{Registers: &registers, SpillStores: ptr(0)}
	}
	v := &gates.Verdict{
		Kernel: kernel, Outcome: gates.Pass,
		Builds: []gates.Build{
			{Compiler: "triton 3.6.0", OK: true, Code: "a", Resources: use(32)}, {Compiler: "triton 3.9.0", OK: true, Code: "b", Resources: use(40)},
		},
		MachineCode: &gates.MachineCode{Changes: []gates.CodeChange{{Kernel: kernel, Baseline: &gates.Instructions{Other: before}, Candidate: &gates.Instructions{Other: after}, Diff: "-A"}}},
	}
	change(v)
	return v
}

func TestCompilers(t *testing.T) {
	as := func(*gates.Verdict) {}
	other := rebuilt("untouched", 10, 10, func(v *gates.Verdict) { v.Builds[1].Compiler = v.Builds[0].Compiler })
	all := []*gates.Verdict{
		rebuilt("same", 0, 0, func(v *gates.Verdict) {
			v.Builds[1].Code, v.MachineCode, v.Builds[1].Resources = "a", nil, v.Builds[0].Resources
		}),
		rebuilt("shorter", 200, 150, as),
		rebuilt("longer", 100, 180, as),
		nil, other,
		rebuilt("slower", 100, 101, func(v *gates.Verdict) {
			v.Outcome, v.Reason = gates.Defer, gates.ReasonRegression
			v.Comparisons = []gates.Comparison{timed("mission", "S=512", "guard", goalGuard, gates.Failed, 100, 107, 0.004), timed("small", "S=32", "guard", goalGuard, gates.Passed, 9, 9, 0.004)}
		}),
		rebuilt("`broken` | <b>", 0, 0, func(v *gates.Verdict) {
			v.Outcome, v.Reason, v.Builds[1].OK, v.MachineCode, v.Builds[1].Resources = gates.Defer, gates.ReasonBuild, false, nil, nil
		}),
		rebuilt("unproven", 100, 100, func(v *gates.Verdict) { v.Outcome, v.Reason = gates.Defer, gates.ReasonInconclusive }),
	}
	golden(t, "compilers.md", Compilers(all))
	golden(t, "compilers.txt", TerminalCompilers(all, TerminalOptions{Width: 120}))
	text := Compilers(all)
	last := -1
	for _, kernel := range []string{"slower", "broken", "unproven", "longer", "shorter", "same"} {
		at := strings.Index(text, kernel)
		if at < last {
			t.Errorf("%s stands above what is worse", kernel)
		}
		last = at
	}
	if strings.Contains(text, "untouched") {
		t.Error("a kernel that the same compiler builds is in the table")
	}
	if got := Compilers([]*gates.Verdict{all[1], other, nil}); got != "" {
		t.Errorf("one kernel has a table of its own: %s", got)
	}
	pinned := rebuilt("pinned", 1, 1, func(v *gates.Verdict) {
		v.Builds[1].Compiler, v.Builds[1].Digest = v.Builds[0].Compiler, "sha256:0123456789abcdef"
	})
	if !recompiled(pinned) || recompiled(nil) || recompiled(&gates.Verdict{}) {
		t.Error("another digest is another compiler, and nothing is none")
	}
}
