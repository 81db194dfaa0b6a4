package manifest

// goodSteps is a split attention: two kernels, a memset between them, and scratch.
const goodSteps = `version: 1
name: decode
mode: cuda
arch: [sm_89, sm_90]
source: decode.cu
arguments:
  - {name: q, dtype: f16, access: in, shape: [S, D]}
  - {name: state, dtype: f32, access: inout, shape: [S]}
  - {name: o, dtype: f16, access: out, shape: [S, D]}
  - {name: n, dtype: i32, access: scalar, value: S}
  - {name: p, access: struct, fields: [{name: partial, pointer: partial}, {name: o, pointer: o}]}
scratch:
  - {name: partial, dtype: f32, shape: [SPLITS, S, D]}
  - {name: done, dtype: u32, shape: [S]}
launch:
  steps:
    - {entry: split, grid: [SPLITS, S], block: [128], args: [q, state, n, partial, done]}
    - {memset: done, value: 1}
    - {entry: "ns::combine<64>", grid: ["roundup(S, 2)"], block: [64], shared_memory: 4*D, args: [p, partial, done]}
reference: {source: reference.cu, entry: decode_reference, launch: {grid: [1], block: [32]}}
tolerance: {abs: 0.06}
shapes:
  small: {S: 32, D: 64}
  mission: {S: 96, D: 64}
toggles:
  SPLITS: {values: [2, 4], default: 4, layer: micro}
`

const (
	splitStep   = "{entry: split, grid: [SPLITS, S], block: [128], args: [q, state, n, partial, done]}"
	combineStep = `{entry: "ns::combine<64>", grid: ["roundup(S, 2)"], block: [64], shared_memory: 4*D, args: [p, partial, done]}`
)

