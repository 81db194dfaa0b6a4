package runners

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
)

var manifestYAML = read("kernel.yaml")

func read(name string) string {
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		panic(err)
	}
	return string(text)
}

// jobOf returns a job of a manifest, and of a policy in testdata.
func jobOf(t *testing.T, manifestYAML, policyFile string) Job {
	t.Helper()
	m, err := manifest.Parse("kernel.yaml", []byte(manifestYAML))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse(policyFile, []byte(read(policyFile)))
	if err != nil {
		t.Fatal(err)
	}
	return Job{Manifest: m, Policy: p, Baseline: &Side{Variant: m.DefaultVariant}, Candidate: Side{Variant: m.DefaultVariant}}
}

// guardedJob returns a job whose policy guards the first shape.
func guardedJob(t *testing.T, manifestYAML string) Job {
	return jobOf(t, manifestYAML, "guarded.yaml")
}

func TestCases(t *testing.T) {
	j := jobOf(t, manifestYAML, "policy.yaml")
	gate := j.Policy.Rules[0].Gates.Correctness
	cases := Cases(j, gate, rand.New(rand.NewPCG(1, 2)))
	if len(cases) != 2*2*2+3 {
		t.Fatalf("%d cases, want every shape, seed and distribution, and 3 secret ones", len(cases))
	}
	for _, c := range cases[8:] {
		if n, _ := c.Shape.Dims.Get("N"); !c.Secret || n < 1 || n > 50 {
			t.Errorf("the secret case %+v is not in its range", c)
		}
	}
	if again := Cases(j, gate, rand.New(rand.NewPCG(3, 4))); again[8].Seed == cases[8].Seed {
		t.Error("another run draws the same secret seed")
	}
}

// randomManifest returns a kernel over up to three dims with any ranges that the parser accepts.
func randomManifest(rng *rand.Rand) string {
	names := []string{"A", "B", "C"}[:1+rng.IntN(3)]
	var shapes, limits, secret []string
	dims := func(value func() int) string {
		var all []string
		for _, n := range names {
			all = append(all, fmt.Sprintf("%s: %d", n, value()))
		}
		return "{" + strings.Join(all, ", ") + "}"
	}
	for _, n := range names {
		limits = append(limits, n+": 1..400")
		from := 1 + rng.IntN(200)
		switch rng.IntN(4) {
		case 0:
			secret = append(secret, fmt.Sprintf("%s: %d|%d", n, from, from+rng.IntN(100)))
		case 1:
			secret = append(secret, fmt.Sprintf("%s: %d..%d step %d", n, from, from+rng.IntN(200), 1+rng.IntN(70)))
		case 2:
			secret = append(secret, fmt.Sprintf("%s: %d..%d", n, from, from+rng.IntN(200)))
		}
	}
	for _, name := range []string{"one", "two", "secret"}[:2+rng.IntN(2)] {
		shapes = append(shapes, "  "+name+": "+dims(func() int { return 1 + rng.IntN(300) }))
	}
	product := strings.Join(names, ", ")
	text := fmt.Sprintf(`version: 1
name: k
mode: cpu
entry: f
source: f.c
arguments:
  - {name: x, dtype: f32, access: in, shape: [%s]}
  - {name: y, dtype: f32, access: out, shape: [%s]}
reference: {source: r.c, entry: r}
tolerance: {abs: 0.1}
shapes:
%s
limits: {%s}
`, product, product, strings.Join(shapes, "\n"), strings.Join(limits, ", "))
	if len(secret) > 0 {
		text += "secret: {" + strings.Join(secret, ", ") + "}\n"
	}
	if rng.IntN(2) == 0 {
		text += fmt.Sprintf("work: {flops: %s, bytes: 8*%s, peak: fp32}\n", strings.Join(names, "*"), strings.Join(names, "*"))
	}
	return text
}

