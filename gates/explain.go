package gates

import (
	"cmp"
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/why"
)

// A Why is why the times of a shape differ. It decides nothing.
type Why struct {
	Shape    string `json:"shape"`
	Sentence string `json:"sentence,omitempty"`
	why.Explanation
	Roofline *Roofline `json:"roofline,omitempty"`
	Lift     string    `json:"occupancy_lift,omitempty"` // what would let more blocks of the candidate share a multiprocessor
	// Stalled is where the warps of each side were found, of its kernel with most samples.
	Stalled []StalledSide `json:"stalled,omitempty"`
	// Unsampled says why the warps of a side were not found, although there are counters.
	Unsampled string `json:"unsampled,omitempty"`
	// MachineCode is the kernels that serve the shape, from the hottest loop on. A verdict has them once, and not here.
	MachineCode []CodeChange `json:"machine_code,omitempty"`
	// Note says why there are no counters, with the remedy.
	Note string `json:"note,omitempty"`
}

// A StalledSide is where a sampling profiler found the warps of one side, the places with most samples first.
type StalledSide struct {
	Side         string               `json:"side"` // baseline or candidate
	Kernel       string               `json:"kernel"`
	Samples      int                  `json:"samples"` // in the whole kernel
	Lines        []StalledLine        `json:"lines,omitempty"`
	Instructions []StalledInstruction `json:"instructions,omitempty"`
}

// stalledSides is the kernel of each side in which most warps were found.
func stalledSides(s ExplainedShape) []StalledSide {
	var all []StalledSide
	for _, side := range []struct {
		name    string
		kernels []Counted
	}{{"baseline", s.Baseline}, {"candidate", s.Candidate}} {
		var most Counted
		for _, k := range side.kernels {
			if k.Samples > most.Samples {
				most = k
			}
		}
		if most.Samples == 0 {
			continue
		}
		of := StalledSide{Side: side.name, Kernel: most.Kernel, Samples: most.Samples, Lines: slices.Clone(most.Lines), Instructions: slices.Clone(most.Instructions)}
		slices.SortStableFunc(of.Lines, func(a, b StalledLine) int { return cmp.Compare(b.Samples, a.Samples) })
		slices.SortStableFunc(of.Instructions, func(a, b StalledInstruction) int { return cmp.Compare(b.Samples, a.Samples) })
		all = append(all, of)
	}
	return all
}

// A Roofline is where both sides stand below the limits of the device.
type Roofline struct {
	Peak      float64       `json:"peak_tflops"`
	Bandwidth float64       `json:"bandwidth_gb_per_s"`
	Baseline  RooflinePoint `json:"baseline"`
	Candidate RooflinePoint `json:"candidate"`
}

// A RooflinePoint is one side: its rate, and its work for each byte that it moved to or from DRAM.
type RooflinePoint struct {
	TFLOPs    float64 `json:"tflops"`
	Intensity float64 `json:"flops_per_byte"`
}

// Explain says why the times of each shape differ that was profiled. The comparisons are those of the verdict. What no profiler
// counted is explained from the builds.
func Explain(e *Evidence, compared []Comparison) []Why {
	return explain(e, compared, MostDiffering(compared))
}

// explain explains what was counted, and without counters the shapes that are named.
func explain(e *Evidence, compared []Comparison, shapes []string) []Why {
	all, note := countedWhys(e, compared), ""
	if x := e.Explained; x != nil {
		note = x.Skipped
	}
	if len(all) == 0 {
		all = staticWhys(e, compared, shapes)
	}
	for i := range all {
		w := &all[i]
		if w.Static {
			w.Note = note
		}
		w.Sentence = facts.Explained{Explanation: w.Explanation}.Sentence()
		w.Lift = Lift(e.Device.Arch, w.Candidate)
		w.Roofline = roofline(e, comparisonOf(compared, w.Shape), *w)
	}
	return all
}

