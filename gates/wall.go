package gates

import (
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/gates/stats"
)

// clocks is what other clocks and other ways to launch say beside the times that are
// judged. A form is empty where the evidence has none of it.
type clocks struct {
	// By block, by the judge's own clock on the wall:
	wall    stats.Sample // baseline/candidate
	waiting stats.Sample // 2 + what the candidate waits beyond the baseline, as a share of the baseline's time
	host    stats.Sample // 1 + what the wall saw of the gain beyond half of it, as a share of the baseline's time
	slow    stats.Sample // the candidate's times on the wall, in microseconds
	besides stats.Sample // the baseline's
	gain    []float64    // what the candidate gained by the times that are judged, as a share
	waits   []float64    // what the candidate waits beyond the baseline, in microseconds

	// By round:
	single stats.Sample // 1 + how far a lone launch is beyond what is allowed, as a share of the candidate's time
	kept   stats.Sample // the candidate's time / its time without the reset
}

const (
	// waitingAllowed is how much longer than the baseline a candidate may wait, as a
	// share of the baseline's time, before the clock on the wall is the one that counts.
	waitingAllowed = 0.10

	// hostGain is the least gain that is held against the clock on the wall: a smaller
	// one may hide in what lies around a launch.
	hostGain = 0.02

	// A launch that stands alone may cost the candidate so much more, over its time in
	// a batch, than it costs the baseline over its own.
	singleShare, singleNanos = 0.25, 750.0

	// On the CPU a launch that stands alone has the first steps of its process to
	// itself, which a batch shares. They take about the same on both sides, but not
	// nearly to the nanosecond: so much of what they cost the baseline may differ.
	singleStart = 0.5

	// keptFaster is how much faster a candidate may be when its state is kept.
	keptFaster = 0.10
)

// A clockRound is the blocks of one round.
type clockRound struct{ wall, waiting, host, slow, besides, gain, waits []float64 }

func (r *clockRound) add(b, c side) {
	base, gained := b.mean(), b.mean()-c.mean()
	wait := c.waiting() - b.waiting()
	r.wall = append(r.wall, b.wallMean()/c.wallMean())
	r.slow, r.besides = append(r.slow, c.wallMean()), append(r.besides, b.wallMean())
	r.waits = append(r.waits, wait)
	r.waiting = append(r.waiting, 2+clip(wait/base, -1, 1))
	r.gain = append(r.gain, gained/base)
	r.host = append(r.host, 1+clip((b.wallMean()-c.wallMean()-gained/2)/base, -0.5, 0.5))
}

func (k *clocks) add(series *Series, r clockRound) {
	appendRound(&k.wall, r.wall)
	appendRound(&k.waiting, r.waiting)
	appendRound(&k.host, r.host)
	appendRound(&k.slow, r.slow)
	appendRound(&k.besides, r.besides)
	k.gain, k.waits = append(k.gain, r.gain...), append(k.waits, r.waits...)
	if series.Single == nil && series.Kept == nil {
		return
	}
	batched := map[rune][]float64{}
	at := 0
	for _, letter := range series.Order {
		if letter != ' ' {
			batched[letter] = append(batched[letter], series.Nanos[at])
			at++
		}
	}
	b, c := stats.Describe(batched[SideBaseline]).P50, stats.Describe(batched[SideCandidate]).P50
	if b == 0 || c == 0 {
		return
	}
	if s := series.Single; s != nil && len(s.Baseline) > 0 && len(s.Candidate) > 0 {
		start := stats.Describe(s.Baseline).P50 - b
		allowed := max(singleShare*c, singleNanos)
		if !series.Cold { // no cache is flushed: a CPU
			allowed = max(allowed, singleStart*start)
		}
		excess := (stats.Describe(s.Candidate).P50 - c) - start
		appendRound(&k.single, []float64{1 + clip((excess-allowed)/c, -0.5, 1)})
	}
	if len(series.Kept) > 0 {
		appendRound(&k.kept, []float64{c / stats.Describe(series.Kept).P50})
	}
}

// useWall turns to the clock on the wall where the candidate is proven to wait: the
// account of a kernel's processor time does not show what it sleeps, and who asked
// for a result waits for it all the same.
func (s *shapeComparison) useWall(draws *stats.Draws, alpha float64) {
	k := &s.samples.clocks
	if len(k.waiting.Rounds) == 0 {
		return
	}
	// The mean, for a kernel may sleep in some of its launches alone. What a shared
	// machine adds falls on both sides alike, and is clipped alike.
	var nothing stats.Sample
	for _, round := range k.waiting.Rounds {
		nothing.Rounds = append(nothing.Rounds, slices.Repeat([]float64{2}, len(round)))
	}
	d, err := draws.MeanRatio(k.waiting, nothing)
	if err != nil || d.PAbove(1+waitingAllowed/2) > alpha {
		return
	}
	s.samples.ratios, s.samples.absolute = k.wall, k.slow
	s.samples.latencies, s.samples.besides = k.slow, k.besides
	s.waits = fmt.Sprintf("it waits %s a launch longer than the baseline, so that the clock on the wall counts", duration(stats.Describe(k.waits).Mean))
}

// duration writes microseconds the way people read them.
func duration(micros float64) string {
	switch {
	case micros >= 1e6:
		return fmt.Sprintf("%.3g s", micros/1e6)
	case micros >= 1e3:
		return fmt.Sprintf("%.3g ms", micros/1e3)
	}
	return fmt.Sprintf("%.3g µs", micros)
}
