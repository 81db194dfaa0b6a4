package why

import "math"

// What Linux counts of a kernel on a CPU, for each launch. All but the time are counts.
const (
	CPUTime         = "cpu.nanoseconds" // of a launch while events were counted
	CPUPageFaults   = "cpu.page_faults"
	CPUSwitches     = "cpu.context_switches"
	CPUWork         = "cpu.task_nanoseconds" // that all threads of a launch have a processor
	CPUCycles       = "cpu.cycles"
	CPUInstructions = "cpu.instructions"
	CPUBranchMisses = "cpu.branch_misses"
	CPUL1Misses     = "cpu.l1d_misses"
	CPUMemoryMisses = "cpu.cache_misses" // in all caches
	CPUTLBMisses    = "cpu.dtlb_misses"
)

var cpuCounters = []string{CPUTime, CPUPageFaults, CPUSwitches, CPUWork, CPUCycles, CPUInstructions, CPUBranchMisses, CPUL1Misses, CPUMemoryMisses, CPUTLBMisses}

// onCPU reports whether the counters are those of a kernel on a CPU.
func (s side) onCPU() bool { return !math.IsNaN(s.get(CPUTime)) }

// perCycle is the instructions of a cycle.
func (s side) perCycle() float64 { return s.get(CPUInstructions) / s.get(CPUCycles) }

// atWork is how many processors a launch keeps at work.
func (s side) atWork() float64 { return s.get(CPUWork) / s.get(CPUTime) }

// What an event takes, about. Processors differ, and do other work meanwhile. So these decide only which event is named before which, and
// that none is named which is too rare to matter.
const (
	branchMissCycles = 15
	l1MissCycles     = 5
	memoryMissCycles = 50
	tlbMissCycles    = 20
	pageFaultNanos   = 1000
	switchNanos      = 10_000 // with the wait until another processor wakes
)

// lost is the share of the cycles that events take.
func (s side) lost(counter string, cycles float64) float64 {
	return min(1, s.get(counter)*cycles/s.get(CPUCycles))
}

// spent is the share of the time of all threads that events take; 0 where they are not counted.
func (s side) spent(counter string, nanos float64) float64 {
	time := s.get(CPUTime)
	if work := s.get(CPUWork); work > time {
		time = work
	}
	if share := s.get(counter) * nanos / time; share > 0 {
		return min(1, share)
	}
	return 0
}

const (
	PageFaults           Cause = "page-faults"
	ContextSwitches      Cause = "context-switches"
	BranchMisses         Cause = "branch-misses"
	CacheMisses          Cause = "cache-misses"
	L1Misses             Cause = "l1-misses"
	TLBMisses            Cause = "tlb-misses"
	MoreInstructions     Cause = "cpu-instructions"
	CyclesPerInstruction Cause = "cycles-per-instruction"
)

// cpuMeasures is the figures of a kernel on a CPU.
var cpuMeasures = []measure{
	{"cpu_instructions", "instructions", "", CPUInstructions, func(s side) float64 { return s.get(CPUInstructions) }, 0},
	{"cpu_per_cycle", "instructions a cycle", "", CPUCycles, side.perCycle, 0.05},
	{"cpu_branch_misses", "mispredicted branches", "", CPUBranchMisses, func(s side) float64 { return s.get(CPUBranchMisses) }, 10},
	{"cpu_cache_misses", "accesses that miss all caches", "", CPUMemoryMisses, func(s side) float64 { return s.get(CPUMemoryMisses) }, 100},
	{"cpu_l1_misses", "loads that miss the L1 cache", "", CPUL1Misses, func(s side) float64 { return s.get(CPUL1Misses) }, 100},
	{"cpu_tlb_misses", "loads that miss the TLB", "", CPUTLBMisses, func(s side) float64 { return s.get(CPUTLBMisses) }, 10},
	{"cpu_page_faults", "page faults", "", CPUPageFaults, func(s side) float64 { return s.get(CPUPageFaults) }, 0.5},
	{"cpu_at_work", "processors at work", "", CPUWork, side.atWork, 0.1},
	{"cpu_switches", "context switches", "", CPUSwitches, func(s side) float64 { return s.get(CPUSwitches) }, 0.5},
}

// cpuRules is what a CPU loses time by. The time of a launch is its instructions times the cycles of each, so one of the two explains any
// difference; where the cycles do, an event may be behind them.
var cpuRules = []rule{
	{cause: PageFaults, rows: []string{"cpu_page_faults"}, more: 1, cost: func(own, _ side) float64 { return own.spent(CPUPageFaults, pageFaultNanos) }},
	// Threads that wait for each other.
	{cause: ContextSwitches, rows: []string{"cpu_switches", "cpu_at_work"}, more: 1, cost: func(own, _ side) float64 {
		share := own.spent(CPUSwitches, switchNanos)
		if n := own.atWork(); n < 1 { // all of them wait
			share = max(share, 1-n)
		}
		return share
	}},
	{cause: BranchMisses, rows: []string{"cpu_branch_misses", "cpu_per_cycle"}, more: 1, cost: func(own, _ side) float64 { return own.lost(CPUBranchMisses, branchMissCycles) }},
	{cause: CacheMisses, rows: []string{"cpu_cache_misses", "cpu_per_cycle"}, more: 1, cost: func(own, _ side) float64 { return own.lost(CPUMemoryMisses, memoryMissCycles) }},
	{cause: L1Misses, rows: []string{"cpu_l1_misses", "cpu_per_cycle"}, more: 1, cost: func(own, _ side) float64 { return own.lost(CPUL1Misses, l1MissCycles) }},
	{cause: TLBMisses, rows: []string{"cpu_tlb_misses", "cpu_per_cycle"}, more: 1, cost: func(own, _ side) float64 { return own.lost(CPUTLBMisses, tlbMissCycles) }},
	{cause: MoreInstructions, rows: []string{"cpu_instructions", "cpu_per_cycle"}, more: 1, general: true, cost: func(own, other side) float64 {
		return 1 - factorOf(own.get(CPUInstructions), other.get(CPUInstructions))
	}},
	{cause: CyclesPerInstruction, rows: []string{"cpu_per_cycle", "cpu_instructions"}, more: -1, general: true, cost: func(own, other side) float64 {
		return 1 - factorOf(other.perCycle(), own.perCycle())
	}},
}

// factorOf is how much smaller another figure is than one's own: 1 if it is not.
func factorOf(own, other float64) float64 { return min(1, other/own) }

// cpuLimiter is the event that takes most of the cycles, if they are many; no name without counters of the processor.
func (s side) cpuLimiter() Limiter {
	var most Limiter
	for _, l := range []Limiter{
		{"page faults", 100 * s.spent(CPUPageFaults, pageFaultNanos)}, {"context switches", 100 * s.spent(CPUSwitches, switchNanos)},
		{"mispredicted branches", 100 * s.lost(CPUBranchMisses, branchMissCycles)}, {"memory", 100 * s.lost(CPUMemoryMisses, memoryMissCycles)},
		{"L1 cache", 100 * s.lost(CPUL1Misses, l1MissCycles)}, {"TLB", 100 * s.lost(CPUTLBMisses, tlbMissCycles)},
	} {
		if l.Share > most.Share {
			most = l
		}
	}
	switch perCycle := s.perCycle(); {
	case most.Share >= 100*waitShare:
		return most
	case perCycle >= busyCore:
		return Limiter{Name: "instructions"}
	case perCycle < busyCore:
		return Limiter{Name: "latency"}
	}
	return Limiter{}
}

// busyCore is the instructions a cycle from which a core is busy rather than waiting.
const busyCore = 2
