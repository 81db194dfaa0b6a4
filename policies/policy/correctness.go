package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A CorrectnessGate says on which inputs the candidate runs and how far its output may be from the
// reference's.
type CorrectnessGate struct {
	Enforcement
	Deadline
	Shapes        Shapes                            `yaml:"shapes" eg:"[small, mission]" default:"all" doc:"Shapes of the manifest: all, first (the first one in the manifest), or a list."`
	Seeds         []int64                           `yaml:"seeds" eg:"[0, 1, 2]" default:"[0, 1, 2]" bounds:"1 to 100 entries" doc:"Seeds of the inputs. Every shape is tested with every seed and distribution."`
	Distributions []distribution.Kind               `yaml:"distributions" eg:"[normal, dominant]" default:"[normal]" doc:"Kinds of inputs: distributions, recorded:NAME for a recording of the manifest, or recorded for all of them. Launches are timed on the same kinds. A recording applies to its own shape."`
	SecretCases   quantity.Count                    `yaml:"secret_cases" eg:"6" default:"0" bounds:"0 to 1000" doc:"Number of cases with shapes and seeds that are random in every run."`
	MaxAbs        *quantity.Bound[quantity.Number]  `yaml:"max_abs_error" elsewhere:"atol" eg:"<= 0.06" bounds:"(<= or <)" doc:"Largest |got − want| of an element."`
	MeanAbs       *quantity.Bound[quantity.Number]  `yaml:"mean_abs_error" eg:"<= 0.02" bounds:"(<= or <)" doc:"Mean |got − want| over the output."`
	Bad           *quantity.Bound[quantity.Percent] `yaml:"bad_elements" eg:"<= 1%" default:"<= 0%" bounds:"(<= or <)" doc:"Share of elements outside of the manifest's tolerance, in cases and in timed launches. none removes this bound, and then max_abs_error is required."`
	Norm          *quantity.Bound[quantity.Percent] `yaml:"norm_error" eg:"<= 1%" default:"(required if the gate decides)" bounds:"(<= or <, below 100%)" doc:"‖got − want‖ / ‖want‖ over the whole output."`
	BitParity     bool                              `yaml:"bit_parity" eg:"true" default:"false" doc:"The output must equal that of the baseline bit for bit."`
	Determinism   bool                              `yaml:"determinism" eg:"true" default:"false" doc:"Two launches on the same input must give the same bits."`
	Existing      Existing                          `yaml:"existing" eg:"defer" default:"report" doc:"Cases that the baseline fails at least as badly: report them and do not decide by them, or defer."`
	EndToEnd      *ErrorBounds                      `yaml:"end_to_end" eg:"{max_abs_error: \"<= 0.06\"}" doc:"Bounds on the error against the reference on the inputs before quantisation (normal distribution)."`
}

// ErrorBounds bound the errors of one comparison.
type ErrorBounds struct {
	MaxAbs  *quantity.Bound[quantity.Number]  `yaml:"max_abs_error" elsewhere:"atol" eg:"<= 0.06" bounds:"(<= or <)" doc:"Largest |got − want| of an element."`
	MeanAbs *quantity.Bound[quantity.Number]  `yaml:"mean_abs_error" eg:"<= 0.02" bounds:"(<= or <)" doc:"Mean |got − want| over the output."`
	Bad     *quantity.Bound[quantity.Percent] `yaml:"bad_elements" eg:"<= 1%" bounds:"(<= or <)" doc:"Share of elements beyond the manifest's tolerance."`
	Norm    *quantity.Bound[quantity.Percent] `yaml:"norm_error" eg:"<= 1%" bounds:"(<= or <)" doc:"‖got − want‖ / ‖want‖ over the whole output."`
}

// Bounds returns the bounds for the candidate's own error.
func (g *CorrectnessGate) Bounds() ErrorBounds {
	return ErrorBounds{MaxAbs: g.MaxAbs, MeanAbs: g.MeanAbs, Bad: g.Bad, Norm: g.Norm}
}

// A run compares every shape with every seed and distribution, so both numbers are limited.
const (
	maxSeeds  = 100
	maxSecret = 1000
)

