package report

import (
	"strings"
	"testing"
)

// A stored sentence is shown in the notation of the tables next to it.
func TestInNotation(t *testing.T) {
	for stored, want := range map[string]string{
		"Slower: speedup −42.9_% [−44.0_%, −42.0_%] on long (asked speedup >= -2%)":                "Slower: 1.75×_slower [1.72×, 1.79×] on long (asked speedup ≥_−2_%)",
		"Slower: speedup −2.9_% [−3.1_%, −2.8_%] on wide":                                          "Slower: 2.9_%_slower [−3.1_%, −2.8_%] on wide",
		"Slower: speedup −2.9_% [−3.6_%, −2.2_%] on long":                                          "Slower: 2.9_%_slower [−3.6_%, −2.2_%] on long",
		"Proven: speedup +16.1_% [+15.8_%, +16.4_%] on mission":                                    "Proven: speedup +16.1_% [+15.8_%, +16.4_%] on mission",
		"Proven: speedup +540.0_% [+530.0_%, +550.0_%] on mission":                                 "Proven: speedup 6.40× [6.30×, 6.50×] on mission",
		"by inputs normal +25.2_%, constant −5.3_%, large −60.0_%":                                 "by inputs normal +25.2_%, constant 5.3_%_slower, large 2.50×_slower",
		"the speedup of the p90 is −4.0_% [−4.4_%, −3.6_%] (at least −2.0_%: slow launches count)": "the p90 is 4.0_%_slower [−4.4_%, −3.6_%] (at least −2.0_%: slow launches count)",
		"on large inputs it is −9.1_% [−9.9_%, −8.3_%] (each kind of input must reach −2.0_%)":     "on large inputs it is 9.1_%_slower [−9.9_%, −8.3_%] (each kind of input must reach −2.0_%)",
		"machine code 4KiB → 3KiB, −25.0_% (limit <= +10%)":                                        "machine code 4KiB → 3KiB, −25.0_% (limit <= +10_%)",
		"bring `long` to ≤_19023.3_µs":                                                             "bring `long` to ≤_19.02_ms",
		"bring `long` to ≤_46.11_µs":                                                               "bring `long` to ≤_46.11_µs",
		"mission takes 1.021 µs, and the device needs at least 2219 µs for this work":              "mission takes 1.021 µs, and the device needs at least 2.22_ms for this work",
		"mission p50 5123_µs [5100, 5200], asked <= 5ms":                                           "mission p50 5123_µs [5100, 5200], asked ≤_5ms",
		"the A/A control on mission is +4.1_% [+3.6_%, +4.7_%] instead of 0":                       "the A/A control on mission is +4.1_% [+3.6_%, +4.7_%] instead of 0",
		"comment /rebench rounds=4, or gain more on mission":                                       "comment /rebench rounds=4, or gain more on mission",
		"a launch gains 1.2 µs in a batch and 0.1 µs on its own (speedup −0.9_% [−1.2_%, −0.6_%])": "a launch gains 1.2 µs in a batch and 0.1 µs on its own (0.9_%_slower [−1.2_%, −0.6_%])",
	} {
		space := strings.NewReplacer("_", string(nbsp))
		if got := InNotation(space.Replace(stored)); got != space.Replace(want) {
			t.Errorf("%s\nis %s\nwant %s", stored, got, want)
		}
	}
}
