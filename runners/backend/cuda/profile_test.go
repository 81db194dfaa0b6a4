package cuda

import (
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/why"
	"github.com/kernelgate/kernelgate/runners/build/inspect"
)

// Counters are told of the kernel that they were counted of, or not at all.
func TestProfiledKernelsAreThoseOfTheLaunch(t *testing.T) {
	symbols := map[string]string{"split<64>": "_Z5splitILi64EEvPf", "combine": "_Z7combinePf"}
	split, combine := inspect.Launch{Kernel: "_Z5splitILi64EEvPf"}, inspect.Launch{Kernel: "_Z7combinePf"}
	for name, c := range map[string]struct {
		launches []inspect.Launch
		entries  []string
		says     string
	}{
		"both":           {[]inspect.Launch{split, combine}, []string{"split<64>", "combine"}, ""},
		"one twice":      {[]inspect.Launch{split, combine, combine}, []string{"split<64>", "combine", "combine"}, ""},
		"the other way":  {[]inspect.Launch{combine, split}, []string{"split<64>", "combine"}, "ncu has _Z7combinePf as kernel 1 of the launch, which is split<64>"},
		"one is missing": {[]inspect.Launch{split}, []string{"split<64>", "combine"}, "ncu counted 1 kernels of a launch of 2"},
		"a launch of one, however ncu writes its name": {[]inspect.Launch{{Kernel: "split"}}, []string{"split<64>"}, ""},
	} {
		err := inOrder(c.launches, c.entries, symbols)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A gate may ask for a metric that is counted anyway: ncu is asked for each once, and for no other name, on every shape.
func TestCountersWithMetricsOfAGate(t *testing.T) {
	all := countersWith([]string{"dram__bytes.sum.custom", why.Counters[0], why.Counters[len(why.Counters)-1]})
	if len(all) != len(why.Counters)+1 || slices.Contains(all, "") || !slices.IsSorted(all) {
		t.Errorf("%d counters of %d and one more: %q", len(all), len(why.Counters), all)
	}
}
