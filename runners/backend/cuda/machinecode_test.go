package cuda

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/runners/build/toolchain"
)

// Kernels are compared with those of the same name, whatever stands between them; what is on one side alone is told so.
func TestPaired(t *testing.T) {
	at := func(s string) toolchain.CodePlace { return toolchain.CodePlace{Path: "/" + s, Symbol: s} }
	kernel := func(entry, code string) launchedKernel { return launchedKernel{entry, code, at(code)} }
	for name, c := range map[string]struct {
		before, after []launchedKernel
		want          []toolchain.CodePair
	}{
		"one of one":  {[]launchedKernel{kernel("old", "a")}, []launchedKernel{kernel("new", "b")}, []toolchain.CodePair{{Kernel: "new", Baseline: at("a"), Candidate: at("b")}}},
		"the same":    {[]launchedKernel{kernel("k", "a")}, []launchedKernel{kernel("k", "a")}, nil},
		"one more":    {[]launchedKernel{kernel("k", "a")}, []launchedKernel{kernel("pre", "c"), kernel("k", "b")}, []toolchain.CodePair{{Kernel: "k", Baseline: at("a"), Candidate: at("b")}, {Kernel: "pre", Candidate: at("c")}}},
		"one is gone": {[]launchedKernel{kernel("k", "a"), kernel("post", "c")}, []launchedKernel{kernel("k", "b")}, []toolchain.CodePair{{Kernel: "k", Baseline: at("a"), Candidate: at("b")}, {Kernel: "post", Baseline: at("c")}}},
	} {
		if diff := cmp.Diff(c.want, paired(c.before, c.after)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}