func (g *CorrectnessGate) fill(n *strict.Node) {
	g.Shapes.fill()
	if !n.Has("seeds") {
		g.Seeds = []int64{0, 1, 2}
	}
	if !n.Has("distributions") {
		g.Distributions = []distribution.Kind{distribution.Normal}
	}
	g.Existing = cmp.Or(g.Existing, ExistingReports)
	// The manifest's tolerance applies unless the policy overrides it.
	if !n.Has("bad_elements") {
		g.Bad = &quantity.Bound[quantity.Percent]{Op: quantity.AtMost}
	}
}

func (g *CorrectnessGate) check(n *strict.Node, _ rest) {
	g.checkInputs(n)
	switch {
	case g.Norm == nil && g.Decides():
		// With N(0,1) inputs an attention output is so small that an absolute bound alone passes a
		// kernel that writes zeros.
		n.Child("norm_error").Errorf("is required: an absolute bound alone passes a kernel that writes zeros (write e.g. norm_error: \"<= 1%%\")")
	case g.Norm != nil && !g.Norm.Lower() && g.Norm.Holds(1):
		n.Child("norm_error").Errorf("%q passes a kernel that writes zeros (write e.g. \"<= 1%%\")", g.Norm)
	}
	if g.Bad == nil && g.MaxAbs == nil && g.Decides() {
		n.Child("bad_elements").Errorf("takes the manifest's tolerance away, and nothing else bounds an element (add e.g. max_abs_error: \"<= 0.06\", or delete it)")
	}
	g.Bounds().check(n)
	if e := g.EndToEnd; e != nil {
		if *e == (ErrorBounds{}) {
			n.Child("end_to_end").Errorf("bounds nothing (write e.g. max_abs_error: \"<= 0.06\", or end_to_end: none)")
		}
		e.check(n.Child("end_to_end"))
	}
}

func (g *CorrectnessGate) checkInputs(n *strict.Node) {
	seeds, distributed := n.Child("seeds"), n.Child("distributions")
	switch {
	case len(g.Seeds) == 0:
		seeds.Errorf("is empty (write e.g. [0, 1, 2])")
	case len(g.Seeds) > maxSeeds:
		seeds.Errorf("has %d seeds (write at most %d)", len(g.Seeds), maxSeeds)
	}
	seen := map[int64]bool{}
	strict.Each(seeds, g.Seeds, func(at *strict.Node, seed *int64) {
		switch {
		case *seed < 0:
			at.Errorf("%d is negative (write e.g. [0, 1, 2])", *seed)
		case seen[*seed]:
			at.Errorf("%d is named twice (delete one)", *seed)
		}
		seen[*seed] = true
	})
	if len(g.Distributions) == 0 {
		distributed.Errorf("is empty (write e.g. [%s])", strict.JoinWords(distribution.All()[:3]))
	}
	once(distributed, g.Distributions)
	if len(g.Distributions) > 0 && len(distribution.Random(g.Distributions)) == 0 {
		distributed.Errorf("has only recordings, and secret shapes and shapes without a recording need random inputs (add e.g. normal)")
	}
	if g.SecretCases > maxSecret {
		n.Child("secret_cases").Errorf("%s is more than %d", g.SecretCases, maxSecret)
	}
}

func (b ErrorBounds) check(n *strict.Node) {
	checkError(n.Child("max_abs_error"), b.MaxAbs)
	checkError(n.Child("mean_abs_error"), b.MeanAbs)
	checkError(n.Child("bad_elements"), b.Bad)
	checkError(n.Child("norm_error"), b.Norm)
}

// checkError refuses a bound that asks for large errors, and a bound that an exact result would
// fail.
func checkError[T quantity.Number | quantity.Percent](n *strict.Node, b *quantity.Bound[T]) {
	switch {
	case b == nil:
	case b.Lower():
		n.Errorf("%q asks for a large error (write \"<=\")", b)
	case !b.Holds(0):
		n.Errorf("%q can never be met: no error is below 0 (write e.g. \"<= 0\")", b)
	}
}

