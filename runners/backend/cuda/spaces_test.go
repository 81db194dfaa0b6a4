package cuda

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/internal/runnable"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/gather"
	"github.com/kernelgate/kernelgate/runners/host/folderhash"
)

const spacesFolder = "testdata/spaces"

// readSpace reads the manifest of a search space, and the policy of all of them.
func readSpace(t *testing.T, name string) (*manifest.Manifest, string) {
	t.Helper()
	text := readText(t, spacesFolder, name, "kernel.yaml")
	m, err := manifest.Parse("kernel.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != name || len(m.Warnings()) > 0 {
		t.Fatalf("%s: %v", m.Name, m.Warnings())
	}
	p, err := policy.Parse("policy.yaml", []byte(readText(t, spacesFolder, "policy.yaml")))
	if err != nil || len(p.Rules) != 1 {
		t.Fatal(err)
	}
	return m, text
}

// compileSpace builds a point of a search space for sm_90, next to the default point. autotune replaces the configuration that the
// manifest chooses.
func compileSpace(t *testing.T, name, variant, autotune string) *gates.Evidence {
	t.Helper()
	m, text := readSpace(t, name)
	p, err := policy.Parse("test.yaml", []byte(packageStatic))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(spacesFolder, name))); err != nil {
		t.Fatal(err)
	}
	sources, err := folderhash.Sum(dir)
	if err != nil {
		t.Fatal(err)
	}
	base, head := runners.Side{Dir: dir, Variant: m.DefaultVariant, Sources: sources}, runners.Side{Dir: dir, Variant: variant, Sources: sources}
	if autotune != "" {
		const chosen = "autotune: {BLOCK: 256, STAGES: 1, num_warps: 2}"
		if head.ManifestText = strings.Replace(text, chosen, "autotune: "+autotune, 1); head.ManifestText == text {
			t.Fatalf("the manifest has no %s", chosen)
		}
		if head.Manifest, err = manifest.Join("kernel.yaml", []byte(text), []byte(head.ManifestText)); err != nil {
			t.Fatal(err)
		}
	}
	job := runners.Job{Key: name, Manifest: m, ManifestText: text, Policy: p, Trusted: dir, Baseline: &base, Candidate: head}
	b, err := New(t.Context(), job, Config{
		Scratch: t.TempDir(), Cache: toolchaintest.Builds(t), Program: []string{os.Args[0], serveWord}, Arch: "sm_90", Getenv: os.Getenv,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.CheckReference(t.Context()); err != nil {
		t.Fatal(err)
	}
	e, err := gather.Gather(t.Context(), job, b, silent{})
	if err != nil {
		t.Fatal(err)
	}
	if v := gates.Judge(p, "test.yaml", e); v.Outcome != gates.Pass || e.SameCode {
		t.Errorf("%s: %s (%s): %s", variant, v.Outcome, v.Reason, v.Summary)
	}
	return e
}

// The points that gpu.sh searches compile for an H200: the first, and the ones that need most threads, registers and shared memory.
func TestSpacesCompile(t *testing.T) {
	needsCompiler(t)
	before := ""
	for _, tt := range []struct{ space, variant, autotune string }{
		{"rmsnorm", "default,BLOCK=64,ROWS=1,WIDTH=8", ""},
		{"rmsnorm", "default,BLOCK=1024,ROWS=4,WIDTH=4", ""},
		{"matmul", "default,TILE_M=128,TILE_N=256,TILE_K=32,UNROLL=16", ""},
		{"matmul", "default,TILE_M=128,TILE_N=128,TILE_K=16,THREAD_N=8,UNROLL=8", ""},
		{"softmax_triton", "default", "{BLOCK: 4096, STAGES: 3, num_warps: 16}"},
		{"softmax_triton", "default", "{BLOCK: 1024, STAGES: 1, num_warps: 4}"},
	} {
		first := tt.space != before
		before = tt.space
		t.Run(tt.space+" "+tt.variant+" "+tt.autotune, func(t *testing.T) {
			if !first { // the first has compiled the default point
				t.Parallel()
			}
			if tt.autotune != "" {
				needsTriton(t)
			}
			e := compileSpace(t, tt.space, tt.variant, tt.autotune)
			if tuning := e.Candidate.Tuning; tt.autotune != "" && (tuning == nil || len(tuning.Offered) != 40) {
				t.Errorf("its tuning is %+v", tuning)
			}
		})
	}
}

// python runs a program in Python, and returns its output.
func python(t *testing.T, args ...string) []byte {
	t.Helper()
	program, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", args, err, out, errors.String())
	}
	return out
}

// The scripts of brute force have the points, shapes and launches of the manifests, and no others.
func TestBruteForceHasTheSameSpaces(t *testing.T) {
	for name, size := range map[string]int{"rmsnorm": 60, "matmul": 200} {
		m, _ := readSpace(t, name)
		var listed struct {
			Values   map[string][]int
			Shapes   map[string]map[string]int
			Launches map[string]map[string][2][3]int
		}
		if err := json.Unmarshal(python(t, spacesFolder+"/brute.py", name, "--list"), &listed); err != nil {
			t.Fatal(err)
		}
		values := map[string][]int{}
		for _, toggle := range m.Toggles {
			values[toggle.Name] = toggle.Values
		}
		if !reflect.DeepEqual(listed.Values, values) || len(listed.Shapes) != len(m.Shapes) {
			t.Errorf("%s: %v and %v", name, listed.Values, listed.Shapes)
		}
		for _, shape := range m.Shapes {
			for _, dim := range shape.Dims {
				if got := listed.Shapes[shape.Name][dim.Name]; got != dim.Value {
					t.Errorf("%s: %s has %s %d", name, shape, dim.Name, got)
				}
			}
			if len(listed.Launches[shape.Name]) != size {
				t.Errorf("%s: %d points", name, len(listed.Launches[shape.Name]))
			}
			for point, launch := range listed.Launches[shape.Name] {
				steps, err := m.Steps("default,"+point, shape.Dims, nil)
				if err != nil {
					t.Fatal(err)
				}
				if launch != [2][3]int{steps[0].Grid, steps[0].Block} {
					t.Errorf("%s: %s on %s is launched as %v, not as %+v", name, point, shape, launch, steps[0].Geometry)
				}
			}
		}
	}
}

