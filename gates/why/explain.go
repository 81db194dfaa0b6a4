package why

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// Profiles are those of one launch.
type Profiles struct {
	Baseline, Again, Candidate Launch
	Speedup                    float64  // that was measured without the profiler; 0: unknown
	Claims                     []string // what the author says: the ids of measures, see [Claims]
}

// An Explanation is why the candidate takes a different time.
type Explanation struct {
	Cause  Cause   `json:"cause,omitempty"`  // none: no counter moved beyond the noise, or no mechanism explains the difference
	Share  float64 `json:"share,omitempty"`  // the part of the difference that it explains, by its rule
	Static bool    `json:"static,omitempty"` // without counters of the processor: it follows from the builds and, on a CPU, from what the system counts
	Faster bool    `json:"faster,omitempty"`
	Moved  bool    `json:"moved,omitempty"` // some counter moved
	// Contradicts says that the profiler saw a difference in the other direction, so that its counters do not explain the times.
	Contradicts bool    `json:"contradicts,omitempty"`
	Baseline    Side    `json:"baseline"`
	Candidate   Side    `json:"candidate"`
	Rows        []Row   `json:"rows,omitempty"`   // by how much of the difference they can explain
	Stalls      []Stall `json:"stalls,omitempty"` // what warps wait for, the most frequent first
}

// A Side is what a profile says about one side.
type Side struct {
	Micros      float64  `json:"us,omitempty"` // by the profiler, which changes clocks: no timing
	Limiter     *Limiter `json:"limiter,omitempty"`
	Occupancy   *float64 `json:"occupancy,omitempty"` // of the warps that a multiprocessor holds, in percent
	Theoretical *float64 `json:"theoretical_occupancy,omitempty"`
	Blocks      *float64 `json:"blocks_per_sm,omitempty"` // at once on a multiprocessor
	LimitedBy   string   `json:"occupancy_limited_by,omitempty"`
	Registers   *float64 `json:"registers,omitempty"`
	SharedBytes *float64 `json:"shared_bytes,omitempty"` // of a block, with what the system takes
	Threads     *float64 `json:"block_threads,omitempty"`
	DRAMBytes   *float64 `json:"dram_bytes,omitempty"`
}

// A Row is one measure on both sides.
type Row struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Counter   string   `json:"counter,omitempty"` // ncu's name, of the first where it is made of several
	Unit      string   `json:"unit,omitempty"`
	Baseline  *float64 `json:"baseline,omitempty"` // none: not counted
	Candidate *float64 `json:"candidate,omitempty"`
	Noise     float64  `json:"noise"` // a smaller difference says nothing
	Moved     bool     `json:"moved"`
	Claimed   bool     `json:"claimed,omitempty"` // the change's title or description names it
}

// A Stall is how much of the time of the average warp is spent waiting for something, in percent.
type Stall struct {
	Reason    string  `json:"reason"` // ncu's word
	Words     string  `json:"words"`
	Baseline  float64 `json:"baseline"`
	Candidate float64 `json:"candidate"`
}

// MaxRows is the most rows of an explanation.
const MaxRows = 6

// Explain compares the profiles.
func Explain(p Profiles) Explanation {
	c := compared{p.Baseline.together(), p.Again.together(), p.Candidate.together()}
	x := Explanation{Static: c.baseline.static(), Baseline: c.baseline.summary(), Candidate: c.candidate.summary(), Stalls: c.stalls()}
	x.Faster = c.candidate.micros() < c.baseline.micros()
	x.Contradicts = p.Speedup != 0 && c.differs() && x.Faster != (p.Speedup > 0)
	order := c.byShare()
	if x.Contradicts {
		order = nil
	}
	for _, e := range order {
		if e.shows(c) && (x.Cause == "" || !e.general && e.share > x.Share) {
			if least := map[bool]float64{false: leastShare, true: leastGeneralShare}[e.general]; e.share >= least {
				x.Cause, x.Share = e.cause, round(e.share)
			}
		}
	}
	x.Rows = c.rows(x.Cause, order, p.Claims)
	x.Moved = slices.ContainsFunc(x.Rows, func(r Row) bool { return r.Moved })
	return x
}

