package gather

import (
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

// An error on a recorded input has two digits, and is never smaller than it was; other errors stay.
func TestErrorsOnRecordingsAreCoarse(t *testing.T) {
	for _, c := range []struct{ is, want float64 }{
		{0, 0}, {77.53125, 78}, {0.012345, 0.013}, {0.98, 0.98}, {0.0099, 0.0099}, {0.00991, 0.01}, {1, 1}, {123456, 130000}, {5e-324, 1e-300}, {1.7e308, 1.7e308},
	} {
		errors := func() *gates.Errors {
			return &gates.Errors{MaxAbs: c.is, MeanAbs: c.is, Norm: c.is, Outputs: []gates.OutputErrors{{Errors: gates.Errors{MaxAbs: c.is}}}}
		}
		recorded := gates.Case{Input: gates.Input{Distribution: string(distribution.RecordedAs("decode"))}, Errors: errors()}
		random := gates.Case{Input: gates.Input{Distribution: string(distribution.Normal)}, Errors: errors()}
		hideRecorded([]gates.Case{recorded, random})
		if e := recorded.Errors; e.MaxAbs != c.want || e.MeanAbs != c.want || e.Norm != c.want || e.Outputs[0].MaxAbs != c.want || e.MaxAbs < c.is {
			t.Errorf("%g is stored as %+v, want %g", c.is, e, c.want)
		}
		if random.Errors.MaxAbs != c.is {
			t.Errorf("%g on random inputs is stored as %g", c.is, random.Errors.MaxAbs)
		}
		series := []gates.Series{{Distributions: []string{"normal", "recorded:decode"}, Worst: errors(), AgainstBaseline: errors()}, {Distributions: []string{"normal"}, Worst: errors()}}
		hideRecordedSeries(series)
		if series[0].Worst.MaxAbs != c.want || series[0].AgainstBaseline.MaxAbs != c.want || series[1].Worst.MaxAbs != c.is {
			t.Errorf("timed launches: %g is stored as %g", c.is, series[0].Worst.MaxAbs)
		}
	}
}
