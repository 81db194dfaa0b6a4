package why

import "testing"

// onCPU is what Linux counts of a launch. The processor counts only where cycles are given.
func onCPU(nanos, cycles, instructions float64, further map[string]float64) Launch {
	counters := map[string]float64{CPUTime: nanos}
	if cycles > 0 {
		counters[CPUCycles], counters[CPUInstructions] = cycles, instructions
	}
	for name, v := range further {
		counters[name] = v
	}
	return Launch{{Name: "k", Counters: counters}}
}

// A cause is named in both directions: the slower side has it.
func TestCausesOnCPU(t *testing.T) {
	type counts = map[string]float64
	for _, c := range []struct {
		name         string
		slow, fast   Launch
		cause        Cause
		row          string
		before, next string // limiters of slow and fast
	}{
		{"half the instructions", onCPU(1000, 3000, 6000, nil), onCPU(500, 1500, 3000, nil), MoreInstructions, "cpu_instructions", "instructions", "instructions"},
		{"as many, in fewer cycles", onCPU(1000, 3000, 1500, nil), onCPU(400, 1200, 1500, nil), CyclesPerInstruction, "cpu_per_cycle", "latency", "latency"},
		{"more instructions that wait less", onCPU(1000, 3000, 1500, nil), onCPU(500, 1500, 3300, nil), CyclesPerInstruction, "cpu_per_cycle", "latency", "instructions"},
		{"mispredicted branches", onCPU(1000, 3000, 1500, counts{CPUBranchMisses: 100}), onCPU(400, 1200, 1600, counts{CPUBranchMisses: 1}), BranchMisses, "cpu_branch_misses", "mispredicted branches", "latency"},
		{"rows and columns swapped", onCPU(1e6, 3e6, 2e6, counts{CPUMemoryMisses: 40_000, CPUL1Misses: 60_000, CPUTLBMisses: 100}),
			onCPU(3e5, 9e5, 2e6, counts{CPUMemoryMisses: 2000, CPUL1Misses: 9000, CPUTLBMisses: 90}), CacheMisses, "cpu_cache_misses", "memory", "instructions"},
		{"data that the second cache has", onCPU(1e6, 3e6, 2e6, counts{CPUL1Misses: 300_000}), onCPU(4e5, 1.2e6, 2e6, counts{CPUL1Misses: 3000}), L1Misses, "cpu_l1_misses", "L1 cache", "latency"},
		{"a page for each access", onCPU(1e6, 3e6, 2e6, counts{CPUTLBMisses: 90_000}), onCPU(4e5, 1.2e6, 2e6, counts{CPUTLBMisses: 10}), TLBMisses, "cpu_tlb_misses", "TLB", "latency"},
		{"memory allocated in each launch", onCPU(600_000, 0, 0, counts{CPUPageFaults: 200}), onCPU(3000, 0, 0, counts{CPUPageFaults: 0}), PageFaults, "cpu_page_faults", "", ""},
		{"a lock", onCPU(100_000, 0, 0, counts{CPUSwitches: 40}), onCPU(20_000, 0, 0, counts{CPUSwitches: 1}), ContextSwitches, "cpu_switches", "", ""},
		{"vectors", onCPU(4000, 0, 0, counts{StaticPrefix + "vector": 0, StaticPrefix + "all": 400}), onCPU(600, 0, 0, counts{StaticPrefix + "vector": 22, StaticPrefix + "all": 600}), NoVectors, "static_vector", "", ""},
		{"nothing that anybody counted", onCPU(1000, 0, 0, counts{CPUPageFaults: 0}), onCPU(500, 0, 0, counts{CPUPageFaults: 0}), "", "", "", ""},
	} {
		for _, faster := range []bool{true, false} {
			p := Profiles{Baseline: c.slow, Again: c.slow, Candidate: c.fast}
			limiters := []string{c.before, c.next}
			if !faster {
				p, limiters = Profiles{Baseline: c.fast, Again: c.fast, Candidate: c.slow}, []string{c.next, c.before}
			}
			x := Explain(p)
			if x.Cause != c.cause || x.Faster != faster || x.Static != (c.before == "") {
				t.Errorf("%s: faster=%v: %+v", c.name, faster, x)
			}
			if c.row != "" && (len(x.Rows) == 0 || x.Rows[0].ID != c.row) {
				t.Errorf("%s: faster=%v: rows %+v", c.name, faster, x.Rows)
			}
			for i, side := range []Side{x.Baseline, x.Candidate} {
				if got := side.Limiter; got == nil && limiters[i] != "" || got != nil && got.Name != limiters[i] {
					t.Errorf("%s: faster=%v: limiter %d is %+v, want %q", c.name, faster, i, got, limiters[i])
				}
			}
		}
		if x := Explain(Profiles{Baseline: c.slow, Again: c.slow, Candidate: c.slow}); x.Cause != "" || x.Moved {
			t.Errorf("%s, and an equal side: %+v", c.name, x)
		}
	}
}

// What the author names is shown where it can be counted.
func TestClaimsOnCPU(t *testing.T) {
	a, b := onCPU(1000, 3000, 6000, map[string]float64{CPUBranchMisses: 20}), onCPU(500, 1500, 3000, map[string]float64{CPUBranchMisses: 20})
	x := Explain(Profiles{Baseline: a, Again: a, Candidate: b, Claims: Claims("Branchless compare, better occupancy")})
	var ids []string
	for _, r := range x.Rows {
		ids = append(ids, r.ID)
		if r.Claimed != (r.ID == "cpu_branch_misses") {
			t.Errorf("%+v", r)
		}
	}
	if len(ids) != 2 || ids[1] != "cpu_branch_misses" {
		t.Errorf("rows %v", ids)
	}
}