// Launches of several kernels and scratch.
var stepMistakes = []mistake{
	{"step beside a grid", goodSteps, "launch:\n", "launch:\n  grid: [S]\n  cooperative: true\n", []string{
		"kernel.yaml:16:9: launch.grid: is set together with steps (write it in the step that it belongs to)",
		"kernel.yaml:17:16: launch.cooperative: is set together with steps (write it in the step that it belongs to)",
	}},
	{"no steps", goodSteps, "  steps:\n    - " + splitStep + "\n    - {memset: done, value: 1}\n    - " + combineStep + "\n", "  steps: []\n", []string{
		"kernel.yaml:16:10: launch.steps: has 0 steps (write 1 to 32)",
	}},
	{"steps without a kernel", goodSteps, "    - " + splitStep + "\n    - {memset: done, value: 1}\n    - " + combineStep + "\n", "    - {memset: o}\n", []string{
		"kernel.yaml:13:12: scratch[0].name: no kernel is passed partial (name it in the args of a launch or a step, or delete it)",
		"kernel.yaml:14:12: scratch[1].name: no kernel is passed done (name it in the args of a launch or a step, or delete it)",
		"kernel.yaml:17:5: launch.steps: starts no kernel (add a step with entry, grid and block)",
	}},
	{"packed scratch", goodSteps, "dtype: u32, shape: [S]", "dtype: int4, shape: [S]", []string{
		"kernel.yaml:14:25: scratch[1].dtype: int4 has two elements to a byte, which scratch has not (write u8)",
	}},
	{"step without an entry", goodSteps, "{entry: split, ", "{", []string{
		"kernel.yaml:17:7: launch.steps[0].entry: is required, for the manifest has none either (write e.g. entry: combine)",
	}},
	{"step with a wrong entry", goodSteps, "{entry: split, ", "{entry: 9, ", []string{
		`kernel.yaml:17:15: launch.steps[0].entry: "9" is no name of a kernel: "9" is out of place (write e.g. sdpa, attention<64, true>, ns::kernel or scale(float*, const float*, int))`,
	}},
	{"step without a grid", goodSteps, "{entry: split, grid: [SPLITS, S], ", "{entry: split, ", []string{
		`kernel.yaml:17:7: launch.steps[0].grid: is required (write e.g. grid: ["ceildiv(S, 64)", H, B])`,
	}},
	{"step with an unknown argument", goodSteps, "args: [q, state, n, partial, done]", "args: [q, state, n, partail, done]", []string{
		`kernel.yaml:17:75: launch.steps[0].args[3]: "partail" is neither an argument nor scratch (write one of q, state, o, n, p, partial, done)`,
	}},
	{"step with an unknown field", goodSteps, "{memset: done, value: 1}", "{memset: done, bytes: 1}", []string{
		"kernel.yaml:18:22: launch.steps[1].bytes: unknown field (known here: args, block, carveout, cluster, constants, cooperative, copy, entry, grid, max_threads, memset, num_stages, num_warps, priority, programmatic, repeat, scalars, shared_memory, to, value)",
	}},
	{"step at a shape", goodSteps, `"roundup(S, 2)"`, "S - 96", []string{
		`kernel.yaml:19:41: launch.steps[2].grid[0]: "S - 96" is -64 at shape small, S=32 D=64 (make it 1 or more)`,
	}},
	{"step with a cluster", goodSteps, "shared_memory: 4*D,", "cluster: [2],", []string{
		`kernel.yaml:4:8: arch[0]: "sm_89" has no clusters, which launch.steps[2].cluster asks for (write sm_90 or later, or delete the cluster)`,
	}},
	{"memset of an input", goodSteps, "{memset: done, value: 1}", "{memset: q}", []string{
		"kernel.yaml:18:16: launch.steps[1].memset: q is an input, which a launch must not overwrite (write one of o, partial, done)",
	}},
	{"memset of an input that is an output too", goodSteps, "{memset: done, value: 1}", "{memset: state}", []string{
		"kernel.yaml:18:16: launch.steps[1].memset: state is an input too, which a launch must not overwrite (write one of o, partial, done)",
	}},
	{"memset of nothing known", goodSteps, "{memset: done, value: 1}", "{memset: don}", []string{
		`kernel.yaml:18:16: launch.steps[1].memset: "don" is neither scratch nor an output (write one of o, partial, done)`,
	}},
	{"memset of more than a byte", goodSteps, "value: 1}", "value: 256}", []string{
		"kernel.yaml:18:29: launch.steps[1].value: 256 is no byte (write 0 to 255)",
	}},
	{"memset with a grid", goodSteps, "{memset: done, value: 1}", "{memset: done, grid: [1]}", []string{
		"kernel.yaml:18:22: launch.steps[1].grid: a memset has none (delete it, or make it a separate step)",
	}},
	{"copy to nothing", goodSteps, "{memset: done, value: 1}", "{copy: partial}", []string{
		"kernel.yaml:18:7: launch.steps[1].to: is required for a copy (write the scratch or the output that it fills, e.g. to: o)",
	}},
	{"copy to an input", goodSteps, "{memset: done, value: 1}", "{copy: partial, to: state}", []string{
		"kernel.yaml:18:27: launch.steps[1].to: state is an input too, which a launch must not overwrite (write one of o, partial, done)",
	}},
	{"copy to itself", goodSteps, "{memset: done, value: 1}", "{copy: partial, to: partial}", []string{
		"kernel.yaml:18:27: launch.steps[1].to: partial is what is copied (name another)",
	}},
	{"copy of a scalar", goodSteps, "{memset: done, value: 1}", "{copy: n, to: o}", []string{
		"kernel.yaml:18:14: launch.steps[1].copy: n is no array of plain elements (name one, or scratch)",
	}},
	{"copy of nothing known", goodSteps, "{memset: done, value: 1}", "{copy: part, to: o}", []string{
		`kernel.yaml:18:14: launch.steps[1].copy: "part" is neither an argument nor scratch (write one of q, state, o, n, p, partial, done)`,
	}},
	{"copy that converts", goodSteps, "{memset: done, value: 1}", "{copy: partial, to: o}", []string{
		"kernel.yaml:18:27: launch.steps[1].to: o is f16, and partial is f32 (a copy converts nothing)",
	}},
	{"copy of too little", goodSteps, "{memset: done, value: 1}", "{copy: state, to: partial}", []string{
		`kernel.yaml:13:52: scratch[0].shape[2]: "D" makes partial larger than state, which is copied to it: 8192 and 32 elements at shape small, S=32 D=64 (copy from an array that has as many, or more)`,
	}},
	{"copy with a byte", goodSteps, "{memset: done, value: 1}", "{copy: done, to: o, value: 1}", []string{
		"kernel.yaml:18:24: launch.steps[1].to: o is f16, and done is u32 (a copy converts nothing)",
		"kernel.yaml:18:27: launch.steps[1].value: a copy has none (delete it, or make it a separate step)",
	}},
	{"kernel that goes somewhere", goodSteps, "block: [64],", "block: [64], to: o,", []string{
		"kernel.yaml:19:76: launch.steps[2].to: is where a copy goes (delete it)",
	}},
	{"kernel with a byte", goodSteps, "block: [64],", "block: [64], value: 3,", []string{
		"kernel.yaml:19:79: launch.steps[2].value: is the byte of a memset (delete it)",
	}},
	{"no step writes an output", goodSteps, "args: [p, partial, done]", "args: [partial, done]", []string{
		"kernel.yaml:17:5: launch.steps: nothing writes the output o (name it in the args of the kernel that does)",
	}},
	{"no argument is an output", goodCUDA, "  block: [128]\n", "  block: [128]\n  args: [x]\n", []string{
		"kernel.yaml:13:9: launch.args: nothing writes the output y (name it in the args of the kernel that does)",
	}},
	{"scratch named like an argument", goodSteps, "scratch:\n", "scratch:\n  - {name: n, dtype: f32, shape: [S]}\n", []string{
		`kernel.yaml:13:12: scratch[0].name: "n" is the name of an argument too (choose another)`,
	}},
	{"scratch twice", goodSteps, "launch:\n", "  - {name: done, dtype: f32, shape: [S]}\nlaunch:\n", []string{
		`kernel.yaml:15:12: scratch[2].name: "done" is the name of earlier scratch too (choose another)`,
	}},
	{"scratch that nobody uses", goodSteps, "scratch:\n", "scratch:\n  - {name: spare, dtype: f32, shape: [S]}\n", []string{
		"kernel.yaml:13:12: scratch[0].name: no kernel is passed spare (name it in the args of a launch or a step, or delete it)",
	}},
	{"scratch of no size", goodSteps, "shape: [SPLITS, S, D]", "shape: [SPLITS, S - 32]", []string{
		`kernel.yaml:13:49: scratch[0].shape[1]: "S - 32" is 0 at shape small, S=32 D=64 (make it 1 or more)`,
	}},
	{"scratch of an unknown name", goodSteps, "shape: [SPLITS, S, D]", "shape: [SPLIT, S, D]", []string{
		`kernel.yaml:13:41: scratch[0].shape[0]: "SPLIT" in "SPLIT" is not known here (known: S, D, SPLITS, SMS)`,
	}},
	{"scratch without end", goodSteps, "shape: [SPLITS, S, D]", "shape: [1024, 1024, 4, S]", []string{
		`kernel.yaml:13:56: scratch[0].shape[3]: "S" makes scratch of 1610612736 bytes at shape mission, S=96 D=64 (make it 1073741824 or fewer in all)`,
	}},
	{"scratch among the arguments", goodSteps, "{name: n, dtype: i32, access: scalar, value: S}", "{name: n, dtype: i32, access: scratch, shape: [S]}", []string{
		"kernel.yaml:10:35: arguments[3].access: scratch is of the implementation (write it in a separate list, e.g. scratch: [{name: partial, dtype: f32, shape: [S, D]}], and name it in the args of a step)",
	}},
	{"toggle named like scratch", goodSteps, "toggles:\n", "toggles:\n  done: {values: [1], default: 1, layer: micro}\n", []string{
		`kernel.yaml:26:3: toggles.done: "done" is also the name of a dim, an argument, scratch or the entry (choose another name)`,
	}},
	{"scratch in cpu mode", goodCPU, "source: sdpa.c\n", "source: sdpa.c\nscratch: [{name: a, dtype: f32, shape: [S]}]\n", []string{
		"kernel.yaml:6:10: scratch: is not read in cpu mode (delete it)",
	}},
}
