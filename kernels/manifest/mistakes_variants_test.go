package manifest

// Toggles, variants, commands, and several mistakes at once.
var variantMistakes = []mistake{
	{"toggle default", goodCUDA, "default: 64", "default: 48", []string{
		"kernel.yaml:20:43: toggles.TILE.default: 48 is none of the values [32 64 1024] (write one of them)",
	}},
	{"toggle incomplete", goodCUDA, ", default: 64, layer: micro", "", []string{
		"kernel.yaml:20:9: toggles.TILE.default: is required (write e.g. default: 0)",
		"kernel.yaml:20:9: toggles.TILE.layer: is required (write e.g. layer: structure)",
	}},
	{"toggle layer", goodCUDA, "layer: micro", "layer: tiny", []string{
		`kernel.yaml:20:54: toggles.TILE.layer: "tiny" is not one of structure, micro`,
	}},
	{"toggle is a dim", goodCUDA, "  TILE: {", "  S: {values: [1], default: 1, layer: micro}\n  TILE: {", []string{
		`kernel.yaml:20:3: toggles.S: "S" is also the name of a dim, an argument, scratch or the entry (choose another name)`,
	}},
	{"variant toggle unknown", goodCUDA, "toggles: {TILE: 32}", "toggles: {TYLE: 32}", []string{
		"kernel.yaml:23:41: variants.stage2.toggles.TYLE: is no toggle (declare it: toggles: {TYLE: {values: [0, 1], default: 0, layer: structure}})",
	}},
	{"variant toggle value", goodCUDA, "toggles: {TILE: 32}", "toggles: {TILE: 33}", []string{
		"kernel.yaml:23:47: variants.stage2.toggles.TILE: 33 is none of the toggle's values [32 64 1024] (write one of them)",
	}},
	{"variant only", goodCUDA, "toggles: {TILE: 32}", "toggles: {TILE: 1024}", []string{
		`kernel.yaml:13:18: launch.shared_memory: "4*TILE*D" is 262144 at shape small of variant stage2, S=32 D=64 (make it 232448 or less)`,
	}},
	{"variant without source", goodCUDA, "{source: stage1.cu}", "{description: none}", []string{
		"kernel.yaml:22:11: variants.stage1.source: is required (write e.g. source: stage1.cu)",
	}},
	{"default variant missing", goodCUDA, "default_variant: stage2\n", "", []string{
		"kernel.yaml:1:1: default_variant: is required with more than one variant (write one of stage1, stage2, or choose)",
	}},
	{"default variant unknown", goodCUDA, "default_variant: stage2", "default_variant: stage9", []string{
		`kernel.yaml:24:18: default_variant: "stage9" is none of the variants (write one of stage1, stage2)`,
	}},
	{"source beside variants", goodCUDA, "variants:", "source: a.cu\nvariants:", []string{
		"kernel.yaml:21:9: source: is set together with variants (delete it, or move it into a variant)",
	}},
	{"tolerance", goodCPU, "abs: 0.06", "abs: -1", []string{
		"kernel.yaml:13:18: tolerance.abs: -1 is negative (write e.g. 0.06)",
	}},
	{"peak", goodCPU, "peak: fp32", "peak: fp4", []string{
		`kernel.yaml:19:52: work.peak: "fp4" is not one of fp8, fp16, bf16, tf32, fp32, fp64, int8`,
	}},
	{"command missing", goodCommand, "command: {build: [make], bench: [./bench]}\n", "", []string{
		"kernel.yaml:1:1: command: is required in command mode (write e.g. command: {build: [make, bench], bench: [./bench, --json]})",
	}},
	{"command unit", goodCommand, "bench: [./bench]", "bench: [], unit: h", []string{
		"kernel.yaml:4:33: command.bench: is empty (write the program and its arguments)",
		`kernel.yaml:4:43: command.unit: "h" is not one of ns, us, ms, s`,
	}},
	{"command with arguments", goodCommand, "shapes:", "entry: f\nflags: [-O2]\nshapes:", []string{
		"kernel.yaml:5:8: entry: is not read in command mode (delete it)",
		"kernel.yaml:6:8: flags: is not read in command mode (delete it)",
	}},
	{"rival", goodCommand, "shapes:", "rivals: [{name: torch, command: [a]}, {name: torch, command: ['']}]\nshapes:", []string{
		`kernel.yaml:5:46: rivals[1].name: "torch" is the name of an earlier rival too (choose another)`,
		"kernel.yaml:5:62: rivals[1].command: names no program (write it first)",
	}},
	{"several at once", goodCPU, "mode: cpu\nentry: sdpa_fp8\n", "mode: cpu\nentry: 9\nDefault: 1\narch: [sm_89]\ncommand: {build: [a]}\n", []string{
		`kernel.yaml:4:8: entry: "9" is no name of a kernel: "9" is out of place (write e.g. sdpa, attention<64, true>, ns::kernel or scale(float*, const float*, int))`,
		"kernel.yaml:5:1: Default: unknown field (known here: arch, arguments, autotune, build, choose, command, compiler, constants, default_variant, description, entry, flags, include, include_first, launch, limits, mode, name, num_ctas, num_stages, num_warps, recorded, reference, rivals, root, scratch, secret, shapes, skip_init, source, sources, stubs, threads, toggles, tolerance, variants, version, weights, work)",
		"kernel.yaml:6:7: arch: is not read in cpu mode (delete it)",
		"kernel.yaml:7:10: command: is not read in cpu mode (delete it)",
		"kernel.yaml:7:10: command.bench: is required (write e.g. bench: [./bench, --json])",
	}},
}
