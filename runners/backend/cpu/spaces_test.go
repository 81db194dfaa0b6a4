package cpu

import (
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather"
)

const spacesFolder = "testdata/spaces"

// readStencil reads the manifest of the search space.
func readStencil(t *testing.T) *manifest.Manifest {
	t.Helper()
	text, err := os.ReadFile(spacesFolder + "/stencil/kernel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse("kernel.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Warnings()) > 0 {
		t.Error(m.Warnings())
	}
	return m
}

// brute runs the script of brute force, and reads the last line of its output.
func brute(t *testing.T, result any, args ...string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	var errors strings.Builder
	cmd := exec.CommandContext(t.Context(), python, append([]string{spacesFolder + "/brute.py"}, args...)...)
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, errors.String())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), result); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// Points of the space are right, with tiles that fit the problem and with tiles that do not.
func TestSpaceIsRight(t *testing.T) {
	m := readStencil(t)
	p, err := policy.Parse("test.yaml", []byte(`version: 1
gates:
  correctness: {shapes: [square], seeds: [0], distributions: [normal, peaks], secret_cases: 6, norm_error: "<= 0.1%"}
rules: [{name: default}]
`))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(spacesFolder+"/stencil")); err != nil {
		t.Fatal(err)
	}
	for _, point := range []string{"LANES=4,ROWS=1,UNROLL=1,VECTORS=1", "LANES=8,ROWS=2,UNROLL=5,VECTORS=2", "LANES=16,ROWS=4,UNROLL=5,VECTORS=4"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			job := runners.Job{Manifest: m, Policy: p, Trusted: dir, Candidate: runners.Side{Dir: dir, Variant: "default," + point}}
			w := newWorker(t, job, Config{Scratch: t.TempDir(), LaunchTimeout: 20 * time.Second, Getenv: func(string) string { return "" }})
			e, err := gather.Gather(t.Context(), job, w, silent{})
			if err != nil {
				t.Fatal(err)
			}
			if v := gates.Judge(p, "test.yaml", e); v.Outcome != gates.Pass {
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
		})
	}
}

// The script of brute force has the points and shapes of the manifest. It takes the faster of two points, and agrees with itself
// when it times both in turns.
func TestBruteForce(t *testing.T) {
	m := readStencil(t)
	var listed struct {
		Values map[string][]int
		Shapes map[string]map[string]int
		Points []string
	}
	brute(t, &listed, "--list")
	values, shapes := map[string][]int{}, map[string]map[string]int{}
	for _, toggle := range m.Toggles {
		values[toggle.Name] = toggle.Values
	}
	for _, shape := range m.Shapes {
		shapes[shape.Name] = map[string]int{}
		for _, dim := range shape.Dims {
			shapes[shape.Name][dim.Name] = dim.Value
		}
	}
	if !reflect.DeepEqual(listed.Values, values) || !reflect.DeepEqual(listed.Shapes, shapes) || len(listed.Points) != 54 {
		t.Errorf("the script has %+v", listed)
	}

	const slow, fast = "LANES=4,ROWS=1,UNROLL=1,VECTORS=1", "LANES=8,ROWS=4,UNROLL=5,VECTORS=2"
	var found struct {
		Best  map[string]int
		Times map[string]float64
	}
	brute(t, &found, "--points", slow, fast, "--launches", "3")
	if found.Best["LANES"] != 8 || len(found.Times) != 2 || found.Times[fast] >= found.Times[slow] {
		t.Errorf("the best is %v of %v", found.Best, found.Times)
	}
	var compared struct {
		Ratio  float64
		Ratios map[string]float64
	}
	brute(t, &compared, "--compare", fast, slow, "--launches", "5")
	if compared.Ratio <= 1 || len(compared.Ratios) != len(shapes) {
		t.Errorf("compared: %+v", compared)
	}
}
