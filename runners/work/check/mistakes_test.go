package check_test

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners/work/check"
)

const (
	mistakesCPU = `version: 1
name: scale
mode: cpu
arguments:
  - {name: x, dtype: f32, access: in, shape: [R, C]}
  - {name: index, dtype: i32, access: in, shape: [R], init: 0..C-1}
  - {name: y, dtype: f32, access: out, shape: [R, C]}
  - {name: rows, dtype: i32, access: scalar, value: R}
reference: {source: reference.c, entry: truth}
tolerance: {abs: 0.001}
shapes:
  small: {R: 5, C: 64}
  mission: {R: 512, C: 1024}
limits: {R: 1..4096, C: 1..4096}
secret: {R: 1..4096, C: 1..4096}
work: {flops: 2*R*C, bytes: 8*R*C, peak: fp32}
flags: [-O2]
toggles: {TILE: {values: [32, 64], default: 64, layer: micro}}
variants:
  plain: {source: scale.c}
  tiled: {source: tiled.c, toggles: {TILE: 32}}
default_variant: plain
entry: scale
`
	mistakesCUDA = `version: 1
name: norm
mode: cuda
arch: [sm_89, sm_90]
arguments:
  - {name: x, dtype: f16, access: in, shape: [R, C]}
  - {name: y, dtype: f16, access: out, shape: [R, C]}
  - {name: cols, dtype: i32, access: scalar, value: C}
reference: {source: reference.cu, entry: truth, launch: {grid: [R], block: [32]}}
tolerance: {abs: 0.01}
shapes: {small: {R: 5, C: 64}, mission: {R: 512, C: 1024}}
limits: {R: 1..4096, C: 1..4096}
source: norm.cu
entry: norm<128>
launch: {grid: [R], block: [128], shared_memory: 4*128}
`
	mistakesTriton = `version: 1
name: softmax
mode: cuda
compiler: triton
arch: [sm_90]
arguments:
  - {name: x, dtype: f32, access: in, shape: [R, C]}
  - {name: y, dtype: f32, access: out, shape: [R, C]}
reference: {source: reference.cu, entry: truth, launch: {grid: [R], block: [32]}}
tolerance: {abs: 0.01}
shapes: {small: {R: 5, C: 64}}
limits: {R: 1..4096, C: 1..4096}
source: softmax.py
entry: softmax_kernel
constants: {BLOCK: pow2ceil(C)}
num_warps: 4
launch: {grid: [R]}
`
	mistakesCommand = `version: 1
name: harness
mode: command
command: {build: [make, bench], bench: [./bench, --json], unit: us}
shapes: {small: {N: 64}}
secret: {N: 1..3000}
`
	mistakesPolicy = `version: 1
check: kernelgate
forks: {run: after-approval}
commands: {rebench: write, override: maintain}
gates:
  build: {timeout: 10m}
  ptxas:
    registers: {max: 128, increase: "<= 8"}
    spill_stores: "<= 0B"
    blocks_per_sm: ">= 2"
  correctness:
    shapes: [small, mission]
    seeds: [0, 1]
    distributions: [normal, large]
    secret_cases: 5
    norm_error: "<= 2%"
    determinism: true
    timeout: 10m
  sanitize: {shapes: [small], tools: [memcheck, racecheck], missing_tool: inform}
  performance:
    target: {shapes: [mission], speedup: ">= +10%"}
    guard: {shapes: all, speedup: ">= -2%"}
    confidence: 95%
    rounds: {min: 6, max: 20}
    pairs: 50
    control: 2%
    budget: 5m
rules:
  - name: refactoring
    when: {labels: [refactoring]}
    gates: {performance: {target: none}}
  - name: default
`
)

// A mistake is one that people make: a replacement of a text in one of the files above, and the
// field that lint must name.
type mistake struct{ name, file, old, new, field string }

// remedy matches the end of every message: what to write, to delete or to add.
var remedy = regexp.MustCompile(`\((?:[^()]|\([^()]*\))*\b(?:write|delete|add|did you mean|known|use|name|make|give|declare|keep|put|widen|narrow|they have|indent|raise|close|allowed|it has|move|take|repeat|needs|choose|change)\b.*\)$|is not one of .+, `)

// TestMistakesOfUsers checks 150 mistakes in manifests and policies: lint finds every one,
// and names the file, the line, the field and the remedy.
func TestMistakesOfUsers(t *testing.T) {
	texts := map[string]string{"cpu": mistakesCPU, "cuda": mistakesCUDA, "triton": mistakesTriton, "command": mistakesCommand, "policy": mistakesPolicy}
	names := map[string]string{"cpu": "scale/kernel.yaml", "cuda": "norm/kernel.yaml", "triton": "softmax/kernel.yaml", "command": "harness/kernel.yaml", "policy": ".github/kernelgate.yaml"}
	write := func(dir string, edited mistake) {
		t.Helper()
		files := map[string]string{"scale/scale.c": "", "scale/tiled.c": "", "scale/reference.c": "", "norm/norm.cu": "", "norm/reference.cu": "", "softmax/softmax.py": "", "softmax/reference.cu": ""}
		for key, text := range texts {
			if key == edited.file {
				if !strings.Contains(text, edited.old) {
					t.Fatalf("%s: %q is not there", edited.name, edited.old)
				}
				text = strings.Replace(text, edited.old, edited.new, 1)
			}
			files[names[key]] = text
		}
		for name, text := range files {
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := t.TempDir()
	write(dir, mistake{})
	if err := check.Lint(io.Discard, []string{dir}); err != nil {
		t.Fatalf("without a mistake: %v", err)
	}
	seen := map[string]bool{}
	for _, m := range slices.Concat(manifestMistakes(), deviceMistakes(), policyMistakes()) {
		if seen[m.name] {
			t.Errorf("%s is there twice", m.name)
		}
		seen[m.name] = true
		t.Run(m.name, func(t *testing.T) {
			dir := t.TempDir()
			write(dir, m)
			err := check.Lint(io.Discard, []string{dir})
			if err == nil {
				t.Fatal("lint finds nothing")
			}
			placed := regexp.MustCompile(`^` + regexp.QuoteMeta(dir+"/"+names[m.file]) + `:[0-9]+:[0-9]+: ` + regexp.QuoteMeta(m.field))
			found := false
			for line := range strings.Lines(err.Error()) {
				line = strings.TrimSuffix(line, "\n")
				if placed.MatchString(line) {
					found = found || remedy.MatchString(line)
				}
			}
			if !found {
				t.Errorf("no line names %s with a remedy:\n%s", m.field, strings.ReplaceAll(err.Error(), dir+"/", ""))
			}
		})
	}
	if len(seen) < 150 {
		t.Errorf("there are %d mistakes, fewer than 150", len(seen))
	}
}
