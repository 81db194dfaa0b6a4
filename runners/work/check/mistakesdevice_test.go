package check_test

// deviceMistakes are mistakes about launches, structs, packages and Python references.
func deviceMistakes() []mistake {
	const (
		launch    = "launch: {grid: [R], block: [128], shared_memory: 4*128}"
		out       = "{name: y, dtype: f16, access: out, shape: [R, C]}"
		cols      = "{name: cols, dtype: i32, access: scalar, value: C}"
		reference = "reference: {source: reference.cu, entry: truth, launch: {grid: [R], block: [32]}}"
		triton    = "num_warps: 4"
	)
	steps := func(second string) string {
		return "launch: {steps: [{grid: [R], block: [128]}, " + second + "]}"
	}
	return []mistake{
		{"SMs in a shape", "cuda", "shape: [R, C]}\n  - " + cols, "shape: [SMS, C]}\n  - " + cols, "arguments[1].shape[0]"},
		{"SMs in a value", "cuda", "value: C", "value: SMS", "arguments[2].value"},
		{"SMs in a constant", "triton", "BLOCK: pow2ceil(C)", "BLOCK: SMS", "constants.BLOCK"},
		{"a carve-out of more than everything", "cuda", "block: [128], ", "block: [128], carveout: 228, ", "launch.carveout"},
		{"a positive priority", "cuda", "block: [128], ", "block: [128], priority: 1, ", "launch.priority"},
		{"a dependent launch without steps", "cuda", "block: [128], ", "block: [128], programmatic: true, ", "launch.programmatic"},
		{"a dependent first step", "cuda", launch, "launch: {steps: [{grid: [R], block: [128], programmatic: true}]}", "launch.steps[0].programmatic"},
		{"a dependent step on an old GPU", "cuda", launch, steps("{grid: [R], block: [128], programmatic: true}"), "arch[0]"},
		{"a dependent cooperative step", "cuda", launch, steps("{grid: [R], block: [128], programmatic: true, cooperative: true}"), "launch.steps[1].programmatic"},
		{"a cluster on an old GPU", "cuda", "block: [128], ", "block: [128], cluster: [2], ", "arch[0]"},
		{"a step of nothing known", "cuda", launch, steps("{memset: z}"), "launch.steps[1].memset"},
		{"a memset of a word", "cuda", launch, steps("{memset: y, value: 256}"), "launch.steps[1].value"},
		{"a copy without an end", "cuda", launch, steps("{copy: x}"), "launch.steps[1].to"},
		{"a copy into an input", "cuda", launch, steps("{copy: y, to: x}"), "launch.steps[1].to"},
		{"a grid next to steps", "cuda", launch, "launch: {grid: [R], steps: [{grid: [R], block: [128]}]}", "launch.grid"},
		{"scratch in an argument", "cuda", "access: out, shape", "access: scratch, shape", "arguments[1].access"},
		{"packed scratch", "cuda", launch, launch + "\nscratch: [{name: part, dtype: int4, shape: [R]}]", "scratch[0].dtype"},
		{"an argument that is not there", "cuda", "block: [128], ", "block: [128], args: [x, z], ", "launch.args[1]"},
		{"too much shared memory", "cuda", "shared_memory: 4*128", "shared_memory: 300000", "launch.shared_memory"},
		{"a struct without fields", "cuda", cols, "{name: p, access: struct}", "arguments[2].fields"},
		{"a member without a value", "cuda", cols, "{name: p, access: struct, fields: [{name: n, dtype: i32}]}", "arguments[2].fields[0]"},
		{"a member that points to nothing", "cuda", cols, "{name: p, access: struct, fields: [{name: q, pointer: z}]}", "arguments[2].fields[0].pointer"},
		{"a format of a struct", "cuda", cols, "{name: p, dtype: f32, access: struct, fields: [{name: n, dtype: i32, value: C}]}", "arguments[2].dtype"},
		{"an init of a block that is written", "cuda", out, "{name: y, access: out, shape: [R], fields: [{name: d, dtype: f16, init: ones}]}", "arguments[1].fields[0].init"},
		{"a tolerance of all members", "cuda", out, "{name: y, access: out, shape: [R], tolerance: {abs: 1}, fields: [{name: d, dtype: f16}]}", "arguments[1].tolerance"},
		{"a tolerance of a member that is read", "cuda", "{name: x, dtype: f16, access: in, shape: [R, C]}", "{name: x, access: in, shape: [R], fields: [{name: d, dtype: f16, tolerance: {abs: 1}}]}", "arguments[0].fields[0].tolerance"},
		{"an odd number of nibbles", "cuda", out, "{name: y, access: out, shape: [R], fields: [{name: q, dtype: int4, count: 3}]}", "arguments[1].fields[0].count"},
		{"a vector of five", "cuda", cols, "{name: n, dtype: i32, access: scalar, vector: [C, 1, 1, 1, 1]}", "arguments[2].vector"},
		{"a setting next to a value", "cuda", "value: C", "value: C, setting: 3", "arguments[2].setting"},
		{"a skipped package with a path", "triton", triton, triton + "\nskip_init: [mypkg/ops]", "skip_init[0]"},
		{"a stub of Triton", "triton", triton, triton + "\nstubs: [triton.language]", "stubs[0]"},
		{"a stub twice", "triton", triton, triton + "\nstubs: [apex, apex]", "stubs[1]"},
		{"a module skipped and stubbed", "triton", triton, triton + "\nskip_init: [mypkg]\nstubs: [mypkg]", "stubs[0]"},
		{"stubs for nvcc", "cuda", "source: norm.cu", "stubs: [apex]\nsource: norm.cu", "stubs"},
		{"a set of headers for Triton", "triton", triton, triton + "\ninclude: [<torch>]", "include[0]"},
		{"a reference twice", "cuda", reference, "reference: {torch: x, source: reference.cu, entry: truth}", "reference.source"},
		{"dims for an expression", "cuda", reference, "reference: {torch: x, dims: [R]}", "reference.dims"},
		{"a library next to flags", "cuda", "source: norm.cu", "flags: [-lcublas]\nsource: norm.cu", "flags[0]"},
	}
}
