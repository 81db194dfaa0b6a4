package gates

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// withWall adds the judge's own clock to evidence: the kernel's time, an overhead that
// is the same for both sides, what the side waits, and the noise of a shared machine.
func withWall(e *Evidence, rng *rand.Rand, overhead, noise float64, waits func(round, block int, side rune) float64) {
	for r := range e.Performance.Rounds {
		s := &e.Performance.Rounds[r].Series[0]
		for i, side := range strings.ReplaceAll(s.Order, " ", "") {
			disturbed := noise * rng.ExpFloat64()
			s.Wall = append(s.Wall, s.Nanos[i]+overhead+disturbed+waits(r, i/6, side))
		}
	}
}

func no(int, int, rune) float64 { return 0 }

// A kernel that sleeps is slower, whatever the account of its processor time says.
func TestWaitingCounts(t *testing.T) {
	sleeps := func(nanos float64) func(int, int, rune) float64 {
		return func(_, _ int, side rune) float64 {
			if side == SideCandidate {
				return nanos
			}
			return 0
		}
	}
	for _, c := range []struct {
		name    string
		waits   func(round, block int, side rune) float64
		noise   float64
		mode    string
		outcome Outcome
		reason  Reason
		says    string
	}{
		{"an honest kernel", no, 100, "cpu", Pass, "", "Proven"},
		{"an honest kernel on a shared machine", no, 5 * simulatedNanos, "cpu", Pass, "", "Proven"},
		{"10 ms a launch", sleeps(1e7), 100, "cpu", Defer, ReasonTooSlow, "it waits 10 ms longer per launch than the baseline, so the wall clock counts"},
		{"10 ms a launch on a shared machine", sleeps(1e7), 5 * simulatedNanos, "cpu", Defer, ReasonTooSlow, "it waits "},
		{"half of its time", sleeps(simulatedNanos / 2), 100, "cpu", Defer, ReasonTooSlow, "it waits 50 µs longer per launch"},
		{"5 % of its time", sleeps(simulatedNanos / 20), 100, "cpu", Pass, "", "Proven"},
		{"both wait", func(int, int, rune) float64 { return 1e6 }, 100, "cpu", Pass, "", "Proven"},
		// One round in which it waits a hundred times as long must not pass for noise.
		{"10 ms, and once a second", func(round, _ int, side rune) float64 {
			if side != SideCandidate {
				return 0
			}
			if round == 2 {
				return 1e9
			}
			return 1e7
		}, 100, "cpu", Defer, ReasonTooSlow, "it waits 175 ms longer per launch"},
		// Nor must it hide behind the median by waiting in a part of its launches.
		{"10 ms in two blocks of five", func(_, block int, side rune) float64 {
			if side == SideCandidate && block%5 < 2 {
				return 1e7
			}
			return 0
		}, 100, "cpu", Defer, ReasonTooSlow, "it waits 4 ms longer per launch than the baseline, so the wall clock counts, but the speedup of the mean is"},
		{"a neighbour that comes and goes", func(round, block int, side rune) float64 {
			return 3 * simulatedNanos * float64((7*round+3*block+int(side))%4/3)
		}, simulatedNanos, "cpu", Pass, "", "Proven"},
		{"a GPU's time is its own affair here", sleeps(2e4), 100, "command", Pass, "", "Proven"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := quiet(1.2).measured(newRand(2, 2), 6)
			e.Mode = c.mode
			withWall(e, newRand(3, 3), 2e4, c.noise, c.waits)
			expect(t, judged(t, gate10, e), c.outcome, c.reason, c.says)
		})
	}
}

// What the events of a device claim, the clock on the wall must see.
func TestWallMustSeeTheGain(t *testing.T) {
	// The gain of the candidate's events is 1e5 − 1e5/1.2 = 16.7 µs; a share of it is
	// spent where the events do not see it.
	hidden := func(share float64) func(int, int, rune) float64 {
		return func(_, _ int, side rune) float64 {
			if side == SideCandidate {
				return share * simulatedNanos * (1 - 1/1.2)
			}
			return 0
		}
	}
	for _, c := range []struct {
		name    string
		share   float64
		noise   float64
		outcome Outcome
		reason  Reason
		says    string
	}{
		{"all of it is there", 0, 1e3, Pass, "", "Proven"},
		{"a quarter is not", 0.25, 1e3, Pass, "", "Proven"},
		{"none of it is", 1, 1e3, Defer, ReasonSuspicious, "the wall clock does not confirm the gain on mission"},
		{"less than nothing", 3, 1e3, Defer, ReasonSuspicious, "the wall clock does not confirm the gain on mission"},
		{"none of it, but nobody can tell", 1, 1e8, Pass, "", "Proven"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := quiet(1.2).measured(newRand(2, 2), 6)
			withWall(e, newRand(3, 3), 2e4, c.noise, hidden(c.share))
			expect(t, judged(t, gate10, e), c.outcome, c.reason, c.says)
		})
	}
}

func TestKeptState(t *testing.T) {
	for _, c := range []struct {
		name    string
		kept    float64 // time without the reset, as a share
		outcome Outcome
		reason  Reason
		says    string
	}{
		{"the same", 1, Pass, "", "Proven"},
		{"5 % faster", 0.95, Pass, "", "Proven"},
		{"ten times as fast", 0.1, Defer, ReasonSuspicious, "its time depends on state that it keeps"},
		{"a fifth faster", 0.8, Defer, ReasonSuspicious, "its time depends on state that it keeps"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := newRand(6, 6)
			e := quiet(1.2).measured(newRand(2, 2), 6)
			for r := range e.Performance.Rounds {
				s := &e.Performance.Rounds[r].Series[0]
				for range 7 {
					s.Stateful = append(s.Stateful, c.kept*simulatedNanos/1.2*(1+0.003*rng.NormFloat64()))
				}
			}
			expect(t, judged(t, gate10, e), c.outcome, c.reason, c.says)
		})
	}
}
