package why

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// counters are those of a kernel that is limited by DRAM, with changes.
func counters(changes map[string]float64) Launch {
	c := map[string]float64{
		nsDuration: 100_000, smCount: 132, "sm__cycles_elapsed.max": 170_000, "sm__cycles_active.avg": 160_000, "launch__waves_per_multiprocessor": 12, "launch__grid_size": 12_000,
		"sm__warps_active.avg.pct_of_peak_sustained_active": 80, "sm__maximum_warps_per_active_cycle_pct": 100, "launch__registers_per_thread": 32,
		"dram__throughput.avg.pct_of_peak_sustained_elapsed": 85, "dram__bytes_read.sum": 2e8, "dram__bytes_write.sum": 2e8, "lts__throughput.avg.pct_of_peak_sustained_elapsed": 40,
		"lts__t_sector_hit_rate.pct": 50, "l1tex__throughput.avg.pct_of_peak_sustained_active": 30, "smsp__inst_executed.sum": 2e7,
		"smsp__issue_active.avg.pct_of_peak_sustained_active": 30, "smsp__thread_inst_executed_per_inst_executed.ratio": 32,
		"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 6e6, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 6e6,
		"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 1.5e6, "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": 1.5e6, "derived__memory_l2_theoretical_sectors_global_excessive": 0,
		"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": 0, "smsp__inst_executed_op_shared_ld.sum": 1e6, "smsp__inst_executed_op_shared_st.sum": 1e6,
		"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": 20, "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio": 1,
	}
	maps.Copy(c, changes)
	return Launch{{Name: "k", Counters: c}}
}

var conflicts = map[string]float64{
	nsDuration: 200_000, "sm__cycles_elapsed.max": 340_000, "sm__cycles_active.avg": 330_000, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": 3.1e7,
	"l1tex__throughput.avg.pct_of_peak_sustained_active": 92, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 3.3e7, "dram__throughput.avg.pct_of_peak_sustained_elapsed": 42,
}

func TestExplain(t *testing.T) {
	slow, fast := counters(conflicts), counters(nil)
	x := Explain(Profiles{Baseline: slow, Again: slow, Candidate: fast, Speedup: 1})
	if x.Cause != BankConflicts || !x.Faster || x.Rows[0].ID != "conflicts" || len(x.Rows) > MaxRows {
		t.Errorf("%+v", x)
	}
	if b, c := x.Baseline.Limiter, x.Candidate.Limiter; b.Name != "shared memory" || c.Name != "DRAM" {
		t.Errorf("%+v → %+v", b, c)
	}
	back := Explain(Profiles{Baseline: fast, Again: fast, Candidate: slow, Speedup: -0.5})
	if back.Cause != BankConflicts || back.Faster {
		t.Errorf("%+v", back)
	}
	if x := Explain(Profiles{Baseline: fast, Again: fast, Candidate: slow, Speedup: 0.5}); x.Cause != "" || !x.Contradicts {
		t.Errorf("the profile contradicts the times: %+v", x)
	}
}

// A difference that the baseline has with itself is no difference.
func TestNoise(t *testing.T) {
	noisy := map[string]float64{nsDuration: 104_000, "dram__throughput.avg.pct_of_peak_sustained_elapsed": 79}
	far := map[string]float64{nsDuration: 111_000, "dram__throughput.avg.pct_of_peak_sustained_elapsed": 70}
	if x := Explain(Profiles{Baseline: counters(nil), Again: counters(noisy), Candidate: counters(far)}); x.Moved || x.Cause != "" {
		t.Errorf("%+v", x)
	}
	if x := Explain(Profiles{Baseline: counters(nil), Again: counters(nil), Candidate: counters(far)}); !x.Moved {
		t.Errorf("%+v", x)
	}
}

// What was not counted is unknown, and never a reason.
func TestMissingCounters(t *testing.T) {
	slow, fast := counters(conflicts), counters(nil)
	for name := range slow[0].Counters {
		without := counters(nil)
		delete(without[0].Counters, name)
		Explain(Profiles{Baseline: without, Again: without, Candidate: fast})
		if x := Explain(Profiles{Baseline: slow, Again: slow, Candidate: without}); name == "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum" && x.Cause == BankConflicts {
			t.Errorf("conflicts that were not counted are the cause: %+v", x)
		}
	}
	x := Explain(Profiles{Claims: []string{"conflicts"}})
	if x.Cause != "" || x.Moved || len(x.Rows) != 1 || x.Rows[0].Baseline != nil || !x.Rows[0].Claimed {
		t.Errorf("%+v", x)
	}
}

