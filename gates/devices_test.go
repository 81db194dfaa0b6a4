//go:build !race

package gates

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A head with two devices that must agree passes wrongly no more often than with one: it has to pass on the device where it is too
// slow. The machine codes of both devices have numbers of one list, as bot/attempts gives them.
func TestHeadOfTwoDevices(t *testing.T) {
	p := performancePolicy(t, `{target: {shapes: [mission], speedup: ">= +10%"}, control: 5%, pairs: 8, rounds: {min: 6, max: 20}, interims: [6, 12, 20]}`)
	alpha := (1 - float64(p.Rules[0].Gates.Performance.Confidence)) / 2
	heads := long.Times(80, 1000)
	at := func(ratio float64) truth { return truth{heavyTailed, map[string]float64{"mission": ratio}, 1, 8} }
	for name, ratios := range map[string][2]float64{
		"both are at the threshold":                           {1.1, 1.1},
		"the first is at the threshold, the second is faster": {1.1, 1.6},
		"the first is faster, the second is at the threshold": {1.6, 1.1},
	} {
		r := quickResamples()
		passed, rows := 0, [2]int{}
		for head := range heads {
			rng := rand.New(rand.NewPCG(uint64(head), 50))
			pass := true
			for device, ratio := range ratios {
				if at(ratio).claimed(p, rng, r, device+1).Outcome == Pass {
					rows[device]++
				} else {
					pass = false
				}
			}
			if pass {
				passed++
			}
		}
		most := alpha*float64(heads) + 3*math.Sqrt(alpha*float64(heads)) // three standard deviations are luck
		t.Logf("%s: %d heads, %d and %d pass on each device, %d on both (at most %.1f expected)", name, heads, rows[0], rows[1], passed, most)
		if float64(passed) > most {
			t.Errorf("%s: %d of %d heads pass", name, passed, heads)
		}
		for device, ratio := range ratios {
			if ratio > 1.5 && rows[device] < heads*9/10 {
				t.Errorf("%s: of %d clearly faster kernels only %d pass: the test shows nothing", name, heads, rows[device])
			}
		}
	}
}

// An author brings many codes, each too slow on a different device than the one before, and cancels runs so that these devices see
// them first. With one list of machine codes for all devices, the first attempts at all of them spend at most their half of the
// policy's error rate. With a list for each device they would spend it once for each.
func TestDevicesShareOneErrorRate(t *testing.T) {
	p := performancePolicy(t, interimPolicy)
	spent := func(device, code, devices int, shared bool) float64 {
		number := code/devices + 1 // in the list of the device on which the code is too slow
		if shared {
			number = code*devices + device + 1
		}
		return spentBy(t, p, number)
	}
	const codes, devices = 400, 2
	one, each := 0.0, 0.0
	for code := range codes {
		device := code % devices
		one += spent(device, code, devices, true)
		each += spent(device, code, devices, false)
	}
	const half = 0.025 / 2
	text := fmt.Sprintf("%d codes spend %.4f of %.4f with one list, %.4f with a list for each device", codes, one, half, each)
	t.Log(text)
	if one > half || each < 1.9*half {
		t.Error(text)
	}
}

// spentBy is the error rate of all looks at the first attempt at a machine code.
func spentBy(t *testing.T, p *policy.Policy, number int) float64 {
	t.Helper()
	looks, err := schedule(p.Rules[0].Gates.Performance, []Round{{Attempt: 1, CodeNumber: number}})
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, l := range looks {
		sum += l.alpha
	}
	return sum
}
