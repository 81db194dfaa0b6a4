package gates

import (
	"fmt"
	"math"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// Explained is what a profiler counted of both sides, to explain a difference of their times. It is for
// the reader: no gate uses it.
type Explained struct {
	Tool    string           `json:"tool,omitempty"` // such as ncu 2025.3.1.0
	Shapes  []ExplainedShape `json:"shapes,omitempty"`
	Skipped string           `json:"skipped,omitempty"` // why there are no counters, with the remedy
	// Unsampled says why nothing is known about single lines and instructions, although there are counters.
	Unsampled string  `json:"unsampled,omitempty"`
	Seconds   float64 `json:"seconds,omitempty"`
}

// An ExplainedShape is one launch of each side on the same inputs. The baseline was profiled twice: what
// differs between the two is noise.
type ExplainedShape struct {
	Shape     string    `json:"shape"`
	Baseline  []Counted `json:"baseline"`
	Again     []Counted `json:"again,omitempty"`
	Candidate []Counted `json:"candidate"`
}

// Counted is the counters of one kernel of a launch, by the profiler's names. One that was not counted
// is absent.
type Counted struct {
	Kernel   string             `json:"kernel"`
	Counters map[string]float64 `json:"counters"`
	// Samples is how often a sampling profiler found warps in the kernel; Lines and Instructions have the places at which it found most.
	Samples      int                  `json:"samples,omitempty"`
	Lines        []StalledLine        `json:"lines,omitempty"`
	Instructions []StalledInstruction `json:"instructions,omitempty"`
}

// A StalledLine is how often a sampling profiler found warps at a line of the source.
type StalledLine struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Samples int    `json:"samples"`
	Reason  string `json:"reason,omitempty"` // the most frequent reason of a stall
}

// A StalledInstruction is how often a sampling profiler found warps at an instruction.
type StalledInstruction struct {
	At      int    `json:"at"` // in bytes from the beginning of the kernel
	Text    string `json:"text"`
	File    string `json:"file,omitempty"` // that it was compiled from, if that is known
	Line    int    `json:"line,omitempty"`
	Samples int    `json:"samples"`
	Reason  string `json:"reason,omitempty"`
}

// The bounds of what evidence holds of an explanation.
const (
	MaxExplainedShapes  = 4
	MaxExplainedKernels = 64
	MaxCounters         = 512
	MaxStalledLines     = 8 // and instructions
)

func (x *Explained) problem(shapes map[string]bool) (field, problem string) {
	if len(x.Shapes) > MaxExplainedShapes {
		return "shapes", fmt.Sprintf("are %d (at most %d)", len(x.Shapes), MaxExplainedShapes)
	}
	seen := map[string]bool{}
	for i, s := range x.Shapes {
		at := fmt.Sprintf("shapes[%d]", i)
		if !shapes[s.Shape] || seen[s.Shape] {
			return at + ".shape", fmt.Sprintf("%q is not among the shapes, or is there twice", s.Shape)
		}
		seen[s.Shape] = true
		for _, side := range []struct {
			name    string
			kernels []Counted
		}{{"baseline", s.Baseline}, {"again", s.Again}, {"candidate", s.Candidate}} {
			if len(side.kernels) > MaxExplainedKernels {
				return at + "." + side.name, fmt.Sprintf("has %d kernels (at most %d)", len(side.kernels), MaxExplainedKernels)
			}
			for k, c := range side.kernels {
				if f, problem := c.problem(); problem != "" {
					return fmt.Sprintf("%s.%s[%d].%s", at, side.name, k, f), problem
				}
			}
		}
	}
	return "", ""
}

func (c Counted) problem() (field, problem string) {
	switch {
	case c.Kernel == "" || len(c.Kernel) > maxCodeText:
		return "kernel", "is empty or longer than any name"
	case len(c.Counters) > MaxCounters:
		return "counters", fmt.Sprintf("are %d (at most %d)", len(c.Counters), MaxCounters)
	case len(c.Lines) > MaxStalledLines:
		return "lines", fmt.Sprintf("are %d (at most %d)", len(c.Lines), MaxStalledLines)
	case len(c.Instructions) > MaxStalledLines:
		return "instructions", fmt.Sprintf("are %d (at most %d)", len(c.Instructions), MaxStalledLines)
	case c.Samples < 0:
		return "samples", fmt.Sprintf("is %d", c.Samples)
	}
	for name, v := range c.Counters {
		if !policy.IsMetric(name) || len(name) > maxCodeText || math.IsNaN(v) || math.IsInf(v, 0) {
			return "counters", fmt.Sprintf("has %.60q with the value %v", name, v)
		}
	}
	for i, l := range c.Lines {
		if l.File == "" || len(l.File) > maxCodeText || len(l.Reason) > maxCodeText || l.Line < 1 || l.Samples < 0 {
			return fmt.Sprintf("lines[%d]", i), "is not a line with a number of samples"
		}
	}
	for i, s := range c.Instructions {
		if s.Text == "" || max(len(s.Text), len(s.File), len(s.Reason)) > maxCodeText || min(s.At, s.Line, s.Samples) < 0 {
			return fmt.Sprintf("instructions[%d]", i), "is not an instruction with a number of samples"
		}
	}
	return "", ""
}
