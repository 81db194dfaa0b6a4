package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// googleRun is the part of one entry of Google Benchmark's JSON that is used here.
type googleRun struct {
	Name          string   `json:"name"`
	RunName       string   `json:"run_name"`
	RunType       string   `json:"run_type"` // absent before version 1.5: iteration
	AggregateName string   `json:"aggregate_name"`
	RealTime      *float64 `json:"real_time"`
	TimeUnit      string   `json:"time_unit"`
	ErrorOccurred bool     `json:"error_occurred"`
	ErrorMessage  string   `json:"error_message"`
	Skipped       bool     `json:"skipped"`
	SkipMessage   string   `json:"skip_message"`
}

// googleBenchmark reads the repetitions of every benchmark that is named after a shape, or that
// takes a shape's dims as named arguments. If only aggregates were printed, it uses the median.
func (v vocabulary) googleBenchmark(o object, r *report) error {
	var runs []googleRun
	if err := json.Unmarshal(o.value("benchmarks"), &runs); err != nil {
		return fmt.Errorf("this Google Benchmark JSON can not be read: %w", err)
	}
	times, medians, origin := map[string][]float64{}, map[string][]float64{}, map[string]string{}
	for _, run := range runs {
		name := cmp.Or(run.RunName, run.Name)
		shape, ok := v.googleShape(name)
		if !ok {
			continue
		}
		if run.ErrorOccurred || run.Skipped {
			r.problem = oneLine(name + ": " + cmp.Or(run.ErrorMessage, run.SkipMessage, "skipped"))
			return nil
		}
		to := times
		switch {
		case run.RunType == "aggregate" && run.AggregateName == "median":
			to = medians
		case run.RunType == "aggregate":
			continue
		}
		if first, ok := origin[shape]; ok && first != name {
			return fmt.Errorf("the benchmarks %s and %s are both named after %s (choose one with --benchmark_filter)", oneLine(first), oneLine(name), shape)
		}
		origin[shape] = name
		nanos, err := run.nanos()
		if err != nil {
			return fmt.Errorf("benchmark %s: %w", oneLine(name), err)
		}
		to[shape] = append(to[shape], nanos)
	}
	for shape := range origin {
		if len(times[shape]) == 0 {
			times[shape] = medians[shape]
		}
		r.times[shape] = append(r.times[shape], times[shape]...)
	}
	return nil
}

func (run googleRun) nanos() (float64, error) {
	unit := manifest.Unit(run.TimeUnit)
	switch {
	case run.RealTime == nil:
		return 0, errors.New("has no real_time")
	case unit.Micros() == 0:
		return 0, fmt.Errorf("time_unit is %q (ns, us, ms and s are read)", oneLine(run.TimeUnit))
	}
	nanos := *run.RealTime * unit.Micros() * 1e3
	if err := plausible(nanos); err != nil {
		return 0, fmt.Errorf("real_time is %v %s: %w", *run.RealTime, run.TimeUnit, err)
	}
	return nanos, nil
}

// googleShape finds the shape in a name such as BM_sdpa/mission,
// BM_sdpa/mission/repeats:5/manual_time or BM_sdpa/B:1/S:512.
func (v vocabulary) googleShape(name string) (string, bool) {
	parts := strings.Split(name, "/")
	arguments := map[string]string{}
	for i := len(parts) - 1; i >= 0; i-- {
		key, value, named := strings.Cut(parts[i], ":")
		switch {
		case named:
			arguments[key] = value
		case slices.Contains([]string{"real_time", "manual_time", "process_time"}, parts[i]):
		case v.byName(parts[i]):
			return parts[i], true
		default:
			return v.byDims(arguments)
		}
	}
	return v.byDims(arguments)
}

func (v vocabulary) byName(name string) bool {
	return slices.ContainsFunc(v.asked, func(s manifest.Shape) bool { return s.Name == name })
}

// byDims finds the shape whose dims all have the given values.
func (v vocabulary) byDims(values map[string]string) (string, bool) {
	for _, s := range v.asked {
		fits := len(s.Dims) > 0
		for _, d := range s.Dims {
			fits = fits && values[d.Name] == strconv.Itoa(d.Value)
		}
		if fits {
			return s.Name, true
		}
	}
	return "", false
}
