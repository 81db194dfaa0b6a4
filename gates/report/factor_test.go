package report

import (
	"math"
	"testing"

	"github.com/kernelgate/kernelgate/gates/number"
)

func TestFactor(t *testing.T) {
	for x, want := range map[float64]string{1: "1.00×", 1.254: "1.25×", 2.994: "2.99×", 3: "3.00×", 6.4321: "6.43×", 99.94: "99.9×", 120.4: "120×", 0.5: "0.50×", 0: "–", math.Inf(1): "–"} {
		if got := Factor(x); got != want {
			t.Errorf("%v is %q, want %q", x, got, want)
		}
	}
	for x, want := range map[float64]string{0.161: "+16.1\u00a0%", -0.029: "2.90\u00a0%\u00a0slower", 0.999: "+99.9\u00a0%", 2: "3.00×", 3.116: "4.12×", -0.429: "1.75×\u00a0slower"} {
		if got := number.Speedup(x); got != want {
			t.Errorf("%v is %q, want %q", x, got, want)
		}
	}
}