// Reasons is why the times differ. It leaves out explanations that would tell a reader nothing: without counters, without a difference
// of the builds, and without advice how to allow counters.
func (v *Verdict) Reasons() []Why {
	return slices.DeleteFunc(slices.Clone(v.Why), func(w Why) bool { return w.Static && !w.Moved && w.Note == "" })
}

// WithMachineCode is the explanations of a verdict, each with the machine code of the kernels that serve its shape.
func WithMachineCode(v *Verdict) []Why {
	all := slices.Clone(v.Why)
	if v.MachineCode == nil {
		return all
	}
	for i := range all {
		for _, c := range v.MachineCode.Changes {
			if c.serves(all[i].Shape) {
				all[i].MachineCode = append(all[i].MachineCode, c)
			}
		}
	}
	return all
}

func countedWhys(e *Evidence, compared []Comparison) []Why {
	if e.Explained == nil {
		return nil
	}
	var all []Why
	for _, s := range e.Explained.Shapes {
		p := why.Profiles{Baseline: launchOf(s.Baseline), Again: launchOf(s.Again), Candidate: launchOf(s.Candidate), Claims: claims(e)}
		c := comparisonOf(compared, s.Shape)
		if c != nil && c.Speedup.Known() {
			p.Speedup = c.Speedup.Value
		}
		if e.Can().onHost() {
			addMeasured(e, s.Shape, c, p)
		}
		w := Why{Shape: s.Shape, Explanation: why.Explain(p), Stalled: stalledSides(s)}
		if len(w.Stalled) < 2 {
			w.Unsampled = e.Explained.Unsampled
		}
		all = append(all, w)
	}
	return all
}

func launchOf(kernels []Counted) why.Launch {
	var l why.Launch
	for _, k := range kernels {
		l = append(l, why.Kernel{Name: k.Kernel, Counters: k.Counters})
	}
	return l
}

// claims is the mechanisms that the author names.
func claims(e *Evidence) []string {
	if e.Change.Claims != nil {
		return e.Change.Claims
	}
	return why.Claims(e.Change.Title)
}

// roofline places both sides; nil where the work, the limits or the traffic are unknown.
func roofline(e *Evidence, c *Comparison, w Why) *Roofline {
	var shape Shape
	for _, s := range e.Shapes {
		if s.Name == w.Shape {
			shape = s
		}
	}
	device := e.Device
	peak := device.Peak[shape.Peak]
	if c == nil || c.Baseline == nil || c.Candidate == nil || shape.FLOPs <= 0 || peak <= 0 || device.Bandwidth <= 0 {
		return nil
	}
	point := func(micros float64, s why.Side) RooflinePoint {
		p := RooflinePoint{TFLOPs: round(shape.FLOPs / micros / 1e6)}
		if s.DRAMBytes != nil && *s.DRAMBytes > 0 {
			p.Intensity = round(shape.FLOPs / *s.DRAMBytes)
		}
		return p
	}
	return &Roofline{
		Peak: round(peak / 1e12), Bandwidth: round(device.Bandwidth / 1e9),
		Baseline: point(c.Baseline.P50, w.Explanation.Baseline), Candidate: point(c.CandidateTime(), w.Explanation.Candidate),
	}
}

// Lift says what would let more blocks of a side share a multiprocessor; "" where that is not known.
func Lift(arch string, s why.Side) string {
	sm, known := limitsOf(arch)
	if !known || s.Threads == nil || s.Registers == nil || s.SharedBytes == nil {
		return ""
	}
	shared := max(0, int(*s.SharedBytes)-sm.sharedReserved)
	return liftSentence(arch, int(*s.Threads), int(*s.Registers), shared)
}

func liftSentence(arch string, threads, registers, shared int) string {
	blocks, limit, most, ok := moreBlocks(arch, threads, registers, shared)
	if !ok {
		return ""
	}
	used := registers
	if limit != "registers" {
		used = shared
	}
	return facts.BlockLift{Limit: limit, Used: used, Blocks: blocks, Most: most}.Sentence()
}