func (g CorrectnessGate) String() string {
	var seeds []string
	for _, seed := range g.Seeds {
		seeds = append(seeds, fmt.Sprint(seed))
	}
	text := fmt.Sprintf("%s × seeds %s × %s inputs", g.Shapes, strings.Join(seeds, ", "), strict.JoinWords(g.Distributions))
	if g.SecretCases > 0 {
		text += fmt.Sprintf(", and %v secret cases", g.SecretCases)
	}
	bounds := g.Bounds().asked()
	if g.EndToEnd != nil {
		bounds = append(bounds, "end to end "+strings.Join(g.EndToEnd.asked(), " and "))
	}
	if g.Determinism {
		bounds = append(bounds, "deterministic")
	}
	if g.BitParity {
		bounds = append(bounds, "bit-identical to the baseline")
	}
	if g.Existing == ExistingDefers {
		bounds = append(bounds, "also where the baseline fails the same case")
	}
	return text + ": " + orNothing(bounds, "no bound; the errors are shown")
}

func (b ErrorBounds) asked() []string {
	var asked []string
	if b.MaxAbs != nil {
		asked = append(asked, "max |err| "+b.MaxAbs.String())
	}
	if b.MeanAbs != nil {
		asked = append(asked, "mean |err| "+b.MeanAbs.String())
	}
	switch {
	case b.Bad == nil:
	case b.Bad.String() == "<= 0%":
		asked = append(asked, "no element beyond the tolerance")
	default:
		asked = append(asked, "bad elements "+b.Bad.String())
	}
	if b.Norm != nil {
		asked = append(asked, "norm error "+b.Norm.String())
	}
	return asked
}

// compare does not treat more inputs as stricter. The kernel is timed on the inputs on
// which it is compared, and every kind of input counts the same in its speedup. One more kind can
// make a kernel pass that is fast on nothing else.
func (g *CorrectnessGate) compare(l *compare.List, path string, old *CorrectnessGate) {
	compareEnforcement(l, path, old.Enforcement, g.Enforcement)
	compareDeadline(l, path, old.Deadline, g.Deadline)
	compareShapes(l, path+".shapes", old.Shapes, g.Shapes, compare.Changes)
	compare.Fewer(l, path+".seeds", old.Seeds, g.Seeds)
	compare.Fewer(l, path+".distributions", old.Distributions, g.Distributions)
	compare.More(l, path+".secret_cases", old.SecretCases, g.SecretCases)
	compareErrors(l, path, old.Bounds(), g.Bounds())
	compare.Asked(l, path+".bit_parity", old.BitParity, g.BitParity)
	compare.Asked(l, path+".determinism", old.Determinism, g.Determinism)
	compareWord(l, path+".existing", existings, old.Existing, g.Existing)
	compareErrors(l, path+".end_to_end", orNone(old.EndToEnd), orNone(g.EndToEnd))
}

func compareErrors(l *compare.List, path string, old, new ErrorBounds) {
	compareBound(l, path+".max_abs_error", old.MaxAbs, new.MaxAbs, compare.Tightens)
	compareBound(l, path+".mean_abs_error", old.MeanAbs, new.MeanAbs, compare.Tightens)
	compareBound(l, path+".bad_elements", old.Bad, new.Bad, compare.Tightens)
	compareBound(l, path+".norm_error", old.Norm, new.Norm, compare.Tightens)
}

func (g *CorrectnessGate) narrow(shapes []string, seeds []int64) *CorrectnessGate {
	own := *g
	if len(seeds) > 0 {
		own.Seeds = seeds
	}
	if len(shapes) > 0 {
		own.Shapes = Shapes{Names: shapes}
	}
	return &own
}

// SeedsOf returns the seeds of the public cases on a kind of input. On a recording, seed 0 is the recording as it is, and
// any other seed is noise.
func (g *CorrectnessGate) SeedsOf(kind distribution.Kind) []int64 {
	if !kind.FromRecording() || slices.Contains(g.Seeds, 0) {
		return g.Seeds
	}
	return append([]int64{0}, g.Seeds...)
}

func (g *CorrectnessGate) inputs() []Inputs {
	return []Inputs{{"correctness.shapes", g.Shapes, g.SecretCases > 0}}
}
