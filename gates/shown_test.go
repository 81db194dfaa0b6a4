package gates

import (
	"strings"
	"testing"
)

// Of kernels with equally few blocks the first is named, and one of which nothing is known makes all unknown.
func TestLeastBlocks(t *testing.T) {
	use := func(entry string, registers int) KernelUse {
		return KernelUse{Entry: entry, Resources: Resources{Registers: &registers, BlockThreads: new(256)}}
	}
	got, blocks, _, ok := leastBlocks([]KernelUse{use("a", 32), use("b", 128), use("c", 128), use("d", 64)}, "sm_90")
	if !ok || got.Entry != "b" || blocks != 2 {
		t.Errorf("%s with %d blocks, %v", got.Entry, blocks, ok)
	}
	for name, all := range map[string][]KernelUse{"none": nil, "an unknown one": {use("a", 32), {Entry: "b"}}} {
		if got, blocks, limit, ok := leastBlocks(all, "sm_90"); ok || got.Entry != "" || blocks != 0 || limit != "" {
			t.Errorf("%s: %s, %d, %s, %v", name, got.Entry, blocks, limit, ok)
		}
	}
	most := MaxResources([]KernelUse{use("a", 32), use("b", 128), {Resources: Resources{Registers: new(64)}}})
	if *most.Registers != 128 || most.BlockThreads != nil {
		t.Errorf("%+v", most)
	}
}

func TestSpilledBytes(t *testing.T) {
	for want, r := range map[string]Resources{
		"12 B spilled": {SpillStores: new(4), SpillLoads: new(8)}, "4 B spilled": {SpillStores: new(4)}, "": {SpillLoads: new(8)},
		"64 registers, 1.5 KiB shared memory": {Registers: new(64), StaticShared: new(512), DynamicShared: new(1024)}, "16B stack, 2KiB code size": {Stack: new(16), CodeSize: new(2048)},
	} {
		if got := figuresOf([]KernelUse{{Resources: r}}, "").String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestLabelsOfShapes(t *testing.T) {
	e := &Evidence{Shapes: []Shape{{Name: "mission", Dims: "N=1"}, {Name: "secret", Dims: "N=7 M=3", Secret: true}}}
	for name, want := range map[string]string{"mission": "mission", "secret": "secret (N=7 M=3)", "other": "other"} {
		if got := e.labelOf(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestFailsAsBefore(t *testing.T) {
	crash, timeout := &Failure{Kind: FailureCrash}, &Failure{Kind: FailureTimeout}
	for name, c := range map[string]struct {
		k    Case
		want bool
	}{
		"no failure": {Case{}, false}, "a new one": {Case{Failure: crash}, false}, "the same": {Case{Failure: crash, BaselineFailure: crash}, true},
		"another": {Case{Failure: crash, BaselineFailure: timeout}, false}, "no longer": {Case{BaselineFailure: crash}, false},
	} {
		if got := c.k.FailsAsBefore(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestBoundsOfMachineCode(t *testing.T) {
	changes := func(n int) *MachineCode {
		m := &MachineCode{}
		for range n {
			m.Changes = append(m.Changes, CodeChange{Kernel: "k", Diff: strings.Repeat("x", MaxCodeDiff)})
		}
		return m
	}
	if field, problem := changes(4).problem(); field != "" {
		t.Errorf("%s %s", field, problem)
	}
	if field, _ := changes(5).problem(); field != "changes" {
		t.Errorf("five changes: %q", field)
	}
	for want, m := range map[string]*MachineCode{
		"tool": {Tool: strings.Repeat("x", 301)}, "more": {More: -1}, "changes[0].kernel": {Changes: []CodeChange{{Kernel: strings.Repeat("x", 301)}}},
		"changes[0].diff":      {Changes: []CodeChange{{Kernel: "k", Diff: strings.Repeat("x", MaxCodeDiff+1)}}},
		"changes[0].candidate": {Changes: []CodeChange{{Kernel: "k", Candidate: &Instructions{Other: -1}}}},
		"":                     {Tool: strings.Repeat("x", 300), Changes: []CodeChange{{Kernel: strings.Repeat("x", 300), Baseline: &Instructions{}}}},
	} {
		if field, problem := m.problem(); field != want {
			t.Errorf("%q %s, want %q", field, problem, want)
		}
	}
}