// TestSecretShapeOfAnyManifest checks on random manifests that the drawn size lies within the
// ranges, has no name, needs no more work than the timed shapes if that is possible, and depends
// only on the seed.
func TestSecretShapeOfAnyManifest(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	drawn := 0
	for range 300 {
		text := randomManifest(rng)
		j := guardedJob(t, text)
		m := j.Manifest
		seed := rng.Uint64()
		s, ok := j.SecretShape(seed)
		if again, _ := j.SecretShape(seed); again.String() != s.String() {
			t.Fatalf("the same seed draws %s and %s from\n%s", s, again, text)
		}
		if j.MustTimeSecretShape() && !ok {
			t.Fatalf("there is no secret shape of\n%s", text)
		}
		if !ok {
			continue
		}
		drawn++
		if _, taken := m.Shape(s.Name); taken {
			t.Errorf("%s has the name of a shape of\n%s", s, text)
		}
		if err := j.TakesSecret(s.Dims); err != nil {
			t.Errorf("%v, in\n%s", err, text)
		}
		for _, d := range s.Dims {
			first, _ := m.Shapes[0].Dims.Get(d.Name)
			if r, many := m.Secret[d.Name]; many && !r.Contains(d.Value) || !many && d.Value != first {
				t.Errorf("%s is beyond the secret ranges of\n%s", s, text)
			}
		}
		most := 0.0
		for _, w := range j.timedWork() {
			most = max(most, w.amount)
		}
		if w, err := j.workOf(s.Dims); err != nil || w.amount > most {
			for _, other := range j.secretSizes(rand.New(rand.NewPCG(seed, secretStream))) {
				if other.amount <= most {
					t.Errorf("%s takes %v (%v), the timed shapes at most %v, and %s was drawn, in\n%s", s, w.amount, err, most, other.dims, text)
				}
			}
		}
	}
	if drawn < 100 {
		t.Errorf("%d of 300 manifests have a secret shape", drawn)
	}
}

// TestSecretShapeIsOfEveryKind checks that a kernel that is slow on only one kind of size is
// caught: odd sizes, whole tiles and others are all drawn, and so are small and large ones.
func TestSecretShapeIsOfEveryKind(t *testing.T) {
	j := guardedJob(t, strings.NewReplacer("N: 10}", "N: 100}", "N: 20}", "N: 4096}", "1..100", "1..9000", "1..50", "1..9000").Replace(manifestYAML))
	kinds := map[string]int{}
	for seed := range uint64(400) {
		s, ok := j.SecretShape(seed)
		n, _ := s.Dims.Get("N")
		if !ok || n < 25 || n > 4096 {
			t.Fatalf("seed %d draws %v", seed, s)
		}
		switch {
		case n%64 == 0:
			kinds["whole tiles"]++
		case n%2 != 0:
			kinds["odd"]++
		default:
			kinds["even"]++
		}
		if n < 2000 {
			kinds["small"]++
		} else {
			kinds["large"]++
		}
	}
	for kind, least := range map[string]int{"whole tiles": 90, "odd": 150, "even": 40, "small": 100, "large": 100} {
		if kinds[kind] < least {
			t.Errorf("%s: %d of 400 draws, want %d", kind, kinds[kind], least)
		}
	}
}

// TestSecretShapeByWork checks that the first size of preferred work is chosen, else the largest
// that costs no more than the timed shapes, else the smallest.
func TestSecretShapeByWork(t *testing.T) {
	for secret, want := range map[string]string{
		"N: 3..15": "N=3 N=4 N=5 N=6 N=7 N=8 N=9 N=11 N=12 N=13 N=14 N=15", // N=10 has a name
		// 1 and 2 are less than a quarter of 10
		"N: 1..2":    "N=2",
		"N: 60..100": "below N=70", // all are above 20
		"N: 10|20":   "none",
		"N: 20|21":   "N=21", // above, and no other size is without a name
	} {
		j := guardedJob(t, strings.Replace(manifestYAML, "N: 1..50", secret, 1))
		for seed := range uint64(30) {
			s, ok := j.SecretShape(seed)
			n, _ := s.Dims.Get("N")
			switch fine := slices.Contains(strings.Fields(want), s.Dims.String()); {
			case want == "none" && (ok || j.MustTimeSecretShape()):
				t.Errorf("%s: %s is drawn", secret, s)
			case want == "below N=70" && n >= 70:
				t.Errorf("%s: %s is drawn, which is not the smallest of %d", secret, s, secretDraws)
			case want != "none" && want != "below N=70" && !fine:
				t.Errorf("%s: %s is drawn, want one of %s", secret, s, want)
			}
		}
	}
}

// TestSecretRangesAreTheBases checks that the ranges are the base's, even if the change narrows
// them.
func TestSecretRangesAreTheBases(t *testing.T) {
	j := guardedJob(t, manifestYAML)
	narrow := strings.Replace(manifestYAML, "secret: {N: 1..50}", "secret: {N: 11..12}", 1)
	own, err := manifest.Join("kernel.yaml", []byte(manifestYAML), []byte(narrow))
	if err != nil {
		t.Fatal(err)
	}
	j.Candidate.Manifest, j.Candidate.ManifestText = own, narrow
	for seed := range uint64(50) {
		base := guardedJob(t, manifestYAML)
		want, _ := base.SecretShape(seed)
		if s, ok := j.SecretShape(seed); !ok || s.String() != want.String() {
			t.Fatalf("%s is drawn, and %s from the base", s, want)
		}
	}
}
