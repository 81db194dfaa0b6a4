package tune

import (
	"fmt"
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/gates/stats"
)

// A Race finds the fastest of many arms with as few measurements as it can. Every round measures
// each arm that is still in the race once, paired with the incumbent. An arm's value in a round is
// the mean over the shapes of log(incumbent/arm). Whatever disturbs a whole round moves all values
// of the round alike, so arms are compared by their differences within rounds, and only over rounds
// that had both.
//
// An arm leaves when its differences to the best prove that it is slower. The race is decided when
// every remaining arm is proven to be at most epsilon faster than the best. An arm with that proof
// stays in the race, but it is measured again only if a different arm becomes the best. The proofs are
// those of the performance gate (package stats). All proofs together err with probability delta. Every
// arm gets an equal part of delta and spends it over the interim analyses, with larger shares first. Both kinds of
// proof use the same upper bound on the ratio of the arm's speed to the best's, so they share its error
// rate.
//
// The values of the winner are still those of the luckiest arm. They prove nothing: the ordinary
// gate measures the winner again.
type Race struct {
	epsilon  float64
	interims []int
	shares   []float64 // of one kind of proof about one arm, by interim analysis
	plan     *stats.ResamplePlan
	keepAll  bool
	racers   []*racer // in the order of entry
	last     int      // the last round that was recorded
}

// A racer is one arm of a race.
type racer struct {
	name   string
	values map[int]float64 // by round
	fixed  bool            // the incumbent, whose value is 0 in every round
	out    bool
	by     *racer // that proved it slower; nil if it is in the race, or failed
	failed bool
	near   *racer // an arm that this one is proven to be at most epsilon faster than
}

// RaceOptions say what a race has to show.
type RaceOptions struct {
	Epsilon   float64 // the winner may be slower than the best by this share
	Delta     float64 // probability that the winner is slower than that, or that a proof errs
	Arms      int     // the most arms that can enter
	MaxRounds int     // of two arms together; then no proof about them can come
	KeepAll   bool    // drop nobody, and measure all rounds: the exhaustive truth
}

// Defaults of a race.
const (
	defaultEpsilon   = 0.01
	defaultDelta     = 0.05
	defaultMaxRounds = 40
	firstInterim     = 3
)

// NewRace prepares a race.
func NewRace(opt RaceOptions) (*Race, error) {
	if !(opt.Epsilon > 0 && opt.Epsilon < 1) {
		return nil, fmt.Errorf("a race cannot decide to within %v (choose a share between 0 and 1)", opt.Epsilon)
	}
	if !(opt.Delta > 0 && opt.Delta < 1) {
		return nil, fmt.Errorf("a race cannot err with probability %v (choose one between 0 and 1)", opt.Delta)
	}
	interims := interimsUpTo(max(opt.MaxRounds, firstInterim))
	shares := spend(opt.Delta/float64(max(opt.Arms, 1)), interims)
	plan, err := stats.NewResamplePlan(stats.MinResamples, 1)
	return &Race{epsilon: opt.Epsilon, interims: interims, shares: shares, plan: plan, keepAll: opt.KeepAll}, err
}

// interimsUpTo are the numbers of common rounds after which two arms are compared. Early interim analyses are
// dense, because most arms of a search are far behind.
func interimsUpTo(most int) []int {
	var interims []int
	for n := firstInterim; n < most; n += max(1, n/5) {
		interims = append(interims, n)
	}
	return append(interims, most)
}

// spend divides an error rate over interim analyses: the share of analysis k is proportional to 1/k. The first ones get
// most, because most arms are far behind: if they leave early, the race saves most measurements.
func spend(alpha float64, interims []int) []float64 {
	shares, sum := make([]float64, len(interims)), 0.0
	for k := range interims {
		shares[k] = 1 / float64(k+1)
		sum += shares[k]
	}
	for k := range shares {
		shares[k] *= alpha / sum
	}
	return shares
}

// Enter adds arms. They are measured from the next round on.
func (r *Race) Enter(names ...string) {
	for _, name := range names {
		r.racers = append(r.racers, &racer{name: name, values: map[int]float64{}})
	}
}

// EnterIncumbent adds the arm that every other is paired with. It costs no measurement.
func (r *Race) EnterIncumbent(name string) {
	r.racers = append(r.racers, &racer{name: name, fixed: true})
}

// Alive lists the arms that are in the race, without the incumbent.
func (r *Race) Alive() []string {
	return measured(r.alive())
}

// Next lists the arms that the next round measures: the best one, and those that may still be more
// than epsilon faster.
func (r *Race) Next() []string {
	best := r.best()
	return measured(slices.DeleteFunc(r.alive(), func(a *racer) bool { return !r.keepAll && a != best && a.near == best && best != nil }))
}

// measured returns the names of the arms that cost measurements: all except the incumbent.
func measured(arms []*racer) []string {
	var names []string
	for _, a := range arms {
		if !a.fixed {
			names = append(names, a.name)
		}
	}
	return names
}

