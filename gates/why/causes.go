package why

import (
	"math"
	"slices"
)

// A Cause is a mechanism that makes a kernel slow.
type Cause string

const (
	BankConflicts Cause = "bank-conflicts"
	Uncoalesced   Cause = "uncoalesced"
	Spills        Cause = "spills"
	FewBlocks     Cause = "few-blocks"
	TailWave      Cause = "tail-wave"
	Divergence    Cause = "divergence"
	FP64          Cause = "fp64"
	NarrowAccess  Cause = "narrow-access"
	L2Misses      Cause = "l2-misses"
	Barriers      Cause = "barriers"
	Launches      Cause = "launches"
	NoTensorCores Cause = "no-tensor-cores"
	NoVectors     Cause = "no-vectors" // of a CPU
	Occupancy     Cause = "occupancy"
	DRAMTraffic   Cause = "dram-traffic"
	L2Traffic     Cause = "l2-traffic"
	L1Traffic     Cause = "l1-traffic"
	Instructions  Cause = "instructions"
)

// A rule estimates how much of the time a mechanism takes.
type rule struct {
	cause Cause
	rows  []string // ids of the measures that show it; the first must have moved
	// more says whether the slower side has more of the first row: 1, or less of it: -1. 0 is for a row that tells neither.
	more int
	// general is for a mechanism that is often the effect of another one: it is named if no other explains the difference.
	general bool
	// cost is the share of the time of own that the mechanism takes, from 0 to 1. It may compare with the other side, to tell a
	// cause from work that both sides have.
	cost func(own, other side) float64
}

// rules is every mechanism.
var rules = slices.Concat(gpuRules, cpuRules)

