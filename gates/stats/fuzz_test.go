package stats_test

import (
	"encoding/binary"
	"math"
	"testing"
	"testing/quick"

	"github.com/kernelgate/kernelgate/gates/stats"
)

// decode reads arbitrary bytes as a sample: a value is eight bytes, and an odd
// last byte of a value closes its round.
func decode(data []byte, mild bool) stats.Sample {
	s := stats.Sample{Rounds: [][]float64{nil}}
	for len(data) >= 8 {
		bits := binary.LittleEndian.Uint64(data)
		v := math.Float64frombits(bits)
		if mild {
			v = math.Exp(math.Ldexp(float64(bits>>8), -56) - 0.5)
		}
		last := &s.Rounds[len(s.Rounds)-1]
		*last = append(*last, v)
		if bits&1 == 1 {
			s.Rounds = append(s.Rounds, nil)
		}
		data = data[8:]
	}
	if last := len(s.Rounds) - 1; mild && len(s.Rounds[last]) == 0 {
		s.Rounds = s.Rounds[:last]
	}
	return s
}

func checkInvariants(t *testing.T, s stats.Sample, q float64) {
	t.Helper()
	opt := stats.Options{Resamples: stats.MinResamples, Quantile: q}
	d, err := stats.Bootstrap(s, opt)
	if err != nil {
		return
	}
	if !(d.Estimate > 0) || !(d.StdErr >= 0) {
		t.Fatalf("estimate %v ± %v", d.Estimate, d.StdErr)
	}
	for _, confidence := range []float64{0, 0.5, 0.95, 1 - 1e-9} {
		if i := d.Interval(confidence); !(i.Lower <= d.Estimate && d.Estimate <= i.Upper) {
			t.Fatalf("interval %+v does not hold the estimate %v", i, d.Estimate)
		}
	}
	for _, x := range []float64{0, 1e-300, 0.5, d.Estimate, 1e300, math.Inf(1)} {
		if below, above := d.PBelow(x), d.PAbove(x); !(below >= 0 && below <= 1 && above >= 0 && above <= 1) {
			t.Fatalf("threshold %v: p-values %v and %v", x, below, above)
		}
		if n := d.RoundsNeeded(x, 0.05, 0.8); n < 2 || n > stats.Never {
			t.Fatalf("threshold %v: %d rounds needed", x, n)
		}
	}
	if e := d.Detectable(0.05, 0.8); !(e >= 0) {
		t.Fatalf("detectable effect %v", e)
	}
}

func FuzzBootstrap(f *testing.F) {
	bytes := func(values ...float64) (data []byte) {
		for _, v := range values {
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
		}
		return data
	}
	odd := math.Nextafter(1.5, 2)
	f.Add([]byte{}, 0.5)
	f.Add(bytes(1, odd, 1, odd, 2, odd), 0.5)
	f.Add(bytes(1, odd, 1e-308, odd, 1e308, odd, 1), 0.9)
	f.Add(bytes(odd, odd, odd), 0.999)
	tiny := math.Float64frombits(math.Float64bits(9e-308) | 1)
	f.Add(bytes(tiny, 4e8), 0.999) // the ratio of the neighbours is beyond the largest float
	f.Add(bytes(1, odd, math.NaN(), odd, math.Inf(1), odd), 0.5)
	f.Add(bytes(1, odd, -1, odd, 0, odd, 3), -2.0)
	f.Fuzz(func(t *testing.T, data []byte, q float64) {
		if len(data) > 4096 {
			t.Skip("large samples only slow the search")
		}
		checkInvariants(t, decode(data, false), q)
		checkInvariants(t, decode(data, true), q)
	})
}

func TestScaleEquivariance(t *testing.T) {
	scaled := func(data [40][8]byte, exponent int8) bool {
		var flat []byte
		for _, v := range data {
			flat = append(flat, v[:]...)
		}
		s := decode(flat, true)
		factor := math.Exp(float64(exponent) / 10)
		big := stats.Sample{}
		for _, round := range s.Rounds {
			var values []float64
			for _, v := range round {
				values = append(values, factor*v)
			}
			big.Rounds = append(big.Rounds, values)
		}
		opt := stats.Options{Resamples: stats.MinResamples}
		a, errA := stats.Bootstrap(s, opt)
		b, errB := stats.Bootstrap(big, opt)
		if errA != nil || errB != nil {
			return false
		}
		near := func(x, y float64) bool { return math.Abs(x/y-1) < 1e-9 }
		return near(b.Estimate, factor*a.Estimate) && near(b.StdErr, a.StdErr) &&
			near(b.Lower(0.05), factor*a.Lower(0.05)) && near(b.Upper(0.01), factor*a.Upper(0.01)) &&
			near(b.Detectable(0.05, 0.8), a.Detectable(0.05, 0.8))
	}
	if err := quick.Check(scaled, nil); err != nil {
		t.Error(err)
	}
}
