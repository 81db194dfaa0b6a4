package why

import (
	"cmp"
	"math"
	"strings"
)

// A Kernel is what a profiler counted of one kernel of a launch, by ncu's names. A counter that is absent
// is unknown, never zero.
type Kernel struct {
	Name     string
	Counters map[string]float64
}

// A Launch is its kernels in order.
type Launch []Kernel

// Names of counters that are read in more than one place.
const (
	nsDuration = "gpu__time_duration.sum"
	smCount    = "launch__sm_count"

	stallPrefix = "smsp__average_warps_issue_stalled_"
	stallSuffix = "_per_issue_active.ratio"
)

// A side is a launch with its kernels taken together.
type side struct {
	counters map[string]float64
	kernels  int
	longest  string // the kernel that takes most of the time
}

// together makes one set of counters of a launch: counts are added up, shares and rates are weighed by
// the time of each kernel, and what describes a launch is that of the longest kernel. A counter that one
// of the kernels lacks is unknown.
func (l Launch) together() side {
	s := side{counters: map[string]float64{}, kernels: len(l)}
	if len(l) == 0 {
		return s
	}
	longest, total := 0, 0.0
	for i, k := range l {
		total += k.Counters[nsDuration]
		if k.Counters[nsDuration] > l[longest].Counters[nsDuration] {
			longest = i
		}
	}
	s.longest = l[longest].Name
	for name, v := range l[longest].Counters {
		if len(l) == 1 || strings.HasPrefix(name, "launch__") || strings.Contains(name, "maximum_warps") {
			s.counters[name] = v
			continue
		}
		sum, weighed, all := 0.0, 0.0, true
		for _, k := range l {
			own, ok := k.Counters[name]
			all = all && ok
			sum += own
			weighed += own * k.Counters[nsDuration]
		}
		switch {
		case !all:
		case counts(name):
			s.counters[name] = sum
		case total > 0:
			s.counters[name] = weighed / total
		}
	}
	return s
}

// counts reports whether a counter adds up over kernels.
func counts(name string) bool {
	return strings.HasSuffix(name, ".sum") || strings.HasPrefix(name, "derived__memory") || strings.HasPrefix(name, "sm__cycles_")
}

// get returns the first of the counters that is known, or NaN. Names differ between GPUs.
func (s side) get(names ...string) float64 {
	for _, name := range names {
		if v, ok := s.counters[name]; ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
			return v
		}
	}
	return math.NaN()
}

// sum adds counters up. One that is unknown makes the sum unknown.
func (s side) sum(names ...string) float64 {
	total := 0.0
	for _, name := range names {
		total += s.get(name)
	}
	return total
}

// micros is how long the profiler saw the launch run. Profiling changes clocks, so it is no timing.
func (s side) micros() float64 { return s.get(nsDuration, CPUTime) / 1000 }

func (s side) cycles() float64 {
	return s.get("sm__cycles_elapsed.max", "gpc__cycles_elapsed.max", "smsp__cycles_elapsed.max", CPUCycles)
}

// perSM is a count for each multiprocessor and cycle.
func (s side) perSM(count float64) float64 { return count / s.get(smCount) / s.cycles() }

// busy is the time in which the average multiprocessor has a block, as a share of that of the one that has blocks for longest.
func (s side) busy() float64 {
	return min(1, s.get("sm__cycles_active.avg")/s.get("sm__cycles_active.max", "sm__cycles_elapsed.max"))
}

// waves is how often the blocks of the grid fill the GPU.
func (s side) waves() float64 { return s.get("launch__waves_per_multiprocessor") }

// blockLimits is what limits the blocks on a multiprocessor, in words.
var blockLimits = []blockLimit{
	{"launch__occupancy_limit_registers", "registers"}, {"launch__occupancy_limit_shared_mem", "shared memory"},
	{"launch__occupancy_limit_warps", "warps"}, {"launch__occupancy_limit_blocks", "blocks"}, {"launch__occupancy_limit_barriers", "barriers"},
}

