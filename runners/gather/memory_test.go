package gather

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// newKernel returns the job of a kernel that only the head has.
func newKernel(t *testing.T, text string) runners.Job {
	t.Helper()
	j := job(t)
	var err error
	if j.Manifest, err = manifest.Parse("kernel.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	j.Key, j.Baseline, j.Candidate, j.ManifestText = "kernels/k", nil, runners.Side{Variant: j.Manifest.DefaultVariant}, text
	return j
}

func TestTooLarge(t *testing.T) {
	if len(tooLarge(job(t), 1)) > 0 {
		t.Error("a shape of the base is refused")
	}
	j := newKernel(t, manifestYAML)
	if large := tooLarge(j, 1<<30); len(large) > 0 {
		t.Errorf("with 1 GiB: %v", large)
	}
	large := tooLarge(j, 1000)
	shapes := len(j.Manifest.Shapes)
	if len(large) != shapes+1 || !strings.HasPrefix(large[0].Message, "shapes."+j.Manifest.Shapes[0].Name+": at N=") || !strings.HasPrefix(large[shapes].Message, "secret: at N=") {
		t.Fatalf("with 1000 bytes: %v", large)
	}
	for _, d := range large {
		if d.File != "kernels/k/kernel.yaml" || d.Line < 2 || !strings.Contains(d.Message, "make the shape smaller") {
			t.Errorf("got %+v", d)
		}
	}
	none := j
	var err error
	if none.Policy, err = policy.Parse("policy.yaml", []byte(strings.ReplaceAll(policyYAML, "secret_cases: 3", "secret_cases: 0"))); err != nil {
		t.Fatal(err)
	}
	if n := len(tooLarge(none, 1000)); n != shapes {
		t.Errorf("without secret cases %d shapes are refused, want %d", n, shapes)
	}
	if limit := memoryLimit(); limit < 1<<28 || limit > 1<<50 {
		t.Errorf("this host has %s", gibibytes(limit))
	}
}

// TestMemoryForAProblem checks that the computed memory is at least what a runner draws: a problem
// that is allowed fits.
func TestMemoryForAProblem(t *testing.T) {
	j := newKernel(t, manifestYAML)
	for range 10 {
		n := 1 + rand.IntN(1000)
		need, err := memoryFor(j, manifest.Dims{{Name: "N", Value: n}})
		if err != nil || need < float64(n)*8*numbersKept || need > float64(n)*1000 {
			t.Errorf("%d elements need %v bytes, %v", n, need, err)
		}
	}
}

// TestNoRunnerDrawsTooMuch checks that a new kernel whose arrays no runner can hold is deferred
// before anything is built or drawn.
func TestNoRunnerDrawsTooMuch(t *testing.T) {
	var arguments []string
	for i := range 60 {
		access := "in"
		if i == 0 {
			access = "out"
		}
		arguments = append(arguments, fmt.Sprintf("  - {name: a%d, dtype: f64, access: %s, shape: [N]}\n", i, access))
	}
	j := newKernel(t, `version: 1
name: k
mode: cpu
arguments:
`+strings.Join(arguments, "")+`reference: {source: reference.c, entry: r}
tolerance: {abs: 0.1}
shapes:
  one: {N: 2147483647}
  two: {N: 10}
source: k.c
entry: k
`)
	b := scripted{job: j}
	e, err := Gather(t.Context(), j, &b, silent{})
	if err != nil {
		t.Fatal(err)
	}
	if len(b.asked) > 0 {
		t.Errorf("the backend was asked for %v", b.asked)
	}
	v := gates.Judge(j.Policy, "policy.yaml", e)
	if v.Outcome != gates.Defer || v.Reason != gates.ReasonBuild || !strings.Contains(e.Candidate.Error, "kernels/k/kernel.yaml:68: shapes.one: at N=2147483647 the arrays") {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, e.Candidate.Error)
	}
}
