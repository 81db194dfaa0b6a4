package submission

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/result"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// TestWhatAnAdaptiveAuthorLearns plays an author who asks 1,000 times to find out which secret cases the
// next claim has. Each claimed kernel is wrong on the lower half of the sizes, so that the answer counts
// the cases that were drawn there. The author learns that count about cases that are gone, and it says
// nothing about the next ones.
func TestWhatAnAdaptiveAuthorLearns(t *testing.T) {
	text, err := os.ReadFile("../../kernels/sdpa_cpu/kernel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse("kernel.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("p.yaml", []byte("version: 1\ngates:\n  correctness: {shapes: [small], seeds: [0], secret_cases: 5, norm_error: '<= 1%'}\nrules:\n  - name: default\n"))
	if err != nil {
		t.Fatal(err)
	}
	const asks, cases = 1000, 5
	claims := gates.MostCodes(&policy.PerformanceGate{Interims: []int{6, 13, 20}})
	rng := rand.New(rand.NewPCG(7, 49))
	var counts []float64
	for range claims {
		e := &gates.Evidence{
			Schema: gates.EvidenceSchema, Kernel: m.Name, Mode: "cpu", Shapes: []gates.Shape{{Name: "small", Dims: m.Shapes[0].Dims.String()}},
			Candidate: &gates.Build{OK: true, Code: "c"}, Baseline: &gates.Build{OK: true, Code: "b"}, Correctness: &gates.Correctness{},
		}
		add := func(s manifest.Shape, seed uint64, secret, wrong bool) {
			errors := &gates.Errors{Elements: 64}
			if wrong {
				errors.Norm, errors.MaxAbs, errors.Bad = 0.1234567, 7.654321, 17
			}
			in := gates.Input{Shape: s.Name, Dims: s.Dims.String(), Seed: seed, Distribution: "normal", Secret: secret}
			e.Correctness.Cases = append(e.Correctness.Cases, gates.Case{Input: in, Errors: errors})
		}
		add(m.Shapes[0], 0, false, false)
		low := 0.0
		for _, s := range m.DrawSecret(m.DefaultVariant, rng, cases) {
			size, _ := s.Dims.Get("S")
			wrong := size <= 80
			if wrong {
				low++
			}
			add(s, rng.Uint64()>>16, true, wrong)
		}
		v := gates.Judge(p, "p.yaml", e)
		r := result.Redacted(v, e)
		told := 0.0
		for _, f := range r.Failures {
			told += float64(f.Count)
		}
		if told != low {
			t.Fatalf("the answer counts %v wrong cases, and there are %v", told, low)
		}
		answer, err := json.Marshal([]any{r, r.Text(), whyOf(&Submission{Intent: result.Claim, Result: r}, result.Redact(v, e))})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range e.Correctness.Cases[1:] {
			for _, secret := range []string{k.Dims, strings.ReplaceAll(k.Dims, " ", ","), "12.3", "7.65", "secret1"} {
				if strings.Contains(string(answer), secret) {
					t.Fatalf("the answer has %q: %s", secret, answer)
				}
			}
		}
		counts = append(counts, low)
	}
	r := correlation(counts[:len(counts)-1], counts[1:])
	luck := 3 / math.Sqrt(float64(len(counts)))
	t.Logf("in %d asks of a day, an author learns nothing about secret cases from %d probes, and from %d claims how many of %d cases were wrong (at most %.2f bits each); the correlation of that with the cases of the next claim is %.3f (luck: %.3f)",
		asks, asks-claims, claims, cases, math.Log2(cases+1), r, luck)
	if math.Abs(r) > luck {
		t.Errorf("answers predict the next secret cases: the correlation is %v", r)
	}
}

func correlation(x, y []float64) float64 {
	mean := func(all []float64) (m float64) {
		for _, v := range all {
			m += v / float64(len(all))
		}
		return m
	}
	mx, my := mean(x), mean(y)
	var xy, xx, yy float64
	for i := range x {
		xy, xx, yy = xy+(x[i]-mx)*(y[i]-my), xx+(x[i]-mx)*(x[i]-mx), yy+(y[i]-my)*(y[i]-my)
	}
	return xy / math.Sqrt(xx*yy)
}