// A ranked rule has the share of the difference that it explains.
type ranked struct {
	rule
	share float64
}

// byShare is the rules that explain some of the difference, special ones first, the largest share first.
func (c compared) byShare() []ranked {
	var order []ranked
	if !c.differs() {
		return nil
	}
	for _, r := range rules {
		if share := r.explained(c); share > 0 {
			order = append(order, ranked{r, share})
		}
	}
	slices.SortStableFunc(order, func(a, b ranked) int {
		if a.general != b.general {
			return cmp.Compare(general(a), general(b))
		}
		return cmp.Compare(b.share, a.share)
	})
	return order
}

func general(r ranked) int {
	if r.general {
		return 1
	}
	return 0
}

// differs reports whether the profiler's times differ by more than those of the baseline do.
func (c compared) differs() bool {
	before := c.baseline.micros()
	noise := relativeFloor * before
	if again := c.again.micros(); !math.IsNaN(again) {
		noise = max(noise, 3*math.Abs(again-before))
	}
	return math.Abs(c.candidate.micros()-before) > noise
}

func (c compared) moved(id string) bool { return measureOf(id).moved(c) }

// rows are those of the cause, then those of what the author names, of the further rules, and of whatever else moved.
func (c compared) rows(cause Cause, order []ranked, claims []string) []Row {
	var ids []string
	add := func(id string) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, e := range order {
		if e.cause == cause {
			add(e.rows[0])
		}
	}
	claims = slices.DeleteFunc(slices.Clone(claims), func(id string) bool { return measureOf(id).onCPU() != c.baseline.onCPU() })
	room := max(1, MaxRows-len(claims))
	fill := func(id string) {
		if len(ids) < room && c.moved(id) {
			add(id)
		}
	}
	for _, pass := range []bool{true, false} {
		for _, e := range order {
			if (e.cause == cause) == pass {
				for _, id := range e.rows {
					fill(id)
				}
			}
		}
	}
	for _, m := range measures {
		fill(m.id)
	}
	for _, id := range claims {
		if m := measureOf(id); len(ids) < MaxRows && m.id != "" {
			add(id)
		}
	}
	var rows []Row
	for _, id := range ids {
		rows = append(rows, c.row(id, slices.Contains(claims, id)))
	}
	return rows
}

func (c compared) row(id string, claimed bool) Row {
	m := measureOf(id)
	return Row{
		ID: m.id, Name: m.name, Counter: m.counter, Unit: m.unit, Baseline: known(m.value(c.baseline)), Candidate: known(m.value(c.candidate)),
		Noise: round(m.noise(c.baseline, c.again)), Moved: m.moved(c), Claimed: claimed,
	}
}

// known is a figure, or nil for none.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return new(round(v))
}

// round keeps six significant digits, so that nothing depends on the last bit of floating-point arithmetic.
func round(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	return r
}

func (s side) summary() Side {
	blocks, limit := s.blocksPerSM()
	x := Side{
		Occupancy: known(s.occupancy()), Theoretical: known(s.theoretical()), Blocks: known(blocks), LimitedBy: limit, Registers: known(s.registers()),
		SharedBytes: known(s.get("launch__shared_mem_per_block_allocated")), Threads: known(s.get("launch__block_size")), DRAMBytes: known(s.dramBytes()),
	}
	if v := s.micros(); !math.IsNaN(v) {
		x.Micros = round(v)
	}
	if s.static() {
		return x
	}
	if l := s.limiter(); l.Name != "" {
		l.Share = round(l.Share)
		x.Limiter = &l
	}
	return x
}

// stalls are the reasons that take a notable part of the time on a side.
func (c compared) stalls() []Stall {
	var all []Stall
	for _, r := range stalls {
		b, n := 100*c.baseline.stall(r.name), 100*c.candidate.stall(r.name)
		if max(b, n) >= 2 {
			all = append(all, Stall{Reason: r.name, Words: r.words, Baseline: round(b), Candidate: round(n)})
		}
	}
	slices.SortStableFunc(all, func(a, b Stall) int { return cmp.Compare(max(b.Baseline, b.Candidate), max(a.Baseline, a.Candidate)) })
	return all
}
