package manifest

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/policies/strict/stricttest"
)

// The reference is made from tags, and what they say of every key is held against
// the parser.
func TestReference(t *testing.T) {
	const (
		cpu = "version: 1, name: a, mode: cpu, entry: f, reference: {source: reference.c, entry: r}, tolerance: {abs: 1, rel: 1}, shapes: {one: {B: 1, H: 8, S: 64, D: 64}}"
		// More dims, for what inputs hold.
		initial = "version: 1, name: a, mode: cpu, entry: f, reference: {source: reference.c, entry: r}, tolerance: {abs: 1, rel: 1}, shapes: {one: {B: 1, H: 8, S: 64, D: 64, T: 256, V: 1000}}"
		cuda    = "version: 1, name: a, mode: cuda, entry: f, tolerance: {abs: 1}, shapes: {one: {B: 1, H: 8, S: 64, D: 64}}, arch: [sm_90]"
		q       = "{name: q, dtype: f32, access: in, shape: [B, H, S, D]}"
		o       = "{name: o, dtype: f32, access: out, shape: [B, H, S, D]}"
		steps   = ", source: a.cu, arguments: [" + q + ", " + o + "], reference: {source: r.cu, entry: r, launch: {grid: [1], block: [1]}}, scratch: [{name: partial, dtype: f32, shape: [B, S]}]"
		// What only the kernel needs.
		settings = cuda + ", source: a.cu, launch: {grid: [1], block: [1]}, reference: {source: r.cu, entry: r, launch: {grid: [1], block: [1]}}, toggles: {SPLITS: {values: [8], default: 8, layer: micro}, TILE: {values: [8], default: 8, layer: micro}}"
	)
	language := stricttest.Language{
		Of: Manifest{},
		Files: []string{
			"{" + cpu + ", source: a.c, arguments: [{name: x, dtype: f32, access: in, shape: [B, H, S, D]}, " + o + "], work: {flops: 1, bytes: 1, peak: fp32}}",
			"{" + cpu + ", source: a.c, arguments: [{name: x, dtype: f32, access: out, shape: [B, H, S, D], tolerance: {abs: 1, rel: 1}}]}",
			"{" + cpu + ", source: a.c, arguments: [{name: x, dtype: f32, access: scalar, value: S}, " + o + "], rivals: [{name: a, command: [a]}]}",
			"{" + cpu + ", arguments: [{name: x, dtype: i8, access: in, shape: [B, H, S, D], quantize: {scale: q_scale}}, {name: q_scale, dtype: f32, access: in, shape: [1]}, " + o + "]," +
				"  variants: {stage1: {source: a.c}, stage2: {source: b.c}}, default_variant: stage1, toggles: {USE_CP_ASYNC: {values: [0, 1], default: 0, layer: micro}}}",
			"{" + cpu + ", source: a.c, arguments: [{name: x, dtype: i8, access: in, shape: [B, H, S, D], quantize: {scale: q_scale}}, {name: q_scale, dtype: f32, access: in, shape: [H]}, " + o + "]}",
			"{" + cuda + ", source: a.cu, arguments: [{name: o, dtype: f16, access: out, shape: [B, H, S, D], tensor_map: {box: [1, 1, 64, D]}}], launch: {grid: [8], block: [1]}," +
				"  reference: {source: r.cu, entry: r, launch: {grid: [1], block: [1]}}}",
			"{" + cuda + ", arguments: [" + o + "], launch: {grid: [1], block: [1]}, variants: {a: {source: a.cu}}, reference: {source: r.cu, entry: r, launch: {grid: [1], block: [1]}}}",
			"{" + cuda + ", arguments: [" + o + "], launch: {grid: [1], block: [1]}, source: a.cu, reference: {source: r.cu, entry: r}}",
			"{" + cpu + ", source: a.c, arguments: [{name: x, dtype: u32, access: scalar, vector: [B, H]}, " + o + "]}",
			"{" + cpu + ", source: a.c, arguments: [{name: x, access: struct, fields: [{name: a, dtype: f32, value: S}]}, " + q + ", " + o + "]}",
			"{" + cpu + ", source: a.c, arguments: [{name: x, access: struct, fields: [{name: a, dtype: f32, vector: [B, H]}]}, " + q + ", " + o + "]}",
			"{" + cpu + ", source: a.c, arguments: [{name: x, access: struct, fields: [{name: a, dtype: f32, array: [B, H]}]}, " + q + ", " + o + "]}",
			"{" + cpu + ", source: a.c, arguments: [{name: x, access: struct, fields: [{name: a, pointer: q}]}, " + q + ", " + o + "]}",
			"{" + cuda + steps + ", toggles: {SPLITS: {values: [8], default: 8, layer: micro}}, launch: {steps: [{grid: [8], block: [1]}, {entry: g, grid: [1], block: [1], args: [q, partial]}]}}",
			"{" + cuda + steps + ", launch: {steps: [{memset: o}, {grid: [1], block: [1], args: [o, partial]}]}}",
			"{" + cuda + ", source: a.cu, arguments: [" + q + ", " + o + "], reference: {source: r.cu, entry: r, launch: {grid: [1], block: [1]}}, scratch: [{name: partial, dtype: f32, shape: [B, H, S, D]}]" +
				", launch: {steps: [{copy: q, to: o}, {grid: [1], block: [1], args: [q, partial]}]}}",
			"{" + cuda + steps + ", launch: {grid: [1], block: [1], args: [o, partial]}}",
			"{" + cuda + steps + ", launch: {steps: [{repeat: {name: s, count: 2}, grid: [8], block: [1], scalars: [{name: half, dtype: i32, value: s}], args: [q, o, half]}, {entry: g, grid: [1], block: [1], args: [q, partial]}]}}",
			"{" + cpu + ", source: a.c, arguments: [{name: x, access: struct, fields: [{name: a, struct: inner}]}, {name: inner, access: struct, fields: [{name: a, dtype: f32, value: S}]}, " + q + ", " + o + "]}",
			"{" + cpu + ", source: a.c, arguments: [{name: x, access: in, shape: [S], fields: [{name: a, dtype: u8, init: any}]}, " + o + "]}",
			"{" + cpu + ", source: a.c, arguments: [{name: x, access: out, shape: [S], fields: [{name: a, dtype: u8, tolerance: {abs: 1, rel: 1}}]}, " + o + "]}",
			"{" + settings + ", arguments: [{name: x, dtype: u32, access: scalar, setting: 1}, " + q + ", " + o + "]}",
			"{" + settings + ", arguments: [{name: x, access: struct, fields: [{name: a, dtype: u32, setting: 1}]}, " + q + ", " + o + "]}",
			"{" + settings + ", arguments: [{name: x, access: struct, fields: [{name: a, dtype: u32, settings: [1, 2]}]}, " + q + ", " + o + "]}",
			"{" + settings + ", arguments: [{name: x, access: struct, fields: [{name: a, tensor_map: a}]}, {name: a, dtype: f16, access: in, shape: [S, D], tensor_map: {box: [64, D]}}, " + o + "]}",
			"{" + initial + ", source: a.c, arguments: [{name: x, dtype: i32, access: in, shape: [S], init: {range: 0..1}}, " + o + "]}",
			"{" + initial + ", source: a.c, arguments: [{name: x, dtype: f32, access: in, shape: [S], init: {draw: normal}}, " + o + "]}",
			"{" + initial + ", source: a.c, arguments: [{name: x, dtype: i32, access: in, shape: [S], init: {draw: offsets, total: T}}, " + o + "]}",
			"{" + initial + ", source: a.c, arguments: [{name: x, dtype: f32, access: in, shape: [S], init: {draw: mask}}, " + o + "]}",
			"{" + initial + ", source: a.c, arguments: [{name: x, dtype: f32, access: in, shape: [S], init: {draw: sorted}}, " + o + "]}",
			"{version: 1, name: a, mode: cpu, entry: f, reference: {source: reference.c, entry: r}, tolerance: {abs: 1}, shapes: {one: {B: 1, H: 8, S: 64, D: 64}, two: {B: 1, H: 8, S: 2048, D: 64}}," +
				"  arguments: [" + o + "], variants: {stage1: {source: a.c}, stage2: {source: b.c}}, choose: [{when: S > 64, variant: stage2}, {variant: stage1}]}",
			"{" + cuda + ", arguments: [" + o + "], launch: {grid: [8]}, source: a.py, compiler: triton, reference: {source: r.cu, entry: r, launch: {grid: [1], block: [1]}}}",
			"{" + cuda + ", arguments: [" + q + ", " + o + "], launch: {steps: [{grid: [8]}, {grid: [8]}]}, source: a.py, compiler: triton, reference: {source: r.cu, entry: r, launch: {grid: [1], block: [1]}}}",
			"{" + cuda + ", arguments: [" + o + "], launch: {grid: [8]}, source: a.py, reference: {source: r.cu, entry: r, launch: {grid: [1], block: [1]}}}",
			"{" + cuda + ", arguments: [" + o + "], launch: {grid: [8]}, source: a.py, compiler: command, build: [a], reference: {source: r.cu, entry: r, launch: {grid: [1], block: [1]}}}",
			"{" + cuda + ", source: a.cu, arguments: [" + q + ", " + o + "], launch: {grid: [1], block: [1]}, reference: {source: r.py, entry: r}}",
			"{" + cuda + ", source: a.cu, arguments: [" + q + ", " + o + "], launch: {grid: [1], block: [1]}, reference: {torch: q}}",
			"{" + strings.Replace(cuda, "one:", "mission:", 1) + ", source: a.cu, arguments: [" + q + ", " + o + "], launch: {grid: [1], block: [1]}, reference: {torch: q}, weights: {launches: {mission: 1}}}",
			"{version: 1, name: a, mode: cpu, entry: f, source: a.c, reference: {source: reference.c, entry: r}, tolerance: {abs: 1}, shapes: {mission: {B: 1, H: 8, S: 64, D: 64}}, arguments: [" + q +
				", {name: cos, dtype: f32, access: in, shape: [S, D]}, {name: sin, dtype: f32, access: in, shape: [S, D]}, " + o + "]," +
				"  recorded: {decode: {file: a.safetensors, sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, shape: mission, vary: {noise: 0.1}}}}",
			"{version: 1, name: a, mode: command, command: {build: [a], bench: [b]}, shapes: {one: {B: 1, H: 8, S: 64, D: 64}}}",
			"{version: 1, name: a, mode: command, command: {build: [a], bench: [b]}, shapes: {small: {S: 64}, mission: {S: 96}}, weights: {launches: {mission: 1}, kernel: 20us, step: 1840us}}",
		},
		Parse: func(text []byte) (any, error) { return Parse(FileName, text) },
		Halves: map[string]string{
			strict.HalfProblem: "What is asked of the kernel, and how that is judged. It comes from the base branch: a change that edits it is judged by the base's, " +
				"is told so field by field, and its edit takes effect when it is merged. `rivals` and `description` decide nothing.",
			strict.HalfImplementation: "How the same outputs are computed. It is the author's and comes from the side that is built: the baseline is built and launched as the base says, " +
				"the candidate as the head says. An argument's `tensor_map` belongs here too, and so do `setting` and `settings`. A toggle that an argument's `shape` or `value` names keeps its value in the default variant, " +
				"and no variant's `limits` get rid of a shape that the policy asks for.",
		},
		Entry: map[string]func(int) string{
			"arguments":          func(i int) string { return "{name: a" + strconv.Itoa(i) + ", dtype: f32, access: out, shape: [S]}" },
			"arguments[].shape":  func(int) string { return "1" },
			"arguments[].vector": func(int) string { return "1" },
			"arguments[].fields": func(i int) string { return "{name: a" + strconv.Itoa(i) + ", dtype: f32, value: 1}" },

			"arguments[].fields[].vector": func(int) string { return "1" },
			"arguments[].fields[].array":  func(int) string { return "1" },

			"arguments[].fields[].settings": func(int) string { return "1" },

			"launch.grid":            func(int) string { return "1" },
			"launch.block":           func(int) string { return "1" },
			"launch.cluster":         func(int) string { return "1" },
			"launch.steps":           func(int) string { return "{grid: [1], block: [1], args: [q, partial, o]}" },
			"launch.steps[].grid":    func(int) string { return "1" },
			"launch.steps[].block":   func(int) string { return "1" },
			"launch.steps[].cluster": func(int) string { return "1" },
			"scratch[].shape":        func(int) string { return "1" },
			"reference.launch.grid":  func(int) string { return "1" },
			"reference.launch.block": func(int) string { return "1" },
			"toggles.NAME.values":    func(i int) string { return strconv.Itoa(i) },
		},
	}
	language.InStep(t, "../REFERENCE.md", *update)
	language.Check(t)
}

// What a mode must have is a table of its own. The reference says the same.
func TestReferenceKnowsTheModes(t *testing.T) {
	for _, k := range strict.Keys(Manifest{}) {
		if strings.Contains(k.Path, ".") || k.Required {
			continue
		}
		for _, mode := range modes {
			required := slices.Contains(needs[mode].required, k.Name)
			said := strings.HasPrefix(k.Default, "(required for") && strings.Contains(k.Default, string(mode))
			if required != said {
				t.Errorf("%s: the default is said to be %q, and in %s mode it is required: %v", k.Path, k.Default, mode, required)
			}
		}
	}
}
