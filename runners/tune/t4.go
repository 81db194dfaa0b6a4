package tune

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
)

// The T4 format is the common results format of auto-tuners, which Kernel Tuner writes and reads.
type t4 struct {
	Schema  string     `json:"schema_version"`
	Results []t4Result `json:"results"`
}

type t4Result struct {
	Configuration map[string]any  `json:"configuration"`
	Objectives    []string        `json:"objectives"`
	Times         t4Times         `json:"times"`
	Invalidity    string          `json:"invalidity"`
	Correctness   float64         `json:"correctness"`
	Measurements  []t4Measurement `json:"measurements"`
}

// t4Times are in milliseconds.
type t4Times struct {
	Compilation float64   `json:"compilation_time"`
	Runtimes    []float64 `json:"runtimes"`
	Framework   float64   `json:"framework"`
	Search      float64   `json:"search_algorithm"`
	Validation  float64   `json:"validation"`
}

type t4Measurement struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// T4 is the results in Kernel Tuner's T4 format: every candidate that was built, with its time on
// each shape and its speedup. Duplicates and candidates that were not tried are left out.
func T4(r *Result) ([]byte, error) {
	out := t4{Schema: "1.0.0", Results: []t4Result{}}
	for _, t := range r.Tried {
		if t.Status == Duplicate || t.Status == Waiting || t.Status == Unknown {
			continue
		}
		one := t4Result{Configuration: map[string]any{"variant": t.Variant}, Objectives: []string{"speedup"}, Invalidity: invalidity(&t), Measurements: []t4Measurement{}, Times: t4Times{Runtimes: []float64{}}}
		for name, value := range r.Header.Space.settings(t.Candidate) {
			one.Configuration[name] = value
		}
		if t.Status != Failed {
			one.Correctness = 1
		}
		if t.Speedup != nil {
			one.Measurements = append(one.Measurements, t4Measurement{Name: "speedup", Value: 1 + *t.Speedup})
		}
		for _, shape := range slices.Sorted(maps.Keys(t.Micros)) {
			one.Measurements = append(one.Measurements, t4Measurement{Name: "time " + shape, Value: t.Micros[shape] / 1000, Unit: "ms"})
			one.Times.Runtimes = append(one.Times.Runtimes, t.Micros[shape]/1000)
		}
		one.Times.Compilation = 1000 * r.compiled[t.ID]
		out.Results = append(out.Results, one)
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing T4: %w", err)
	}
	return append(text, '\n'), nil
}

// invalidity is T4's word for how a candidate failed.
func invalidity(t *Tried) string {
	if t.Status != Failed {
		return "correct"
	}
	switch t.Gate {
	case gates.GateBuild:
		return "compile"
	case gates.GatePTXAS:
		return "constraints"
	case gates.GatePerformance:
		return "runtime"
	}
	return "correctness"
}
