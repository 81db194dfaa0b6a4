package facts

import (
	"fmt"
	"math"
	"strings"

	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/gates/why"
)

// An Explained is why the times of a shape differ.
type Explained struct{ why.Explanation }

func (e Explained) Sentence() string {
	switch {
	case e.Static && e.Cause == "" && !e.Moved:
		return "without counters: no figure of the builds differs"
	case e.Static && e.Cause == "" && len(e.Rows) > 0 && strings.HasPrefix(e.Rows[0].ID, "cpu_"):
		return e.moves() + ": without counters of the processor, no cause is named"
	case e.Static && e.Cause == "":
		return e.moves() + ": without counters, the builds name no cause"
	case e.Contradicts:
		return "under the profiler the times do not differ as they did when measured, so no cause is named"
	case !e.Moved:
		return "no difference: no counter moved beyond the noise of the baseline" + e.limiters()
	case e.Cause == "":
		return e.moves() + ": no single mechanism explains the difference" + e.limiters()
	}
	return e.moves() + ": " + e.cause() + e.limiters()
}

// moves is the first row, before and after.
func (e Explained) moves() string {
	if len(e.Rows) == 0 {
		return "counters moved"
	}
	return moved(e.Rows[0])
}

// moved is a row with both figures.
func moved(m why.Row) string {
	before, after := Figure(m.Baseline, m.Unit), Figure(m.Candidate, m.Unit)
	if m.Unit != "" {
		if i := strings.LastIndex(before, string(number.NBSP)); i >= 0 && strings.HasSuffix(after, before[i:]) {
			before = before[:i]
		}
	}
	return fmt.Sprintf("%s %s → %s", m.Name, before, after)
}

// Figure is a figure of a row with its unit.
func Figure(v *float64, unit string) string {
	const nbsp = string(number.NBSP)
	switch {
	case v == nil || !number.Finite(*v):
		return number.Dash
	case unit == "%":
		return number.Significant(*v, 2+hundred(*v)) + nbsp + "%"
	case unit == "B":
		return number.Amount(*v, "B")
	case unit != "":
		return number.Significant(*v, 3) + nbsp + unit
	case *v >= 1e6:
		return number.Significant(*v/1e6, 3) + nbsp + "million"
	case *v == math.Trunc(*v):
		return number.Amount(*v, "")
	}
	return number.Significant(*v, 3)
}

// hundred is the additional digit of 100.
func hundred(v float64) int {
	if v >= 99.5 {
		return 1
	}
	return 0
}

func (e Explained) limiters() string {
	before, after := e.Baseline.Limiter, e.Candidate.Limiter
	switch {
	case before == nil || after == nil:
		return ""
	case before.Name == after.Name:
		return "; limiter: " + before.Name
	}
	return fmt.Sprintf("; limiter %s → %s", before.Name, after.Name)
}

// causes is each mechanism in words, for a candidate that is faster for it and for one that is slower.
var causes = map[why.Cause][2]string{
	why.Launches:      {"fewer kernels to launch", "more kernels to launch"},
	why.FewBlocks:     {"too few blocks left multiprocessors idle before", "too few blocks leave multiprocessors idle"},
	why.TailWave:      {"a tail wave left multiprocessors idle before", "a tail wave leaves multiprocessors idle"},
	why.Spills:        {"fewer registers spill to local memory", "registers spill to local memory"},
	why.BankConflicts: {"fewer bank conflicts in shared memory", "bank conflicts in shared memory"},
	why.Uncoalesced:   {"accesses to global memory are coalesced", "accesses to global memory are not coalesced"},
	why.Divergence:    {"fewer divergent branches", "divergent branches"},
	why.FP64:          {"less arithmetic in FP64", "arithmetic in FP64"},
	why.NoTensorCores: {"the work moved to tensor cores", "the tensor cores are unused"},
	why.NoVectors:     {"the work moved to vector instructions", "vector instructions are unused"},
	why.NarrowAccess:  {"wider accesses to memory (vector loads and stores)", "narrow accesses to memory (no vector loads and stores)"},
	why.Barriers:      {"less waiting at barriers", "more waiting at barriers"},
	why.L2Misses:      {"data is found in the L2 cache again", "data is evicted from the L2 cache before it is read again"},
	why.Occupancy:     {"more warps at once hide latency", "fewer warps at once hide latency"},
	why.DRAMTraffic:   {"less traffic with DRAM", "more traffic with DRAM"},
	why.L2Traffic:     {"less traffic with the L2 cache", "more traffic with the L2 cache"},
	why.L1Traffic:     {"less traffic with the L1 cache", "more traffic with the L1 cache"},
	why.Instructions:  {"fewer instructions", "more instructions"},

	why.PageFaults:           {"less memory is touched for the first time in a launch", "memory is touched for the first time in every launch"},
	why.ContextSwitches:      {"its threads give up their processors less often", "its threads give up their processors"},
	why.BranchMisses:         {"fewer mispredicted branches", "mispredicted branches"},
	why.CacheMisses:          {"fewer accesses miss the caches", "more accesses miss the caches"},
	why.L1Misses:             {"fewer loads miss the L1 cache", "more loads miss the L1 cache"},
	why.TLBMisses:            {"fewer loads miss the TLB", "more loads miss the TLB"},
	why.MoreInstructions:     {"fewer instructions", "more instructions"},
	why.CyclesPerInstruction: {"its instructions wait less", "its instructions wait longer"},
}

func (e Explained) cause() string {
	if e.Cause == why.Occupancy {
		if said := e.shared(); said != "" {
			return said
		}
	}
	words, ok := causes[e.Cause]
	if !ok {
		return string(e.Cause)
	}
	if e.Faster {
		return words[0]
	}
	return words[1]
}

// shared is which resource lets more or fewer blocks share a multiprocessor; "" where that is not known.
func (e Explained) shared() string {
	fewer, more, how := e.Baseline, e.Candidate, "fewer "
	if !e.Faster {
		fewer, more, how = more, fewer, "more "
	}
	if fewer.Blocks == nil || more.Blocks == nil || *more.Blocks <= *fewer.Blocks || fewer.LimitedBy != "registers" && fewer.LimitedBy != "shared memory" {
		return ""
	}
	if fewer.LimitedBy == "shared memory" {
		how = map[bool]string{true: "less ", false: "more "}[e.Faster]
	}
	return fmt.Sprintf("%s%s: room for %s on a multiprocessor, where it was %d", how, fewer.LimitedBy, number.Plural(int(*e.Candidate.Blocks), "block"), int(*e.Baseline.Blocks))
}

// A BlockLift is what would let one more block share a multiprocessor.
type BlockLift struct {
	Limit              string // registers or shared memory
	Used, Blocks, Most int
}

func (l BlockLift) Sentence() string {
	unit := "B"
	if l.Limit == "registers" {
		unit = ""
	}
	return fmt.Sprintf("%s: %s → %s on a multiprocessor; at most %s would let %d share it", l.Limit, number.Amount(float64(l.Used), unit),
		number.Plural(l.Blocks, "block"), number.Amount(float64(l.Most), unit), l.Blocks+1)
}
