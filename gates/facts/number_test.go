package facts

import (
	"testing"
)

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 6144: "6,144", 999999: "999,999", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestDurations(t *testing.T) {
	for micros, want := range map[float64]string{1: "1 µs", 999: "999 µs", 1000: "1 ms", 12_345: "12.3 ms", 999_000: "999 ms", 1e6: "1 s", 2.5e6: "2.5 s"} {
		if got := duration(micros); got != want {
			t.Errorf("%g µs: %s, want %s", micros, got, want)
		}
	}
}

// A bound is never rounded up: a time that reads like it is within it.
func TestBoundInWords(t *testing.T) {
	for micros, want := range map[float64]string{35.3978: "35.39", 100: "100.00", 0.51239: "0.512", 0.0051239: "0.00512", 19023.37: "19023.3"} {
		if got := atMost(micros); got != want {
			t.Errorf("%v is at most %s, and not %s", micros, got, want)
		}
	}
}

// Shares have as many digits as people read.
func TestDigitsOfShares(t *testing.T) {
	for share, want := range map[float64]string{0.001: "0.10\u00a0%", 0.00994: "0.99\u00a0%", 0.01: "1.0\u00a0%", 0.161: "16.1\u00a0%", 9.99: "999.0\u00a0%", 10: "1000\u00a0%", 10.004: "1000\u00a0%", 20: "2000\u00a0%"} {
		if got := percent(share); got != want {
			t.Errorf("%g: %s, want %s", share, got, want)
		}
		if got := percent(-share); got != want {
			t.Errorf("%g: %s, want %s", -share, got, want)
		}
	}
	for change, want := range map[float64]string{0: "0.00\u00a0%", 0.00001: "0.00\u00a0%", 0.1: "+10.0\u00a0%", -0.1: "−10.0\u00a0%"} {
		if got := signed(change); got != want {
			t.Errorf("%g: %s, want %s", change, got, want)
		}
	}
}