type blockLimit struct{ name, what string }

// BlockLimit returns the counter of a limit on the blocks of a multiprocessor: registers, shared memory, warps or blocks.
func BlockLimit(what string) string {
	for _, l := range blockLimits {
		if l.what == what {
			return l.name
		}
	}
	return ""
}

// StaticPrefix begins the names of what is known from a build: spill_bytes, and the instructions of the code by what they do
// (tensor, memory, barrier, special, all; vector is those of all that calculate with vectors of a CPU).
const StaticPrefix = "static__"

// static reports whether no counter of the processor is known: only the build is or, on a CPU, what the system counts.
func (s side) static() bool { return math.IsNaN(s.cycles()) }

// blocksPerSM is how many blocks a multiprocessor holds, and what limits it.
func (s side) blocksPerSM() (blocks float64, limit string) {
	blocks = math.NaN()
	for _, l := range blockLimits {
		if v := s.get(l.name); v > 0 && !(v >= blocks) {
			blocks, limit = v, l.what
		}
	}
	return blocks, limit
}

func (s side) registers() float64 { return s.get("launch__registers_per_thread") }
func (s side) occupancy() float64 {
	return s.get("sm__warps_active.avg.pct_of_peak_sustained_active")
}
func (s side) theoretical() float64 { return s.get("sm__maximum_warps_per_active_cycle_pct") }
func (s side) instructions() float64 {
	return s.get("smsp__inst_executed.sum", "sm__inst_executed.sum")
}

// issued is the share of the cycles of active multiprocessors in which a scheduler issues an instruction, in percent.
func (s side) issued() float64 {
	return s.get("smsp__issue_active.avg.pct_of_peak_sustained_active", "sm__inst_issued.avg.pct_of_peak_sustained_active", "sm__instruction_throughput.avg.pct_of_peak_sustained_active")
}

