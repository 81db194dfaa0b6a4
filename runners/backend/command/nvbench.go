package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// nvbenchBenchmark is the part of one benchmark in nvbench's JSON (file version 1) that is used
// here. nvbench writes numbers as strings, to lose no digit.
type nvbenchBenchmark struct {
	Name   string         `json:"name"`
	States []nvbenchState `json:"states"`
}

type nvbenchState struct {
	Name       string         `json:"name"`
	AxisValues []nvbenchValue `json:"axis_values"`
	Summaries  []struct {
		Tag  string         `json:"tag"`
		Data []nvbenchValue `json:"data"`
	} `json:"summaries"`
	IsSkipped  bool   `json:"is_skipped"`
	SkipReason string `json:"skip_reason"`
}

type nvbenchValue struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// nvbenchTags are the summaries that represent a state, the best first. A process is summarised by
// a median, and older versions have only the mean.
var nvbenchTags = []string{"nv/cold/time/gpu/median", "nv/cold/time/gpu/mean"}

// nvbench reads one summary per shape: the state whose axis "shape" has the shape's name, or whose
// axes have its dims, or the only state of a benchmark that is named after it.
func (v vocabulary) nvbench(o object, r *report) error {
	var benchmarks []nvbenchBenchmark
	if err := json.Unmarshal(o.value("benchmarks"), &benchmarks); err != nil {
		return fmt.Errorf("this nvbench JSON can not be read: %w (file version 1 is)", err)
	}
	origin := map[string]string{}
	for _, b := range benchmarks {
		for _, state := range b.States {
			shape, ok := v.nvbenchShape(b, state)
			if !ok {
				continue
			}
			label := oneLine(b.Name + " [" + state.Name + "]")
			if first, ok := origin[shape]; ok {
				return fmt.Errorf("the states %s and %s are both %s (choose one with --benchmark, --axis or --devices)", first, label, shape)
			}
			origin[shape] = label
			if state.IsSkipped {
				r.problem = oneLine(label + " was skipped: " + state.SkipReason)
				return nil
			}
			nanos, err := state.nanos()
			if err != nil {
				return fmt.Errorf("state %s: %w", label, err)
			}
			r.times[shape] = append(r.times[shape], nanos)
		}
	}
	return nil
}

func (v vocabulary) nvbenchShape(b nvbenchBenchmark, s nvbenchState) (string, bool) {
	axes := map[string]string{}
	for _, a := range s.AxisValues {
		axes[a.Name] = a.Value
	}
	for _, key := range []string{"shape", "Shape"} {
		if v.byName(axes[key]) {
			return axes[key], true
		}
	}
	if name, ok := v.byDims(axes); ok {
		return name, true
	}
	return b.Name, v.byName(b.Name)
}

func (s nvbenchState) nanos() (float64, error) {
	for _, tag := range nvbenchTags {
		for _, summary := range s.Summaries {
			if summary.Tag != tag {
				continue
			}
			for _, d := range summary.Data {
				if d.Name != "value" {
					continue
				}
				seconds, err := strconv.ParseFloat(d.Value, 64)
				if err != nil {
					return 0, fmt.Errorf("%s is %q, not a number of seconds", tag, oneLine(d.Value))
				}
				if err := plausible(seconds * 1e9); err != nil {
					return 0, fmt.Errorf("%s is %v s: %w", tag, seconds, err)
				}
				return seconds * 1e9, nil
			}
		}
	}
	return 0, errors.New("has no nv/cold/time/gpu/mean (was it measured on a GPU?)")
}
