package gather

import (
	"math"
	"slices"
	"strconv"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

// hideRecorded rounds the errors of cases on recorded inputs. Evidence holds no value of a recording, and the largest error of a
// kernel that writes zeros is the largest expected value: with all its digits, an author could read a recording bit by bit.
func hideRecorded(cases []gates.Case) {
	for i := range cases {
		if c := &cases[i]; distribution.Kind(c.Distribution).FromRecording() {
			for _, e := range []*gates.Errors{c.Errors, c.EndToEnd, c.Baseline, c.BaselineEndToEnd} {
				coarse(e)
			}
		}
	}
}

// hideRecordedSeries does the same for the outputs of timed launches.
func hideRecordedSeries(series []gates.Series) {
	for _, s := range series {
		if slices.ContainsFunc(s.Distributions, func(kind string) bool { return distribution.Kind(kind).FromRecording() }) {
			coarse(s.Worst)
			coarse(s.AgainstBaseline)
		}
	}
}

func coarse(e *gates.Errors) {
	if e == nil {
		return
	}
	for _, figure := range []*float64{&e.MaxAbs, &e.MeanAbs, &e.Norm} {
		*figure = twoDigitsUp(*figure)
	}
	for i := range e.Outputs {
		coarse(&e.Outputs[i].Errors)
	}
}

// twoDigitsUp returns the least number of two digits that is not below x: no error looks smaller than it is.
func twoDigitsUp(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 0) {
		return x
	}
	const least = 1e-300 // nothing smaller has two digits that can be told
	x = max(x, least)
	unit := math.Floor(math.Log10(x)) - 1
	digits := math.Ceil(x/math.Pow(10, unit) - 1e-9)
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(digits, 'f', 0, 64)+"e"+strconv.FormatFloat(unit, 'f', 0, 64), 64)
	if err != nil || math.IsInf(rounded, 0) {
		return x
	}
	return rounded
}
