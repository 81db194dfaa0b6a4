package facts

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates/number"
)

// A NoWeights is a goal for the weighted sum, and a manifest without weights.
type NoWeights struct{}

func (NoWeights) Sentence() string {
	return "the policy asks for a weighted speedup, and the manifest of the base has no weights"
}

// AddWeights is the advice to it.
type AddWeights struct{}

func (AddWeights) Step(Reader) string {
	return "add weights to the manifest on the base branch: `kernelgate weights TRACE` reads them from a trace of a profiler"
}

// A WeightsLack is shapes with a weight that one of the sides does not support.
type WeightsLack struct{ Shapes []string }

func (w WeightsLack) Sentence() string {
	return fmt.Sprintf("the weighted speedup needs the time on %s, which one of the sides does not support", strings.Join(w.Shapes, ", "))
}

// SupportShapes is the advice to it.
type SupportShapes struct{ Shapes []string }

func (s SupportShapes) Step(Reader) string {
	return fmt.Sprintf("support %s: the weights of the base's manifest count launches of it", strings.Join(s.Shapes, ", "))
}

// BringStep is the advice with the time that all launches of a step must come down to.
type BringStep struct {
	Micros float64
	Warm   bool // some of them from a warm cache
}

func (b BringStep) Step(Reader) string {
	step := "step"
	if b.Warm {
		step = "warm step"
	}
	return fmt.Sprintf("bring all launches of a %s together to ≤\u00a0%s\u00a0µs", step, number.AtMost(b.Micros))
}

// A StepAlone is the weighted speedup in batches and by launches that ran alone.
type StepAlone struct {
	Refuted bool // they show that the goal is missed; else they do not confirm it yet
	Batch   float64
	Speedup Estimate // alone
}

func (s StepAlone) Sentence() string {
	yet := " yet"
	if s.Refuted {
		yet = ""
	}
	return fmt.Sprintf("single launches do not confirm it%s: the weighted speedup is %s in batches and %s on their own", yet, Estimate{Value: s.Batch}, s.Speedup)
}
