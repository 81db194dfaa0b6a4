package facts

import "testing"

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 6144: "6,144", 999999: "999,999", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
