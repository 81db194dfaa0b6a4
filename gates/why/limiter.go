package why

import "math"

// A Limiter is what keeps a kernel from running faster.
type Limiter struct {
	Name  string  `json:"name"`            // one of the words of docs/why.md, such as "DRAM"
	Share float64 `json:"share,omitempty"` // how much of it is used, in percent of its peak; for latency, of the time that warps wait
}

// Thresholds of the rules.
const (
	shortKernel = 5.0  // microseconds: below it, starting a kernel takes a notable part
	idleShare   = 0.7  // of the time with work on a multiprocessor: below it, the grid is the limit
	nearPeak    = 60.0 // percent of its peak: a unit is the limit
	waitShare   = 0.3  // of the time of a warp: a reason is the limit
)

// limiter applies the rules in their order: launches, the grid, the busiest unit, and else waiting.
func (s side) limiter() Limiter {
	if s.onCPU() {
		return s.cpuLimiter()
	}
	switch {
	case s.micros()/float64(max(1, s.kernels)) < shortKernel && (s.kernels > 1 || s.micros() < shortKernel/2):
		return Limiter{Name: "launch overhead"}
	case s.busy() < idleShare && s.waves() < 1:
		return Limiter{"too few blocks", 100 * s.busy()}
	case s.busy() < idleShare:
		return Limiter{"tail wave", 100 * s.busy()}
	}
	if unit := s.busiest(); unit.Share >= nearPeak {
		return unit
	}
	reason, share := "", 0.0
	for _, r := range stalls {
		if v := s.stall(r.name); v > share && r.name != "selected" && r.name != "not_selected" {
			reason, share = r.name, v
		}
	}
	switch {
	case reason == "barrier" && share >= waitShare:
		return Limiter{"barriers", 100 * share}
	case reason == "":
		return s.busiest()
	}
	return Limiter{"latency", 100 * share}
}

// busiest is the unit that comes nearest to its peak; no name where none is known.
func (s side) busiest() Limiter {
	var most Limiter
	add := func(name string, share float64) {
		if share > most.Share {
			most = Limiter{name, share}
		}
	}
	add("DRAM", s.dram())
	add("L2 cache", s.l2())
	inner := "L1 cache"
	if 100*s.perSM(s.sharedWavefronts()) > s.l1()/2 {
		inner = "shared memory"
	}
	add(inner, s.l1())
	add("tensor cores", s.tensor())
	for _, p := range pipes {
		add(p.words, s.pipeShare(p.name))
	}
	// Every unit is fed through the issue slots, so they are named only where they are clearly busier.
	if issued := s.issued(); issued > most.Share+10 || math.IsNaN(most.Share) {
		add("issue slots", issued)
	}
	return most
}
