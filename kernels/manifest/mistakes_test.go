package manifest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const goodCPU = `version: 1
name: sdpa
mode: cpu
entry: sdpa_fp8
source: sdpa.c
flags: [-O2]
arguments:
  - {name: q, dtype: e4m3, access: in, shape: [B, H, S, D], quantize: {per: [H], scale: q_scale}}
  - {name: q_scale, dtype: f32, access: in, shape: [H]}
  - {name: o, dtype: f16, access: out, shape: [B, H, S, D]}
  - {name: n, dtype: i32, access: scalar, value: S}
reference: {source: reference.c, entry: sdpa_reference}
tolerance: {abs: 0.06}
shapes:
  small: {B: 1, H: 1, S: 32, D: 64}
  mission: {B: 1, H: 2, S: 96, D: 64}
limits: {S: 1..4096, D: 64|128}
secret: {S: 1..160}
work: {flops: 4*B*H*S*S*D, bytes: 5*B*H*S*D, peak: fp32}
`

const goodCUDA = `version: 1
name: sdpa
mode: cuda
entry: sdpa_fp8
arch: [sm_89, sm_90]
flags: [-O3]
arguments:
  - {name: x, dtype: f16, access: in, shape: [S, D]}
  - {name: y, dtype: f16, access: out, shape: [S, D]}
launch:
  grid: ["ceildiv(S, TILE)"]
  block: [128]
  shared_memory: 4*TILE*D
reference: {source: reference.cu, entry: sdpa_reference, launch: {grid: [1], block: [32]}}
tolerance: {abs: 0.06}
shapes:
  small: {S: 32, D: 64}
  mission: {S: 96, D: 64}
toggles:
  TILE: {values: [32, 64, 1024], default: 64, layer: micro}
variants:
  stage1: {source: stage1.cu}
  stage2: {source: stage2.cu, toggles: {TILE: 32}}
default_variant: stage2
`

// goodDevice is goodCUDA with the reference on the device and variants that
// differ in more than their source.
const goodDevice = `version: 1
name: sdpa
mode: cuda
entry: sdpa_fp8
arch: [sm_89, sm_90]
arguments:
  - {name: x, dtype: f16, access: in, shape: [S, D]}
  - {name: y, dtype: f16, access: out, shape: [S, D]}
  - {name: causal, dtype: i32, access: scalar, value: causal}
reference:
  source: reference.cu
  entry: sdpa_reference
  launch: {grid: [S], block: [D], shared_memory: 4*D}
tolerance: {abs: 0.06}
shapes:
  small: {S: 32, D: 64, causal: 0}
  wide: {S: 96, D: 128, causal: 1}
limits: {S: 1..4096, D: 64|128, causal: 0..1}
secret: {S: 1..160, D: 64|128, causal: 0..1}
toggles:
  TILE: {values: [32, 64, 1024], default: 64, layer: micro}
variants:
  stage0:
    source: stage0.cu
    limits: {D: 64, causal: 0}
    launch: {grid: [S], block: ["64/max(0, 65 - D)"]}
  stage1:
    source: stage1.cu
    arch: [sm_90, sm_90a]
    toggles: {TILE: 32}
    launch: {grid: ["roundup(S, 2)"], block: [128], shared_memory: 4*TILE*D, cluster: [2]}
default_variant: stage1
`

const goodCommand = `version: 1
name: histogram
mode: command
command: {build: [make], bench: [./bench]}
shapes: {small: {N: 1024}}
`

// A mistake is one edit of a good manifest, and what its author will read.
type mistake struct {
	name, base, old, new string
	want                 []string
}

func TestMistakes(t *testing.T) {
	for _, tt := range slices.Concat(fieldMistakes, valueMistakes, variantMistakes, deviceMistakes, mapMistakes, stepMistakes, loopMistakes, chooseMistakes, pythonMistakes, weightMistakes) {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(tt.base, tt.old) {
				t.Fatalf("the good manifest has no %q", tt.old)
			}
			_, err := Parse("kernel.yaml", []byte(strings.Replace(tt.base, tt.old, tt.new, 1)))
			if err == nil {
				t.Fatal("no mistake was found")
			}
			if diff := cmp.Diff(tt.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("mistakes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGoodBases(t *testing.T) {
	for name, text := range map[string]string{"cpu": goodCPU, "cuda": goodCUDA, "device": goodDevice, "command": goodCommand, "map": goodMap, "steps": goodSteps, "loop": goodLoop, "choice": goodChoice, "python": goodPython} {
		if _, err := Parse("kernel.yaml", []byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Files that no author writes are refused with a reason, like any other.
func TestHostileFiles(t *testing.T) {
	nine := strings.Repeat("x, ", 9)
	for name, text := range map[string]string{
		"empty":            "",
		"a list":           "- a",
		"a number":         "7",
		"not YAML":         "a: [",
		"two documents":    goodCommand + "---\n" + goodCommand,
		"many values":      "flags: [" + strings.Repeat("a,", 100_001) + "]\n" + goodCPU,
		"many shapes":      strings.Replace(goodCommand, "{small: {N: 1024}}", "{"+strings.Repeat("s: {N: 1},", 65)+"}", 1),
		"deep":             "shapes: " + strings.Repeat("[", 200) + strings.Repeat("]", 200),
		"deep expression":  strings.Replace(goodCPU, "value: S", "value: '"+strings.Repeat("(", 5000)+"S'", 1),
		"shorter list":     goodCPU + "arguments: []\nflags: []\n",
		"shorter variant":  strings.Replace(goodCUDA, "variants:", "variants:\n  stage2: {source: a.cu, flags: [-O1, -O2]}", 1),
		"alias of itself":  "shapes: &a {b: *a}",
		"aliases of alias": "a: &a [" + nine + "]\nb: &b [" + strings.ReplaceAll(nine, "x", "*a") + "]\nflags: [" + strings.ReplaceAll(nine, "x", "*b") + "]",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse("kernel.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), "kernel.yaml:") {
				t.Errorf("got %v, want a mistake in kernel.yaml", err)
			}
		})
	}
}
