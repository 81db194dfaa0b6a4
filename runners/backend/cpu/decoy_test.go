package cpu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// deceives is a kernel that is right for most inputs. For some it returns values at the edge of the
// tolerance, on the side away from the baseline: right, and far from the baseline's by every
// measure. For others it is wrong in a few small elements, which is less far by every measure.
const deceives = include + `
void scale(const float *x, float *y, int32_t N)
{
    static int launches;
    launches++;
    uint32_t h = 0;
    for (int i = 0; i < N && i < 8; i++) {
        uint32_t b;
        memcpy(&b, x + i, 4);
        h = (h ^ b) * 2654435761u;
    }
    h >>= 16;
    for (int i = 0; i < N; i++)
        y[i] = 2.f * x[i];
    if (%s)
        for (int i = 0; i < N; i++)
            y[i] = 2.f * 0.991f * x[i];
    if (%s)
        for (int i = 0, left = %d; i < N && left > 0; i++)
            if (y[i] > 0.01f && y[i] < 0.025f) {
                y[i] = 0;
                left--;
            }
}
`

// TestDecoysHideNothing checks that wrong launches are compared with the reference although right
// ones are farther from the baseline, and that an honest kernel that rounds in the other direction
// than the baseline costs no more comparisons.
func TestDecoysHideNothing(t *testing.T) {
	a := newArenaOf(t, strings.Replace(correctOnly, "<= 0.1%", "<= 5%", 1), 1000, include+"void scale(const float *x, float *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = 2.f * 1.005f * x[i]; }\n", reference)
	a.manifest.Tolerance = manifest.Tolerance{Abs: 1e-4, Rel: 1e-2}
	mission, _ := a.manifest.Shape("mission")
	for _, c := range []struct {
		name, decoy, wrong string
		elements           int
		found              bool
	}{
		{"few decoys", "h % 64 == 1", "h % 128 == 2", 20, true},
		{"half are decoys", "h % 2 == 1", "h % 256 == 2", 20, true},
		{"one element", "h % 64 == 1", "h % 128 == 2", 1, true},
		{"late in a batch", "h % 64 == 1", "launches > 40 && h % 64 == 2", 5, true},
		{"the first of a process", "h % 64 == 1", "launches == 1 && h % 4 == 2", 5, true},
		{"honest", "1", "0", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "few decoys" && c.name != "honest" {
				long.Test(t)
			}
			t.Parallel()
			w := a.worker(t, strings.ReplaceAll(c.name, " ", "-"), fmt.Sprintf(deceives, c.decoy, c.wrong, c.elements))
			round, err := w.Round(t.Context(), &policy.PerformanceGate{Pairs: 10}, []manifest.Shape{mission}, silent{})
			if err != nil || round.Failure != nil || len(round.Series) != 1 {
				t.Fatalf("%+v %v", round, err)
			}
			s := round.Series[0]
			if (s.Apart.Launches > 0) != c.found || s.Apart.Compared != min(s.Apart.Launches, apart) || (s.Worst.Bad > 0) != c.found {
				t.Errorf("%+v of %d launches are apart, and the reference saw %+v", *s.Apart, s.Verified, s.Worst)
			}
			if s.Beyond.Compared != references || s.Beyond.Launches <= references {
				t.Errorf("%+v are beyond the tolerance", *s.Beyond)
			}
			gate := a.policy.Rules[0].Gates.Correctness
			if !c.found && gates.SeparationOf(gate).Apart(*s.AgainstBaseline, 0) {
				t.Errorf("an honest kernel is apart: %+v", *s.AgainstBaseline)
			}
		})
	}
}