var gpuRules = []rule{
	{cause: Launches, rows: []string{"kernels", "busy"}, more: 1, cost: func(own, other side) float64 {
		if own.kernels <= other.kernels || own.micros()/float64(own.kernels) > 2*shortKernel {
			return 0
		}
		return 1
	}},
	{cause: FewBlocks, rows: []string{"busy", "blocks", "waves"}, more: -1, cost: func(own, _ side) float64 {
		if own.waves() >= 1 {
			return 0
		}
		return 1 - own.busy()
	}},
	{cause: TailWave, rows: []string{"waves", "busy", "blocks"}, cost: func(own, _ side) float64 {
		if own.waves() < 1 {
			return 0
		}
		return 1 - own.busy()
	}},
	{cause: Spills, rows: []string{"local", "registers", "l1"}, more: 1, cost: func(own, _ side) float64 {
		return min(1, 2*own.localAccesses()/own.instructions())
	}},
	{cause: BankConflicts, rows: []string{"conflicts", "l1"}, more: 1, cost: func(own, _ side) float64 { return min(1, own.perSM(own.conflicts())) }},
	{cause: Uncoalesced, rows: []string{"excess", "l2", "l1"}, more: 1, cost: func(own, _ side) float64 {
		return own.excess() / own.globalSectors() * max(own.l2(), own.l1()*own.globalShare()) / 100
	}},
	{cause: Divergence, rows: []string{"lanes", "instructions"}, more: -1, cost: func(own, _ side) float64 {
		return (1 - own.lanes()/32) * min(1, 1.5*own.issued()/100)
	}},
	// Values are converted to FP64 and back by the special-function units.
	{cause: FP64, rows: []string{"fp64", "xu", "instructions"}, more: 1, cost: func(own, other side) float64 {
		if n := own.fp64Instructions(); !(n > 0.02*own.instructions()) || n < 2*other.fp64Instructions() {
			return 0
		}
		return max(own.pipeShare("fp64"), own.pipeShare("xu")) / 100
	}},
	// Products of pairs of halves run on the same unit, so a few percent are no matrices.
	{cause: NoTensorCores, rows: []string{"tensor", "fma", "instructions"}, more: -1, cost: func(own, other side) float64 {
		if own.tensor() > 3 || !(other.tensor() > 5) {
			return 0
		}
		return own.issued() / 100 * own.busy()
	}},
	// Fewer bytes for each access, for the same bytes in all.
	{cause: NarrowAccess, rows: []string{"access_bytes", "dram", "instructions"}, more: -1, cost: func(own, other side) float64 {
		if !near(own.globalSectors()-own.excess(), other.globalSectors()-other.excess(), 0.1) || !(own.accessBytes() < other.accessBytes()/1.3) {
			return 0
		}
		return (1 - own.accessBytes()/other.accessBytes()) * own.waitsForMemory()
	}},
	{cause: Barriers, rows: []string{"barrier", "issued"}, more: 1, cost: func(own, _ side) float64 { return own.stall("barrier") }},
	// More traffic with DRAM for about the same accesses.
	{cause: L2Misses, rows: []string{"l2_hit", "dram_bytes", "dram"}, more: -1, cost: func(own, other side) float64 {
		if !near(own.globalSectors(), other.globalSectors(), 0.15) || !(own.dramBytes() > 1.2*other.dramBytes()) {
			return 0
		}
		return max(own.dram()/100, own.stall("long_scoreboard")*(1-own.l2Hit()/100))
	}},
	// Fewer warps to hide waiting with.
	{cause: Occupancy, rows: []string{"occupancy", "blocks_per_sm", "registers", "shared_bytes"}, more: -1, cost: func(own, other side) float64 {
		if !(own.theoretical() < other.theoretical()/1.2) || own.busiest().Share >= nearPeak {
			return 0
		}
		return 1 - own.occupancy()/other.occupancy()
	}},
	// Without counters only what a build shows beyond doubt is named.
	{cause: Spills, rows: []string{"spill_bytes", "registers"}, more: 1, cost: func(own, other side) float64 {
		return onlyStatic(own, own.get(StaticPrefix+"spill_bytes") > 1.2*other.get(StaticPrefix+"spill_bytes"))
	}},
	{cause: NoTensorCores, rows: []string{"static_tensor", "static_all"}, more: -1, cost: func(own, other side) float64 {
		return onlyStatic(own, own.get(StaticPrefix+"tensor") == 0 && other.get(StaticPrefix+"tensor") > 0)
	}},
	{cause: NoVectors, rows: []string{"static_vector", "static_all"}, more: -1, cost: func(own, other side) float64 {
		return onlyStatic(own, own.get(StaticPrefix+"vector") == 0 && other.get(StaticPrefix+"vector") > 0)
	}},
	{cause: DRAMTraffic, rows: []string{"dram_bytes", "dram"}, more: 1, general: true, cost: func(own, _ side) float64 { return own.dram() / 100 }},
	{cause: L2Traffic, rows: []string{"l2"}, general: true, cost: func(own, _ side) float64 { return own.l2() / 100 }},
	{cause: L1Traffic, rows: []string{"sectors", "l1"}, more: 1, general: true, cost: func(own, _ side) float64 { return own.l1() * own.globalShare() / 100 }},
	{cause: Instructions, rows: []string{"instructions", "issued"}, more: 1, general: true, cost: func(own, _ side) float64 { return own.issued() / 100 * own.busy() }},
}

// shows reports whether the first row moved, and to the side where the mechanism takes time.
func (r rule) shows(c compared) bool {
	m := measureOf(r.rows[0])
	if !m.moved(c) || r.more == 0 {
		return m.moved(c)
	}
	slower, faster := c.baseline, c.candidate
	if slower.micros() < faster.micros() {
		slower, faster = faster, slower
	}
	return (m.value(slower) > m.value(faster)) == (r.more > 0)
}

// onlyStatic is the cost of what is known from the build alone: half of the time, for lack of a better estimate.
func onlyStatic(own side, holds bool) float64 {
	if holds && own.static() {
		return 0.5
	}
	return 0
}

// near reports whether two figures differ by at most a share of the larger.
func near(a, b, share float64) bool { return math.Abs(a-b) <= share*max(a, b) }

// leastShare is the part of a difference that a mechanism must explain to be named, general ones a larger one.
const (
	leastShare        = 0.2
	leastGeneralShare = 0.3
)

// explained is the part of the difference in time between the sides that a mechanism explains, from 0 to 1. It is negative if the
// mechanism works against the difference, and NaN if a counter is missing.
func (r rule) explained(c compared) float64 {
	before, after := c.baseline.micros(), c.candidate.micros()
	cost := r.cost(c.baseline, c.candidate)*before - r.cost(c.candidate, c.baseline)*after
	return min(1, cost/(before-after))
}
