package cuda

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners/profile"
)

// Counters are told of the kernel that they were counted of, or not at all.
func TestProfiledKernelsAreThoseOfTheLaunch(t *testing.T) {
	symbols := map[string]string{"split<64>": "_Z5splitILi64EEvPf", "combine": "_Z7combinePf"}
	split, combine := profile.Launch{Kernel: "_Z5splitILi64EEvPf"}, profile.Launch{Kernel: "_Z7combinePf"}
	for name, c := range map[string]struct {
		launches []profile.Launch
		entries  []string
		says     string
	}{
		"both":           {[]profile.Launch{split, combine}, []string{"split<64>", "combine"}, ""},
		"one twice":      {[]profile.Launch{split, combine, combine}, []string{"split<64>", "combine", "combine"}, ""},
		"the other way":  {[]profile.Launch{combine, split}, []string{"split<64>", "combine"}, "ncu has _Z7combinePf as kernel 1 of the launch, which is split<64>"},
		"one is missing": {[]profile.Launch{split}, []string{"split<64>", "combine"}, "ncu counted 1 kernels of a launch of 2"},
		"a launch of one, however ncu writes its name": {[]profile.Launch{{Kernel: "split"}}, []string{"split<64>"}, ""},
	} {
		err := inOrder(c.launches, c.entries, symbols)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