func (s side) dram() float64 {
	return s.get("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "dram__throughput.avg.pct_of_peak_sustained_elapsed")
}

func (s side) dramBytes() float64 {
	if v := s.get("dram__bytes.sum"); !math.IsNaN(v) {
		return v
	}
	if v := s.sum("dram__bytes_read.sum", "dram__bytes_write.sum"); !math.IsNaN(v) {
		return v
	}
	return s.get("dram__bytes.sum.per_second") * s.get(nsDuration) / 1e9
}

func (s side) l2() float64    { return s.get("lts__throughput.avg.pct_of_peak_sustained_elapsed") }
func (s side) l2Hit() float64 { return s.get("lts__t_sector_hit_rate.pct") }

// l1 is the busiest part of the cache next to the multiprocessor, which also holds shared memory.
func (s side) l1() float64 { return s.get("l1tex__throughput.avg.pct_of_peak_sustained_active") }

func (s side) sharedAccesses() float64 {
	return s.sum("smsp__inst_executed_op_shared_ld.sum", "smsp__inst_executed_op_shared_st.sum")
}

func (s side) sharedWavefronts() float64 {
	return s.get("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum")
}

func (s side) fp64Instructions() float64 { return s.get("sm__inst_executed_pipe_fp64.sum") }

// conflicts is the wavefronts of shared memory beyond those that the accesses need.
func (s side) conflicts() float64 {
	if v := s.get("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"); !math.IsNaN(v) {
		return v
	}
	return s.sum("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum")
}

func (s side) globalSectors() float64 {
	return s.sum("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum")
}

func (s side) globalRequests() float64 {
	return s.sum("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum")
}

// globalShare is how much of the work of the L1 cache is for global memory. The same unit serves shared memory, so a kernel that keeps it
// busy with tiles loses little by sectors that it does not need. A wavefront of the L1 cache has four sectors.
func (s side) globalShare() float64 {
	shared := s.sharedWavefronts()
	if math.IsNaN(shared) {
		return 1
	}
	global := s.globalSectors() / 4
	return global / (global + shared)
}

// waitsForMemory is the share of the time in which the path to global memory is the limit: a cache or DRAM is busy with it, or warps wait
// for its data or for room in its queue.
func (s side) waitsForMemory() float64 {
	most := math.NaN()
	for _, share := range []float64{s.dram() / 100, s.l2() / 100, s.l1() / 100 * s.globalShare(), s.stall("long_scoreboard"), s.stall("long_scoreboard") + s.stall("lg_throttle")} {
		if share > most || math.IsNaN(most) {
			most = share
		}
	}
	return min(1, most)
}

// excess is the sectors of global memory beyond those that coalesced accesses need.
func (s side) excess() float64 {
	return s.get("derived__memory_l2_theoretical_sectors_global_excessive")
}

func (s side) localAccesses() float64 {
	return s.sum("smsp__inst_executed_op_local_ld.sum", "smsp__inst_executed_op_local_st.sum")
}

// lanes is the threads of a warp that take part in the average instruction.
func (s side) lanes() float64 { return s.get("smsp__thread_inst_executed_per_inst_executed.ratio") }

// A pipe is an execution unit with its name in words.
type pipe struct{ name, words string }

// pipes is the execution units that can limit a kernel. tensor is those of matrices.
var pipes = []pipe{
	{"fp64", "FP64 units"}, {"fma", "FMA units"}, {"alu", "integer and logic units"}, {"xu", "special-function units"}, {"lsu", "load-store units"},
}

// pipeShare is how busy a unit is, in percent of the cycles of active multiprocessors.
func (s side) pipeShare(name string) float64 {
	return s.get("sm__pipe_"+name+"_cycles_active.avg.pct_of_peak_sustained_active", "sm__inst_executed_pipe_"+name+".avg.pct_of_peak_sustained_active")
}

func (s side) tensor() float64 {
	return s.get("sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active.avg.pct_of_peak_sustained_active", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active")
}

// stalls are the reasons for which a warp does not issue, with their words.
var stalls = []struct{ name, words string }{
	{"long_scoreboard", "global or local memory"}, {"short_scoreboard", "shared memory or special functions"}, {"barrier", "a barrier"}, {"membar", "a memory fence"},
	{"wait", "a fixed latency"}, {"math_pipe_throttle", "a busy compute unit"}, {"lg_throttle", "the queue of memory instructions"}, {"mio_throttle", "the queue of shared memory"},
	{"tex_throttle", "the queue of textures"}, {"not_selected", "other warps, which issue"}, {"no_instruction", "instructions"}, {"branch_resolving", "a branch"},
	{"imc_miss", "constants"}, {"drain", "its last stores"}, {"dispatch_stall", "the dispatcher"}, {"sleeping", "sleep"}, {"gmma", "matrix units"}, {"misc", "something else"}, {"selected", "nothing: it issues"},
}

// sampledStalls is the reasons by the words that ncu has for them where it samples single instructions, if they differ.
var sampledStalls = map[string]string{
	"long_sb": "long_scoreboard", "short_sb": "short_scoreboard", "math": "math_pipe_throttle", "lg": "lg_throttle", "mio": "mio_throttle", "tex": "tex_throttle",
	"no_inst": "no_instruction", "imc": "imc_miss", "dispatch": "dispatch_stall", "sleep": "sleeping",
}

// StallWords says what a warp waits for. A reason that is not known here is returned as it is.
func StallWords(reason string) string {
	name := cmp.Or(sampledStalls[reason], reason)
	for _, r := range stalls {
		if r.name == name {
			return r.words
		}
	}
	return reason
}

// stall is the share of the time of the average warp that it waits for a reason.
func (s side) stall(name string) float64 {
	total := 0.0
	for _, r := range stalls {
		if v := s.stallCycles(r.name); !math.IsNaN(v) {
			total += v
		}
	}
	return s.stallCycles(name) / total
}

func (s side) stallCycles(name string) float64 {
	return s.get(stallPrefix + name + stallSuffix)
}
