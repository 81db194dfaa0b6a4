package cuda_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	speedTotal = regexp.MustCompile(`(?m)^== (.*?): .*(?:\n.*)*?\n  total +(\S+)\n\nThe GPU drew inputs, ran the kernels or compared outputs in (\d+) %`)
	busyFloor  = 20 // per cent of a check
)

// The recorded checks of kernels that were not tuned for are quick, the GPU does not idle more than it
// did, and the quickstart has their times. `gpu.sh RESULTS speed` asks the same of new ones.
func TestRecordedSpeed(t *testing.T) {
	text, err := os.ReadFile("testdata/h200/speed.txt")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/quickstart.md")
	if err != nil {
		t.Fatal(err)
	}
	var totals []float64
	for _, m := range speedTotal.FindAllStringSubmatch(string(text), -1) {
		total, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		busy, _ := strconv.Atoi(m[3])
		if busy < busyFloor {
			t.Errorf("%s: the GPU works in %d %% of the time, want %d %%", m[1], busy, busyFloor)
		}
		if strings.HasPrefix(m[1], "attention") {
			continue
		}
		totals = append(totals, total)
		if row := fmt.Sprintf("| %.1f s | %d %% |\n", total, busy); !strings.Contains(string(page), row) {
			t.Errorf("%s: the quickstart has no row that ends in %q", m[1], row)
		}
	}
	slices.Sort(totals)
	if len(totals) != 8 {
		t.Fatalf("%d checks of 8 are recorded", len(totals))
	}
	if median := (totals[3] + totals[4]) / 2; median > 10 || totals[7] > 20 {
		t.Errorf("the median check takes %.1f s and the slowest %.1f s, want at most 10 and 20", median, totals[7])
	}
}