// Every script compiles, also those that need a GPU.
func TestSpacesScripts(t *testing.T) {
	for _, file := range []string{"spaces.py", spacesFolder + "/brute.py", spacesFolder + "/brute_triton.py", spacesFolder + "/softmax_triton/softmax.py"} {
		python(t, "-c", "import sys; compile(open(sys.argv[1]).read(), sys.argv[1], 'exec')", file)
	}
	for _, args := range [][]string{{"brute.py", "rmsnorm", "--help"}, {"brute_triton.py", "--help"}} {
		args[0] = spacesFolder + "/" + args[0]
		if out := python(t, args...); !strings.Contains(string(out), "--compare") {
			t.Errorf("%v: %s", args, out)
		}
	}
}

// The winner of a search is read from its log, with the values that its name leaves out, and as a configuration of Triton.
func TestSpacesReadsTheWinner(t *testing.T) {
	const toggles = `{"search":{"space":{"incumbent":"default","own":{"default":{"BLOCK":64,"ROWS":4}}}}}`
	const triton = `{"search":{"space":{"incumbent":"default","own":{"default":{"autotune":0}},"configurations":["BLOCK=256, STAGES=1, num_warps=2, num_stages=3, num_ctas=1","BLOCK=512, STAGES=3, num_warps=4, num_stages=3, num_ctas=1"]}}}`
	for _, tt := range []struct{ log, want string }{
		{toggles + "\n" + `{"end":{"best":"default,BLOCK=128"}}`, "BLOCK=128,ROWS=4"},
		{toggles + "\n" + `{"end":{}}`, "BLOCK=64,ROWS=4"},
		{toggles + "\n" + `{"round":{}}`, "the search has no end in its log"},
		{triton + "\n" + `{"end":{"best":"default,autotune=1"}}`, "BLOCK=512,STAGES=3,num_warps=4"},
		{triton + "\n" + `{"end":{}}`, "BLOCK=256,STAGES=1,num_warps=2"},
	} {
		file := filepath.Join(t.TempDir(), "search.jsonl")
		if err := os.WriteFile(file, []byte(tt.log+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		out := python(t, "-c", "import spaces, sys\ntry: print(spaces.winner(sys.argv[1]))\nexcept spaces.Failed as e: print(e)", file)
		if got := strings.TrimSpace(string(out)); got != tt.want {
			t.Errorf("%s\ngives %s, not %s", tt.log, got, tt.want)
		}
	}
}

// The step of gpu.sh compares a search with brute force, and a failure of one space does not end it. The search is a stand-in.
func TestSpacesCompares(t *testing.T) {
	const slow, fast = "LANES=4,ROWS=1,UNROLL=1,VECTORS=1", "LANES=8,ROWS=4,UNROLL=5,VECTORS=2"
	dir := t.TempDir()
	search := map[string]any{"search": map[string]any{"space": map[string]any{"incumbent": "default", "own": map[string]any{"default": map[string]int{"LANES": 4, "ROWS": 1, "UNROLL": 1, "VECTORS": 1}}}}}
	header, err := json.Marshal(search)
	if err != nil {
		t.Fatal(err)
	}
	gate := fmt.Sprintf(`#!/bin/sh
[ "$1" = doctor ] && exit 0
[ "$1 $3 $4" = "tune --no-gate --results" ] || exit 2
[ "$2" = stencil ] && [ -f kernels/stencil/kernel.yaml ] && [ -f .github/kernelgate.yaml ] || exit 2
mkdir -p "$5/tune-1" && printf '%%s\n' '%s' '{"end":{"best":"default,%s"}}' >"$5/tune-1/search.jsonl"
`, header, slow)
	if err := runnable.Write(filepath.Join(dir, "gate"), []byte(gate)); err != nil {
		t.Fatal(err)
	}
	script := `import spaces, sys
gate, results, *points = sys.argv[1:]
folder, script, default = spaces.SPACES["stencil"]
script += ["--launches", "3", "--points", *points]
spaces.SPACES = {"stencil": (folder, script, default), "missing": (folder + "/missing", script, default)}
sys.argv = ["spaces.py", gate, results]
print(spaces.main())`
	out := string(python(t, "-c", script, filepath.Join(dir, "gate"), filepath.Join(dir, "results"), slow, fast))
	table, err := os.ReadFile(filepath.Join(dir, "results", "spaces.txt"))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out != string(table)+"1\n" || !strings.Contains(out, "\nmissing  failed: ") {
		t.Errorf("it prints\n%s", out)
	}
	var rows []struct {
		Space, Tune, Brute string
		Speed              float64
		Ratios             map[string]float64
	}
	text, err := os.ReadFile(filepath.Join(dir, "results", "spaces.json"))
	if err == nil {
		err = json.Unmarshal(text, &rows)
	}
	if err != nil || len(rows) != 1 || rows[0].Tune != slow || rows[0].Brute == slow || rows[0].Speed >= 1 ||
		!slices.Equal(slices.Sorted(maps.Keys(rows[0].Ratios)), []string{"square", "wide"}) {
		t.Errorf("the rows are %s (%v)\n%s", text, err, out)
	}
}
