package why

import (
	"math"
	"slices"
	"strings"
)

// A measure is a figure that a row shows: a counter, or several of them put together.
type measure struct {
	id      string // stable, for programs
	name    string
	unit    string // "%", "B" or a word
	counter string // the counter that it is, or the first of those that it is made of
	value   func(side) float64
	floor   float64 // a smaller difference is noise whatever the baseline shows
}

// Counters is what the measures and rules read, by ncu's names: those that are asked for one by one. Further ones come with
// ncu's sections: see Reads.
var Counters = []string{
	nsDuration, "sm__cycles_elapsed.max", "sm__cycles_active.avg", "sm__cycles_active.max", "sm__warps_active.avg.pct_of_peak_sustained_active",
	"dram__throughput.avg.pct_of_peak_sustained_elapsed", "dram__bytes_read.sum", "dram__bytes_write.sum",
	"lts__throughput.avg.pct_of_peak_sustained_elapsed", "lts__t_sector_hit_rate.pct",
	"l1tex__throughput.avg.pct_of_peak_sustained_active",
	"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
	"smsp__inst_executed_op_shared_ld.sum", "smsp__inst_executed_op_shared_st.sum",
	"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
	"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
	"smsp__inst_executed_op_local_ld.sum", "smsp__inst_executed_op_local_st.sum",
	"smsp__inst_executed.sum", "smsp__issue_active.avg.pct_of_peak_sustained_active", "smsp__thread_inst_executed_per_inst_executed.ratio",
	"sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active.avg.pct_of_peak_sustained_active",
	"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active",
	"sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active", "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active",
	"sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active", "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active",
	"sm__inst_executed_pipe_fp64.sum",
}

// Reads reports whether a counter is read here. Evidence keeps no others.
func Reads(name string) bool {
	if slices.Contains(Counters, name) || slices.Contains(cpuCounters, name) || slices.ContainsFunc(blockLimits, func(l blockLimit) bool { return l.name == name }) {
		return true
	}
	if stall, ok := strings.CutPrefix(name, stallPrefix); ok {
		return strings.HasSuffix(stall, stallSuffix)
	}
	return slices.Contains([]string{
		smCount, "launch__grid_size", "launch__block_size", "launch__waves_per_multiprocessor", "launch__registers_per_thread",
		"launch__shared_mem_per_block_allocated", "sm__maximum_warps_per_active_cycle_pct", "derived__memory_l2_theoretical_sectors_global_excessive",
	}, name)
}

// relativeFloor is the least relative difference that counts as moved, for counts.
const relativeFloor = 0.03

// measures is every figure, in the order in which rows of equal weight are shown.
var measures = slices.Concat(gpuMeasures, cpuMeasures)

