package gates

import (
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
)

// clocks is the figures of further clocks and further ways to launch, in addition to the times that
// are judged. A form is empty where the evidence has none of it.
type clocks struct {
	// For each block, by the judge's wall clock:
	wall          stats.Sample // baseline/candidate
	waiting       stats.Sample // 2 + what the candidate waits beyond the baseline, as a share of the baseline's time
	host          stats.Sample // 1 + what the wall saw of the gain beyond half of it, as a share of the baseline's time
	candidateWall stats.Sample // the candidate's times on the wall, in microseconds
	baselineWall  stats.Sample // the baseline's
	gain          []float64    // what the candidate gained by the times that are judged, as a share
	waits         []float64    // what the candidate waits beyond the baseline, in microseconds
	kinds         [][]int      // the kinds of input of candidateWall and baselineWall

	wallByKind []stats.Sample // of wall, for each kind of input

	// For each round:
	stateful stats.Sample // the candidate's time / its time without the reset
	first    stats.Sample // 1 + how far the first launch of a process is beyond what is allowed, as a share of the candidate's time
}

const (
	// waitingAllowed is how much longer than the baseline a candidate may wait, as a share of the
	// baseline's time, before the wall clock is the one that counts.
	waitingAllowed = 0.10

	// hostGain is the least gain that is compared with the wall clock: a smaller one may disappear in
	// the overhead around a launch.
	hostGain = 0.02

	// The first launch of a process may cost the candidate this much more than later ones, beyond its
	// cost for the baseline: a share of a launch, or half of the start-up cost of the baseline's
	// process, which differs a little from program to program.
	firstShare, firstStart = 0.25, 0.5

	// keptFaster is how much faster a candidate may be when its state is not reset.
	keptFaster = 0.10
)

// A clockRound is the blocks of one round.
type clockRound struct {
	wall, waiting, host, candidateWall, baselineWall, gain, waits []float64
	kinds                                                         []int
}

func (r *clockRound) add(kind int, b, c side) {
	r.kinds = append(r.kinds, kind)
	base, gained := b.mean(), b.mean()-c.mean()
	wait := c.waiting() - b.waiting()
	r.wall = append(r.wall, b.wallMean()/c.wallMean())
	r.candidateWall, r.baselineWall = append(r.candidateWall, c.wallMean()), append(r.baselineWall, b.wallMean())
	r.waits = append(r.waits, wait)
	r.waiting = append(r.waiting, 2+clip(wait/base, -1, 1))
	r.gain = append(r.gain, gained/base)
	r.host = append(r.host, 1+clip((b.wallMean()-c.wallMean()-gained/2)/base, -0.5, 0.5))
}

func (k *clocks) add(series *Series, r clockRound) {
	appendRound(&k.wall, r.wall)
	appendRound(&k.waiting, r.waiting)
	appendRound(&k.host, r.host)
	appendRound(&k.candidateWall, r.candidateWall)
	appendRound(&k.baselineWall, r.baselineWall)
	if len(r.kinds) > 0 {
		k.kinds = append(k.kinds, r.kinds)
	}
	k.gain, k.waits = append(k.gain, r.gain...), append(k.waits, r.waits...)
	k.addFirst(series.Single)
	if len(series.Stateful) == 0 {
		return
	}
	var times []float64
	at := 0
	for _, letter := range series.Order {
		if letter == ' ' {
			continue
		}
		if letter == SideCandidate {
			times = append(times, series.Nanos[at])
		}
		at++
	}
	if c := stats.Describe(times).P50; c > 0 {
		appendRound(&k.stateful, []float64{c / stats.Describe(series.Stateful).P50})
	}
}

// addFirst compares first launches with those that follow them in the same process.
func (k *clocks) addFirst(s *Singles) {
	if s == nil || len(s.FirstCandidate) == 0 {
		return
	}
	c := stats.Describe(s.Candidate).P50
	start := max(s.start(), 0)
	appendRound(&k.first, []float64{beyondAllowed(stats.Describe(s.FirstCandidate).P50-c, start+s.allowedFirst(), c)})
}

// start is what the first launch of a process costs the baseline beyond a later one; 0 where
// first launches were not timed.
func (s *Singles) start() float64 {
	if len(s.FirstBaseline) == 0 {
		return 0
	}
	return stats.Describe(s.FirstBaseline).P50 - stats.Describe(s.Baseline).P50
}

// allowedFirst is how much longer the first launch of a process may take the candidate,
// beyond what it takes the baseline.
func (s *Singles) allowedFirst() float64 {
	return max(firstShare*stats.Describe(s.Candidate).P50, firstStart*s.start())
}

// useWall switches to the wall clock where the candidate is proven to wait: processor time does not
// include the time that a kernel sleeps, but its caller waits for it.
func (s *shapeComparison) useWall(draws *stats.ResamplePlan, alpha float64) {
	k := &s.samples.clocks
	if len(k.waiting.Rounds) == 0 {
		return
	}
	// The mean, since a kernel may sleep only in some of its launches. The noise of a shared machine
	// affects both sides alike, and is clipped alike.
	var nothing stats.Sample
	for _, round := range k.waiting.Rounds {
		nothing.Rounds = append(nothing.Rounds, slices.Repeat([]float64{2}, len(round)))
	}
	d, err := draws.MeanRatio(k.waiting, nothing)
	if err != nil || d.PAbove(1+waitingAllowed/2) > alpha {
		return
	}
	s.samples.ratios, s.samples.byKind = k.wall, k.wallByKind
	s.samples.candidateTimes, s.samples.baselineTimes = timedSample{k.candidateWall, k.kinds}, timedSample{k.baselineWall, k.kinds}
	s.waits = facts.Waits{Micros: stats.Describe(k.waits).Mean}
}
