package gates

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kernelgate/kernelgate/gates/stats/simulate"
)

// The models share their type with the simulation of policies.
type (
	noiseModel      = simulate.Model
	drawFactor      = simulate.DrawFactor
	recordedControl = simulate.RecordedControl
)

// everyRound is a model without anything that lasts for a run.
func everyRound(name string, round func(rng *rand.Rand, samples int) drawFactor) noiseModel {
	return noiseModel{Name: name, Run: func(rng *rand.Rand) func(int) drawFactor {
		return func(samples int) drawFactor { return round(rng, samples) }
	}}
}

// perSide draws a value for each side.
func perSide(draw func() float64) map[rune]float64 {
	return map[rune]float64{SideBaseline: draw(), SideCandidate: draw(), SideControl: draw()}
}

// noiseModels are the kinds of noise whose error rates the table in docs/statistics.md shows; those
// that rest on recorded evidence are made from it.
func noiseModels() []noiseModel {
	normal := func(rng *rand.Rand, sd float64) float64 { return sd * rng.NormFloat64() }
	return []noiseModel{
		everyRound("independent launches", func(rng *rand.Rand, _ int) drawFactor {
			return func(rune, int) float64 { return normal(rng, 0.02) }
		}),
		everyRound("autocorrelated launches, AR(1)", func(rng *rand.Rand, _ int) drawFactor {
			state := normal(rng, 0.02)
			return func(rune, int) float64 {
				state = 0.9*state + normal(rng, 0.02*math.Sqrt(1-0.81))
				return state
			}
		}),
		everyRound("thermal ramp", func(rng *rand.Rand, samples int) drawFactor {
			i := 0
			return func(rune, int) float64 {
				i++
				return 0.05*float64(i)/float64(samples) + normal(rng, 0.01)
			}
		}),
		everyRound("bimodal processes", func(rng *rand.Rand, _ int) drawFactor {
			mode := perSide(func() float64 { return 0.02 * float64(rng.IntN(2)) })
			return func(side rune, _ int) float64 { return mode[side] + normal(rng, 0.005) }
		}),
		everyRound("one slot of a block slow", func(rng *rand.Rand, _ int) drawFactor {
			level := perSide(func() float64 { return normal(rng, 0.003) })
			return func(side rune, place int) float64 {
				slow := 0.0
				if place == 0 {
					slow = 0.05
				}
				return slow + level[side] + normal(rng, 0.01)
			}
		}),
		everyRound("±3 % swapped between copies", func(rng *rand.Rand, _ int) drawFactor {
			steps := rng.Perm(3)
			level := perSide(func() float64 {
				s := 0.03 * float64(steps[0]-1)
				steps = steps[1:]
				return s
			})
			return func(side rune, _ int) float64 { return level[side] + normal(rng, 0.005) }
		}),
		everyRound("Pareto spikes", func(rng *rand.Rand, _ int) drawFactor {
			level := perSide(func() float64 { return normal(rng, 0.005) })
			spike := distuv.Pareto{Xm: 0.05, Alpha: 1.5, Src: rng}
			return func(side rune, _ int) float64 {
				x := level[side] + normal(rng, 0.01)
				if rng.Float64() < 0.03 {
					x += math.Log1p(spike.Rand())
				}
				return x
			}
		}),
		{Name: "an outlier round", Run: func(rng *rand.Rand) func(int) drawFactor {
			at, round := rng.IntN(6), 0
			return func(int) drawFactor {
				level := perSide(func() float64 { return normal(rng, 0.005) })
				if round == at {
					level[[]rune{SideBaseline, SideCandidate, SideControl}[rng.IntN(3)]] += 0.1
				}
				round++
				return func(side rune, _ int) float64 { return level[side] + normal(rng, 0.01) }
			}
		}},
		everyRound("three clock ticks", func(rng *rand.Rand, _ int) drawFactor {
			level := perSide(func() float64 { return normal(rng, 0.002) })
			return func(side rune, _ int) float64 { return level[side] + normal(rng, 0.004) }
		}),
		everyRound("bursts", func(rng *rand.Rand, _ int) drawFactor {
			left := 0
			level := perSide(func() float64 { return normal(rng, 0.005) })
			return func(side rune, _ int) float64 {
				x := level[side] + normal(rng, 0.005)
				if left--; left > 0 {
					return x + 0.25
				}
				if rng.Float64() < 0.02 {
					left = 1 + rng.IntN(12)
				}
				return x
			}
		}),
		everyRound("correlated launches of a side", func(rng *rand.Rand, _ int) drawFactor {
			state := perSide(func() float64 { return normal(rng, 0.015) })
			return func(side rune, _ int) float64 {
				state[side] = 0.98*state[side] + normal(rng, 0.015*math.Sqrt(1-0.98*0.98))
				return state[side] + normal(rng, 0.005)
			}
		}),
		everyRound("t with 3 degrees between rounds", func(rng *rand.Rand, _ int) drawFactor {
			between := distuv.StudentsT{Sigma: 0.01 / math.Sqrt(3), Nu: 3, Src: rng}
			level := perSide(between.Rand)
			return func(side rune, _ int) float64 { return level[side] + normal(rng, 0.01) }
		}),
	}
}
