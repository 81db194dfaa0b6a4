package check

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// FuzzParseDims checks that parsed dims are formatted as a user would write them again, and that
// nothing else is parsed.
func FuzzParseDims(f *testing.F) {
	like := manifest.Dims{{Name: "R", Value: 1}, {Name: "C", Value: 2}}
	for _, text := range []string{"R=5,C=63", "C=63,R=5", "R=5", "R=5,C=6,R=7", "R=-1,C=2", "R=99999999999,C=1", "", ",", "R=,C=", "R = 5, C = 6", "R=5,C=63,X=1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		dims, err := manifest.ParseDims(text, like)
		if err != nil {
			if len(err.Error()) == 0 || strings.Contains(err.Error(), "\n") && !strings.Contains(text, "\n") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		again, err := manifest.ParseDims(strings.ReplaceAll(dims.String(), " ", ","), like)
		if err != nil || again.String() != dims.String() || len(dims) != 2 || dims[0].Value < 0 || dims[1].Value < 0 {
			t.Errorf("%q is %s, and then %s, %v", text, dims, again, err)
		}
	})
}
