package report

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// recorded is evidence from an H200, judged by a policy.
func recorded(t *testing.T, name string) Result {
	t.Helper()
	folder := filepath.Join("..", "..", "kernels", "sdpa_fp8")
	data, err := os.ReadFile(filepath.Join(folder, "evidence", "all", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := gates.ParseEvidence(name, data)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "showcase.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("showcase.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	return Result{Evidence: e, Verdict: gates.Judge(p, "showcase.yaml", e)}
}

// Two runs beside each other, in a terminal: faster, slower, other resources, a shape that one of them lacks.
func TestCompareRuns(t *testing.T) {
	golden(t, "compare.txt", CompareRuns(recorded(t, "stage6_split"), recorded(t, "stage6_fp8"), TerminalOptions{Width: 120}))
	same := recorded(t, "stage5")
	golden(t, "compare-same.txt", CompareRuns(same, same, TerminalOptions{Width: 80}))
	bad := recorded(t, "stage5")
	bad.Evidence.Kernel, bad.Evidence.Device.Driver = "a\x1b[31mb", "c\rd"
	if text := CompareRuns(same, bad, TerminalOptions{}); strings.ContainsAny(text, "\x1b\r") {
		t.Errorf("%q", text)
	}
}

// rounds draws medians of rounds around a time.
func rounds(r *rand.Rand, n int, middle, noise float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = middle * math.Exp(noise*r.NormFloat64())
	}
	return list
}

// What is called significant is so by chance in one of twenty, whatever the noise,
// and a real difference is seen with the right sign.
func TestWeigh(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const trials = 2000
	alarms, covered := 0, 0
	for range trials {
		d := Difference{Kind: "time", Class: "none"}
		d.weigh(rounds(r, 6, 20, 0.01), rounds(r, 12, 20, 0.03))
		if d.Significant() {
			alarms++
		}
		if *d.Lower <= 0 && *d.Upper >= 0 {
			covered++
		}
	}
	if share := float64(alarms) / trials; share < 0.03 || share > 0.07 {
		t.Errorf("%.1f %% false alarms", 100*share)
	}
	if alarms+covered != trials {
		t.Errorf("the interval and the chance disagree: %d + %d of %d", alarms, covered, trials)
	}
	for _, tt := range []struct {
		b    float64
		want string
	}{{18, "pass"}, {22, "fail"}} {
		a, b := 20.0, tt.b
		d := Difference{Kind: "time", Class: "none", A: &a, B: &b}
		d.weigh(rounds(r, 6, a, 0.01), rounds(r, 6, b, 0.01))
		if d.Class != tt.want || math.Abs(*d.Ratio-(a/b-1)) > 0.03 || *d.P > 1e-3 {
			t.Errorf("20 against %v: %+v", tt.b, d)
		}
	}
	for name, few := range map[string][]float64{"none": nil, "one": {3}, "no noise": {3, 3, 3}, "zero": {0, 0}} {
		d := Difference{Class: "none"}
		if d.weigh(few, few); d.P != nil || d.Significant() {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// The times of two runs are compared kind of input by kind of input, as a verdict compares its sides: what one run says of two
// variants, and what two runs say, have the same sign.
func TestDifferencesAgreeWithVerdicts(t *testing.T) {
	read := func(name string) Result {
		t.Helper()
		file := "../../kernels/sdpa_fp8/evidence/" + name + ".json"
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		e, err := gates.ParseEvidence(file, data)
		if err != nil {
			t.Fatal(err)
		}
		text, err := policies.Shipped("h200")
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.Parse("h200.yaml", text)
		if err != nil {
			t.Fatal(err)
		}
		return Result{Verdict: gates.Judge(p, "h200.yaml", e), Evidence: e}
	}
	before, after := read("stage6_fp8"), read("stage6_split")
	for _, d := range Differences(before, after) {
		c := after.Verdict.ComparisonOf(d.Name)
		if d.Kind != "time" || c == nil {
			continue
		}
		if math.Abs(*d.Ratio-c.Speedup.Value) > 0.02 {
			t.Errorf("%s: the verdict says %+.3f, two runs say %+.3f", d.Name, c.Speedup.Value, *d.Ratio)
		}
	}
}