// A kernel whose counters differ by noise alone is the same, whatever the noise.
func TestEqualKernels(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		draw := func() Launch {
			l := counters(conflicts)
			for _, name := range slices.Sorted(maps.Keys(l[0].Counters)) {
				if v := l[0].Counters[name]; v != math.Trunc(v) || v > 1000 {
					l[0].Counters[name] = v * (1 + 0.004*rng.NormFloat64())
				}
			}
			return l
		}
		if x := Explain(Profiles{Baseline: draw(), Again: draw(), Candidate: draw()}); x.Moved || x.Cause != "" {
			t.Fatalf("%+v", x.Rows)
		}
	}
}

// Kernels of a launch are taken together: counts are added up, shares weighed by time.
func TestTogether(t *testing.T) {
	short := map[string]float64{nsDuration: 300_000, "smsp__inst_executed.sum": 10, "sm__warps_active.avg.pct_of_peak_sustained_active": 40}
	s := Launch{counters(nil)[0], counters(short)[0]}.together()
	if s.kernels != 2 || s.micros() != 400 || s.instructions() != 2e7+10 || s.occupancy() != 50 || s.registers() != 32 {
		t.Errorf("%d kernels, %v µs, %v instructions, %v %%", s.kernels, s.micros(), s.instructions(), s.occupancy())
	}
	delete(short, "smsp__inst_executed.sum")
	l := Launch{counters(nil)[0], counters(short)[0]}
	delete(l[1].Counters, "smsp__inst_executed.sum")
	if v := l.together().instructions(); !math.IsNaN(v) {
		t.Errorf("%v instructions, of which one kernel has none", v)
	}
}

func TestClaims(t *testing.T) {
	for text, want := range map[string][]string{
		"perf: swizzle shared memory to avoid bank conflicts": {"conflicts"},
		"Raise occupancy and stop spills":                     {"occupancy", "local"},
		"use tensor cores":                                    {"tensor"},
		"coalesced loads":                                     {"excess"},
		"keep K in L2":                                        {"l2_hit"},
		"a faster kernel":                                     nil,
	} {
		if got := Claims(text, ""); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		for _, id := range Claims(text) {
			if measureOf(id).id == "" {
				t.Errorf("%s is no measure", id)
			}
		}
	}
}

// Every row of a rule is a measure, and every measure has its own name.
func TestRulesNameMeasures(t *testing.T) {
	for _, r := range rules {
		for _, id := range r.rows {
			if measureOf(id).id == "" {
				t.Errorf("%s: %s is no measure", r.cause, id)
			}
		}
	}
	names := map[string]bool{}
	for _, m := range measures {
		if names[m.name] || m.name == "" {
			t.Errorf("%s is there twice", m.name)
		}
		names[m.name] = true
	}
}

// One unit serves global and shared memory. If it is busy with shared memory, or if warps do not wait for global memory, then neither
// sectors that are not needed nor narrow accesses explain a difference. The figures are made up, after the stages of an attention kernel.
func TestSharedMemoryIsNoGlobalMemory(t *testing.T) {
	kernel := func(ns, sectors, requests, excess, shared, waits float64) Launch {
		return Launch{{Name: "k", Counters: map[string]float64{
			"gpu__time_duration.sum": ns, "sm__cycles_elapsed.max": ns, "launch__sm_count": 132, "sm__cycles_active.avg": 0.9 * ns, "sm__cycles_active.max": ns,
			"launch__waves_per_multiprocessor": 1, "dram__throughput.avg.pct_of_peak_sustained_elapsed": 0.3, "lts__throughput.avg.pct_of_peak_sustained_elapsed": 4,
			"l1tex__throughput.avg.pct_of_peak_sustained_active": 63, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": shared,
			"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": sectors, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 0,
			"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": requests, "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": 0,
			"derived__memory_l2_theoretical_sectors_global_excessive":                  excess,
			"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": waits, "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio": 1 - waits,
		}}}
	}
	for name, c := range map[string]struct {
		before, after Launch
		cause         Cause
	}{
		"sectors beside shared memory":  {kernel(45000, 4e4, 1e4, 2e4, 4e6, 0.02), kernel(33000, 2e4, 1e4, 0, 3e6, 0.02), ""},
		"sectors alone":                 {kernel(45000, 4e6, 1e6, 2e6, 1e3, 0.6), kernel(33000, 2e6, 1e6, 0, 1e3, 0.6), Uncoalesced},
		"narrow, and nobody waits":      {kernel(45000, 4e4, 4e4, 0, 4e6, 0.02), kernel(33000, 4e4, 1e4, 0, 4e6, 0.02), ""},
		"narrow, and warps wait for it": {kernel(45000, 4e4, 4e4, 0, 4e6, 0.7), kernel(33000, 4e4, 1e4, 0, 4e6, 0.7), NarrowAccess},
	} {
		if x := Explain(Profiles{Baseline: c.before, Again: c.before, Candidate: c.after, Speedup: 0.3}); x.Cause != c.cause {
			t.Errorf("%s: the cause is %q (%.0f %% of the difference), want %q", name, x.Cause, 100*x.Share, c.cause)
		}
	}
}
