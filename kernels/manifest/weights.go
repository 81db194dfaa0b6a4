package manifest

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A TraceTool is a profiler whose traces can be read.
type TraceTool string

const (
	TraceTorch TraceTool = "torch"
	TraceNsys  TraceTool = "nsys"
)

var traceTools = []TraceTool{TraceTorch, TraceNsys}

func (t *TraceTool) UnmarshalStrict(n *strict.Node) { strict.Word(n, t, traceTools) }
func (t *TraceTool) JSONSchema() map[string]any     { return strict.WordSchema(traceTools) }

// Weights says how a program uses the kernel: the launches of each shape in one step, such as a
// forward pass, and what share of the step they take.
type Weights struct {
	Launches  map[string]float64 `yaml:"launches" required:"true" eg:"{small: 36, mission: 1}" bounds:"(above 0)" doc:"Launches per step, by shape. A shape that is not listed has none."`
	Warm      []string           `yaml:"warm" eg:"[mission]" default:"(none)" doc:"Shapes whose launches find their inputs in the L2 cache, because the kernel before has just written them. A weighted goal must be met with them cold and warm."`
	Kernel    quantity.Micros    `yaml:"kernel" eg:"320us" default:"(what the shapes take in the run)" doc:"Time of all these launches in a step of the trace."`
	Step      quantity.Micros    `yaml:"step" eg:"1840us" default:"(not known)" doc:"Time of the whole step in the trace. With it, reports say what a gain of the kernel means for the step."`
	Unmatched float64            `yaml:"unmatched" eg:"2" default:"0" bounds:"(not negative)" doc:"Launches per step of the trace at sizes that no shape has. The weights say nothing about them."`
	Tool      TraceTool          `yaml:"tool" eg:"torch" default:"(written by hand)" doc:"Profiler whose trace was read."`
	Trace     string             `yaml:"trace" eg:"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" default:"(none)" doc:"SHA-256 digest of the trace."`
}

// maxWeight is the largest number of launches per step.
const maxWeight = 1e9

var traceDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// ValidateStrict checks that the numbers can weigh shapes, and fit together.
func (w *Weights) ValidateStrict(n *strict.Node) {
	if !n.Clean() || !n.Mapping() {
		return
	}
	launches := n.Child("launches")
	if n.Has("launches") && len(w.Launches) == 0 {
		launches.Errorf("is empty (write e.g. {mission: 36}, or delete weights)")
	}
	for _, p := range launches.Pairs() {
		if launched := w.Launches[p.Key]; !(launched > 0) || launched > maxWeight {
			p.Value.Errorf("%v launches per step cannot weigh a shape (write a number above 0 and at most 1e9, or delete it)", launched)
		}
	}
	for field, value := range map[string]quantity.Micros{"kernel": w.Kernel, "step": w.Step} {
		if n.Has(field) && !(value > 0) {
			n.Child(field).Errorf("is no time (write e.g. 320us, or delete it)")
		}
	}
	switch {
	case n.Has("kernel") && !n.Has("step"):
		n.Child("kernel").Errorf("is read only with step (add step: 1840us, or delete it)")
	case w.Step > 0 && w.Kernel > w.Step:
		n.Child("kernel").Errorf("%s is longer than the step of %s (exchange them, or divide by the number of steps)", w.Kernel, w.Step)
	}
	if w.Unmatched < 0 {
		n.Child("unmatched").Errorf("%v is no number of launches (write e.g. 2, or delete it)", w.Unmatched)
	}
	if n.Has("trace") && !traceDigest.MatchString(w.Trace) {
		n.Child("trace").Errorf("%q is not the digest of a trace (write sha256: and 64 hexadecimal digits, or delete it)", w.Trace)
	}
}

// checkWeights checks that every weight is of a shape, and every warm shape has a weight.
func (c *checker) checkWeights() {
	for i, item := range c.n.Child("weights", "warm").Items() {
		name := c.m.Weights.Warm[i]
		switch {
		case c.m.Mode != ModeCUDA:
			c.errorf(item, "mode %s cannot time launches from a warm cache (delete warm)", c.m.Mode)
		case c.m.Weights.Launches[name] == 0:
			c.errorf(item, "%q has no launches (add it to launches, or delete it)", name)
		case slices.Index(c.m.Weights.Warm, name) < i:
			c.errorf(item, "%q is named twice (delete one)", name)
		}
	}
	for _, p := range c.n.Child("weights", "launches").Pairs() {
		if _, known := c.m.Shape(p.Key); !known {
			c.errorf(p, "is no shape of the manifest (write one of %s)", strings.Join(c.m.ShapeNames(), ", "))
		}
	}
}
