package gates

import (
	"maps"

	"github.com/kernelgate/kernelgate/gates/why"
)

// staticWhys explains from the builds alone what no profiler has counted: the evidence has what the compiler says of both sides, and
// the instructions by what they do.
func staticWhys(e *Evidence, compared []Comparison, shapes []string) []Why {
	if e.Baseline == nil || e.Candidate == nil {
		return nil
	}
	var all []Why
	for _, shape := range shapes {
		beforeMicros, afterMicros := 0.0, 0.0
		if c := comparisonOf(compared, shape); c != nil && c.Baseline != nil && c.Candidate != nil {
			beforeMicros, afterMicros = c.Baseline.P50, c.CandidateTime()
		}
		code := codeServing(e, shape)
		before := staticLaunch(e, e.Baseline, code.Baseline, beforeMicros)
		after := staticLaunch(e, e.Candidate, code.Candidate, afterMicros)
		p := why.Profiles{Baseline: before, Again: before, Candidate: after, Claims: claims(e)}
		all = append(all, Why{Shape: shape, Explanation: why.Explain(p)})
	}
	return all
}

// codeServing is the machine code that serves a shape, of both sides. It is empty where several may: of a choice on a CPU it is not known which.
func codeServing(e *Evidence, shape string) CodeChange {
	var found []CodeChange
	if m := e.MachineCode; m != nil {
		for _, change := range m.Changes {
			if change.serves(shape) {
				found = append(found, change)
			}
		}
	}
	if len(found) == 0 || len(found) > 1 && e.Can().onHost() {
		return CodeChange{}
	}
	return found[0]
}

// addMeasured adds to what was counted of kernels on a CPU the instructions of the builds, because most systems count little there, and
// the times that the rounds have measured: those of a few launches say little on a busy machine.
func addMeasured(e *Evidence, shape string, c *Comparison, p why.Profiles) {
	if e.Baseline == nil || e.Candidate == nil {
		return
	}
	beforeMicros, afterMicros := 0.0, 0.0
	if c != nil && c.Baseline != nil && c.Candidate != nil {
		beforeMicros, afterMicros = c.Baseline.P50, c.CandidateTime()
	}
	code := codeServing(e, shape)
	before, after := staticLaunch(e, e.Baseline, code.Baseline, beforeMicros), staticLaunch(e, e.Candidate, code.Candidate, afterMicros)
	for _, side := range []struct{ counted, known why.Launch }{{p.Baseline, before}, {p.Again, before}, {p.Candidate, after}} {
		if len(side.counted) > 0 {
			own := maps.Clone(side.known[0].Counters)
			maps.Copy(own, side.counted[0].Counters)
			side.counted[0].Counters = own
		}
	}
}

// staticLaunch is what is known without a profiler, by the names that a profiler has for it. A time of 0 was not measured.
func staticLaunch(e *Evidence, b *Build, code *Instructions, micros float64) why.Launch {
	counters := map[string]float64{}
	if micros > 0 {
		counters["gpu__time_duration.sum"] = 1000 * micros
	}
	add := func(name string, v *int) {
		if v != nil {
			counters[name] = float64(*v)
		}
	}
	if code != nil {
		for name, n := range map[string]int{"tensor": code.Tensor, "memory": code.Memory, "barrier": code.Barrier, "special": code.Special, "vector": code.Vector, "all": code.All()} {
			counters[why.StaticPrefix+name] = float64(n)
		}
	}
	if r := b.Resources; r != nil {
		add("launch__registers_per_thread", r.Registers)
		add("launch__block_size", r.BlockThreads)
		if r.SpillLoads != nil && r.SpillStores != nil {
			counters[why.StaticPrefix+"spill_bytes"] = float64(*r.SpillLoads + *r.SpillStores)
		}
		shared := 0
		if r.StaticShared != nil {
			shared += *r.StaticShared
		}
		if r.DynamicShared != nil {
			shared += *r.DynamicShared
		}
		if r.BlockThreads != nil && r.Registers != nil {
			if blocks, limit, ok := BlocksPerSM(e.Device.Arch, *r.BlockThreads, *r.Registers, shared); ok {
				sm, _ := limitsOf(e.Device.Arch)
				counters[why.BlockLimit(limit)] = float64(blocks)
				counters["sm__maximum_warps_per_active_cycle_pct"] = 100 * float64(blocks*((*r.BlockThreads+31)/32)) / float64(sm.warps)
			}
		}
	}
	return why.Launch{{Name: e.Kernel, Counters: counters}}
}