var gpuMeasures = []measure{
	{"kernels", "kernels of a launch", "", "", func(s side) float64 { return float64(s.kernels) }, 0.5},
	{"blocks", "blocks", "", "launch__grid_size", func(s side) float64 { return s.get("launch__grid_size") }, 0.5},
	{"waves", "waves of blocks", "", "launch__waves_per_multiprocessor", side.waves, 0.02},
	{"busy", "multiprocessors with work", "%", "sm__cycles_active.avg", func(s side) float64 { return 100 * s.busy() }, 8},
	{"blocks_per_sm", "blocks at once on a multiprocessor", "", "launch__occupancy_limit_registers", func(s side) float64 { n, _ := s.blocksPerSM(); return n }, 0.5},
	{"occupancy", "occupancy", "%", "sm__warps_active.avg.pct_of_peak_sustained_active", side.occupancy, 4},
	{"registers", "registers a thread", "", "launch__registers_per_thread", side.registers, 0.5},
	{"shared_bytes", "shared memory a block", "B", "launch__shared_mem_per_block_allocated", func(s side) float64 { return s.get("launch__shared_mem_per_block_allocated") }, 0.5},
	{"dram", "DRAM", "%", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", side.dram, 3},
	{"dram_bytes", "DRAM traffic", "B", "dram__bytes.sum", side.dramBytes, 1 << 20},
	{"l2", "L2 cache", "%", "lts__throughput.avg.pct_of_peak_sustained_elapsed", side.l2, 3},
	{"l2_hit", "hits in the L2 cache", "%", "lts__t_sector_hit_rate.pct", side.l2Hit, 5},
	{"l1", "L1 cache and shared memory", "%", "l1tex__throughput.avg.pct_of_peak_sustained_active", side.l1, 3},
	{"conflicts", "bank conflicts for each access to shared memory", "", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", func(s side) float64 { return s.conflicts() / s.sharedAccesses() }, 0.1},
	{"excess", "sectors of global memory beyond those needed", "%", "derived__memory_l2_theoretical_sectors_global_excessive", func(s side) float64 { return 100 * s.excess() / s.globalSectors() }, 3},
	{"access_bytes", "bytes for each access of a warp to global memory", "B", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", side.accessBytes, 4},
	{"local", "instructions that access local memory", "%", "smsp__inst_executed_op_local_ld.sum", func(s side) float64 { return 100 * s.localAccesses() / s.instructions() }, 0.5},
	{"lanes", "threads of a warp that take part", "of 32", "smsp__thread_inst_executed_per_inst_executed.ratio", side.lanes, 0.7},
	{"fp64", "FP64 units", "%", "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active", func(s side) float64 { return s.pipeShare("fp64") }, 2},
	{"tensor", "tensor cores", "%", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", side.tensor, 3},
	{"fma", "FMA units", "%", "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active", func(s side) float64 { return s.pipeShare("fma") }, 3},
	{"alu", "integer and logic units", "%", "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active", func(s side) float64 { return s.pipeShare("alu") }, 3},
	{"xu", "special-function units", "%", "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active", func(s side) float64 { return s.pipeShare("xu") }, 3},
	{"barrier", "time that warps wait at barriers", "%", "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", func(s side) float64 { return 100 * s.stall("barrier") }, 5},
	{"memory_wait", "time that warps wait for global or local memory", "%", "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", func(s side) float64 { return 100 * s.stall("long_scoreboard") }, 8},
	{"instructions", "instructions of warps", "", "smsp__inst_executed.sum", side.instructions, 0},
	{"sectors", "sectors of global memory", "", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", side.globalSectors, 0},
	{"spill_bytes", "bytes that spill to local memory", "B", "", func(s side) float64 { return s.get(StaticPrefix + "spill_bytes") }, 0.5},
	{"static_tensor", "tensor instructions of the code", "", "", func(s side) float64 { return s.get(StaticPrefix + "tensor") }, 0.5},
	{"static_vector", "vector arithmetic of the code", "", "", func(s side) float64 { return s.get(StaticPrefix + "vector") }, 0.5},
	{"static_memory", "memory instructions of the code", "", "", func(s side) float64 { return s.get(StaticPrefix + "memory") }, 0.5},
	{"static_barrier", "barrier instructions of the code", "", "", func(s side) float64 { return s.get(StaticPrefix + "barrier") }, 0.5},
	{"static_special", "special-function instructions of the code", "", "", func(s side) float64 { return s.get(StaticPrefix + "special") }, 0.5},
	{"static_all", "instructions of the code", "", "", func(s side) float64 { return s.get(StaticPrefix + "all") }, 0.5},
	{"issued", "issue slots", "%", "smsp__issue_active.avg.pct_of_peak_sustained_active", side.issued, 3},
}

// accessBytes is the bytes that the average access of a warp needs.
func (s side) accessBytes() float64 {
	return 32 * (s.globalSectors() - s.excess()) / s.globalRequests()
}

// onCPU reports whether the measure is one of a kernel on a CPU.
func (m measure) onCPU() bool { return strings.HasPrefix(m.id, "cpu_") }

func measureOf(id string) measure {
	for _, m := range measures {
		if m.id == id {
			return m
		}
	}
	return measure{value: func(side) float64 { return math.NaN() }}
}

// noise is the difference that a measure has without a change: three times what two profiles of the
// baseline differ by, and never less than the floor.
func (m measure) noise(baseline, again side) float64 {
	b, a := m.value(baseline), m.value(again)
	least := max(m.floor, relativeFloor*math.Abs(b))
	if baseline.static() && !m.onCPU() {
		least = m.floor // the code has no noise
	}
	if math.IsNaN(a) || math.IsNaN(b) {
		return least
	}
	return max(least, 3*math.Abs(a-b))
}

// moved reports whether a measure is known on both sides and differs by more than noise.
func (m measure) moved(c compared) bool {
	b, n := m.value(c.baseline), m.value(c.candidate)
	return math.Abs(n-b) > m.noise(c.baseline, c.again)
}

// A compared launch is its three profiles.
type compared struct{ baseline, again, candidate side }