func (r *Race) alive() []*racer {
	return slices.DeleteFunc(slices.Clone(r.racers), func(a *racer) bool { return a.out })
}

// Disqualify removes an arm that failed. It does not come back. Its speed proves nothing about others:
// the arms that it has beaten are in the race again. It returns their names.
func (r *Race) Disqualify(name string) (back []string) {
	failed := r.find(name)
	if failed == nil || failed.failed {
		return nil
	}
	failed.out, failed.failed, failed.by = true, true, nil
	for _, a := range r.racers {
		if a.out && !a.failed && a.by == failed {
			a.out, a.by = false, nil
			back = append(back, a.name)
		}
	}
	return back
}

func (r *Race) find(name string) *racer {
	if i := slices.IndexFunc(r.racers, func(a *racer) bool { return a.name == name }); i >= 0 {
		return r.racers[i]
	}
	return nil
}

// A Drop says that an arm was proven to be slower than another.
type Drop struct {
	Arm    string  `json:"arm"`
	By     string  `json:"by"`     // the arm that is faster
	Rounds int     `json:"rounds"` // that had both
	Ratio  float64 `json:"ratio"`  // speed of the arm over that of By, estimated
}

// Record adds the values of a round and returns the arms that it drops. An arm without a value in
// the round, because something disturbed it, is compared by its other rounds.
func (r *Race) Record(round int, values map[string]float64) []Drop {
	for name, v := range values {
		if a := r.find(name); a != nil && !a.fixed && !math.IsNaN(v) && !math.IsInf(v, 0) {
			a.values[round] = v
			r.last = max(r.last, round)
		}
	}
	best := r.best()
	if best == nil || r.keepAll {
		return nil
	}
	var drops []Drop
	for _, a := range r.alive() {
		if a == best {
			continue
		}
		d, share := r.compare(a, best, round)
		if d == nil {
			continue
		}
		if d.Estimate < 1 && d.PBelow(1) <= share {
			a.out, a.by = true, best
			drops = append(drops, Drop{Arm: a.name, By: best.name, Rounds: d.Rounds, Ratio: d.Estimate})
		}
		if d.PBelow(1+r.epsilon) <= share {
			a.near = best
		}
	}
	return drops
}

// compare returns the speed of a over that of b, if this round is an interim analysis of the two, and the error
// rate of the analysis. A pair that this round did not add to was looked at before.
func (r *Race) compare(a, b *racer, round int) (*stats.Distribution, float64) {
	if !a.ran(round) || !b.ran(round) {
		return nil, 0
	}
	of, by := common(a, b)
	interim := slices.Index(r.interims, len(of.Rounds))
	if interim < 0 {
		return nil, 0
	}
	d, err := r.plan.MeanRatio(of, by)
	if err != nil {
		return nil, 0 // values too large to add up: no proof
	}
	return d, r.shares[interim]
}

func (a *racer) ran(round int) bool {
	_, ok := a.values[round]
	return ok || a.fixed
}

func (a *racer) value(round int) float64 { return a.values[round] } // 0 for the incumbent

// rounds lists the rounds of an arm, in order.
func (a *racer) rounds() []int {
	var all []int
	for n := range a.values {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

// common are the speeds of two arms in the rounds that had both.
func common(a, b *racer) (of, by stats.Sample) {
	from := a
	if a.fixed {
		from = b
	}
	for _, n := range from.rounds() {
		if a.ran(n) && b.ran(n) {
			of.Rounds = append(of.Rounds, []float64{math.Exp(a.value(n))})
			by.Rounds = append(by.Rounds, []float64{math.Exp(b.value(n))})
		}
	}
	return of, by
}

// best is the arm with the highest estimate.
func (r *Race) best() *racer {
	if order := r.order(); len(order) > 0 {
		return order[0]
	}
	return nil
}

// Best is the arm with the highest estimate; "" before the first round.
func (r *Race) Best() string {
	if b := r.best(); b != nil {
		return b.name
	}
	return ""
}

// Decided reports whether every remaining arm is proven to be at most epsilon faster than the best.
func (r *Race) Decided() bool {
	best := r.best()
	return best != nil && !slices.ContainsFunc(r.alive(), func(a *racer) bool { return a != best && a.near != best })
}

// Over reports whether more rounds cannot decide the race: every two arms that are not decided have
// been in all rounds that the error rate was spread over.
func (r *Race) Over() bool {
	best := r.best()
	if best == nil {
		return len(r.alive()) == 0
	}
	last := r.interims[len(r.interims)-1]
	return !slices.ContainsFunc(r.alive(), func(a *racer) bool {
		if a == best || a.near == best {
			return false
		}
		of, _ := common(a, best)
		return len(of.Rounds) < last
	})
}

// Elite lists the best n of the arms that are in the race, best first.
func (r *Race) Elite(n int) []string {
	var names []string
	for _, a := range r.order()[:min(n, len(r.order()))] {
		names = append(names, a.name)
	}
	return names
}
