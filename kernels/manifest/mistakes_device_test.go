package manifest

// Variants with launches, architectures and limits of their own, and references
// on the device.
var deviceMistakes = []mistake{
	{"variant launch empty", goodDevice, `{grid: [S], block: ["64/max(0, 65 - D)"]}`, "{block: []}", []string{
		`kernel.yaml:26:13: variants.stage0.launch.grid: is required (write e.g. grid: ["ceildiv(S, 64)", H, B])`,
	}},
	{"variant launch axes", goodDevice, `{grid: [S], block: ["64/max(0, 65 - D)"]}`, "{grid: [1, 1, 1, 1], block: []}", []string{
		"kernel.yaml:26:20: variants.stage0.launch.grid: has 4 axes (write one to three)",
		"kernel.yaml:26:41: variants.stage0.launch.block: has 0 axes (write one to three)",
	}},
	{"variant launch unknown name", goodDevice, `"64/max(0, 65 - D)"`, "TYLE", []string{
		`kernel.yaml:26:33: variants.stage0.launch.block[0]: "TYLE" in "TYLE" is not known here (known: S, D, causal, TILE, SMS)`,
	}},
	{"variant launch at a shape", goodDevice, `"roundup(S, 2)"`, "S - 96", []string{
		`kernel.yaml:31:21: variants.stage1.launch.grid[0]: "S - 96" is -64 at shape small of variant stage1, S=32 D=64 causal=0 (make it 1 or more)`,
	}},
	{"variant launch with its toggles", goodDevice, "toggles: {TILE: 32}", "toggles: {TILE: 1024}", []string{
		`kernel.yaml:31:68: variants.stage1.launch.shared_memory: "4*TILE*D" is 262144 at shape small of variant stage1, S=32 D=64 causal=0 (make it 232448 or less)`,
	}},
	{"variant launch and cluster", goodDevice, `"roundup(S, 2)"`, "S", []string{
		`kernel.yaml:31:21: variants.stage1.launch.grid[0]: "S" is 1, no multiple of the cluster's 2 at a secret shape of variant stage1, S=1 D=64 causal=0 (use roundup(…, 2))`,
	}},
	{"variant launch and cluster axes", goodDevice, "cluster: [2]", "cluster: [1, 2]", []string{
		"kernel.yaml:31:20: variants.stage1.launch.grid: has fewer axes than the cluster [1 2] at shape small of variant stage1, S=32 D=64 causal=0 (add axes to grid)",
	}},
	{"variant launch and cluster size", goodDevice, "cluster: [2]", "cluster: [16]", []string{
		`kernel.yaml:31:88: variants.stage1.launch.cluster[0]: "16" is 16 at shape small of variant stage1, S=32 D=64 causal=0 (make it 8 or less)`,
	}},
	{"variant launch and cluster blocks", goodDevice, "cluster: [2]", "cluster: [1, 8, \"S/16\"]", []string{
		`kernel.yaml:31:94: variants.stage1.launch.cluster[2]: "S/16" makes a cluster of 16 blocks at shape small of variant stage1, S=32 D=64 causal=0 (make it 8 or fewer)`,
	}},
	{"launch of one variant missing", goodDevice, "    launch: {grid: [\"roundup(S, 2)\"], block: [128], shared_memory: 4*TILE*D, cluster: [2]}\n", "", []string{
		`kernel.yaml:1:1: launch: is required: variant stage1 does not set it (write e.g. launch: {grid: ["ceildiv(S, 64)"], block: [128]})`,
	}},
	{"launch of one variant none", goodDevice, `{grid: ["roundup(S, 2)"], block: [128], shared_memory: 4*TILE*D, cluster: [2]}`, "none", []string{
		`kernel.yaml:1:1: launch: is required: variant stage1 does not set it (write e.g. launch: {grid: ["ceildiv(S, 64)"], block: [128]})`,
	}},
	{"arch missing", goodDevice, "arch: [sm_89, sm_90]\n", "", []string{
		"kernel.yaml:1:1: arch: is required in cuda mode (write e.g. arch: [sm_89])",
	}},
	{"variant arch", goodDevice, "[sm_90, sm_90a]", "[sm_90, sm_90b, {}, sm_90]", []string{
		`kernel.yaml:29:19: variants.stage1.arch[1]: "sm_90b" is not an architecture (write sm_75 to sm_121, e.g. sm_89)`,
		`kernel.yaml:29:27: variants.stage1.arch[2]: "" is not an architecture (write sm_75 to sm_121, e.g. sm_89)`,
		`kernel.yaml:29:31: variants.stage1.arch[3]: "sm_90" is named twice (delete one)`,
	}},
	{"variant arch empty", goodDevice, "[sm_90, sm_90a]", "[]", []string{
		"kernel.yaml:29:11: variants.stage1.arch: is empty (write e.g. [sm_89])",
	}},
	{"variant arch without its cluster", goodDevice, "[sm_90, sm_90a]", "[sm_90, sm_89]", []string{
		`kernel.yaml:29:19: variants.stage1.arch[1]: "sm_89" has no clusters, which variants.stage1.launch.cluster asks for (write sm_90 or later, or delete the cluster)`,
	}},
	{"variant cluster without its arch", goodDevice, "    arch: [sm_90, sm_90a]\n", "", []string{
		`kernel.yaml:30:87: variants.stage1.launch.cluster: the kernel's arch "sm_89" has no clusters (write e.g. arch: [sm_90] in the variant, or delete the cluster)`,
	}},
	// The kernel's own sm_89 is no mistake: no variant is built for it with this launch.
	{"variant arch without the kernel's cluster", goodDevice, "variants:\n", "launch: {grid: [\"roundup(S, 2)\"], block: [32], cluster: [2]}\nvariants:\n  old: {source: old.cu, arch: [sm_80]}\n", []string{
		`kernel.yaml:24:32: variants.old.arch[0]: "sm_80" has no clusters, which launch.cluster asks for (write sm_90 or later, or delete the cluster)`,
	}},
	{"cpu variant with launch and arch", goodCPU, "source: sdpa.c\n", "variants: {a: {source: a.c, arch: [sm_90], launch: {grid: [1], block: [1]}}}\n", []string{
		"kernel.yaml:5:35: variants.a.arch: is not read in cpu mode (delete it)",
		"kernel.yaml:5:52: variants.a.launch: is not read in cpu mode (delete it)",
	}},
	{"command variant with launch", goodCommand, "shapes:", "variants: {a: {launch: {grid: [1], block: [1]}}}\nshapes:", []string{
		"kernel.yaml:5:24: variants.a.launch: is not read in command mode (delete it)",
	}},
	{"variant limits unknown", goodDevice, "{D: 64, causal: 0}", "{T: 64, causal: 0}", []string{
		"kernel.yaml:25:14: variants.stage0.limits.T: is no dim of the shapes (write one of S, D, causal)",
	}},
	{"variant limits no range", goodDevice, "{D: 64, causal: 0}", "{D: 64-, causal: 0}", []string{
		`kernel.yaml:25:17: variants.stage0.limits.D: "64-" is not a range (write e.g. 1..4096, 64|128 or 2..4096 step 2)`,
	}},
	{"variant limits beyond the kernel's", goodDevice, "{D: 64, causal: 0}", "{D: 64..128, S: 1..8192}", []string{
		"kernel.yaml:25:17: variants.stage0.limits.D: 64..128 is not within limits.D 64|128 (narrow it)",
		"kernel.yaml:25:29: variants.stage0.limits.S: 1..8192 is not within limits.S 1..4096 (narrow it)",
	}},
	{"variant limits beside the secrets", goodDevice, "{D: 64, causal: 0}", "{D: 64, S: 161..4096}", []string{
		"kernel.yaml:25:24: variants.stage0.limits.S: 161..4096 has nothing in common with secret.S 1..160 (widen one of them)",
	}},
	{"variant limits without shapes", goodDevice, "{D: 64, causal: 0}", "{D: 64, causal: 1}", []string{
		"kernel.yaml:25:13: variants.stage0.limits: leave the variant none of the shapes (widen them, or add a shape)",
	}},
	{"shape of no variant", goodDevice, "    arch: [sm_90, sm_90a]\n", "    arch: [sm_90, sm_90a]\n    limits: {causal: 0}\n", []string{
		"kernel.yaml:17:9: shapes.wide: is within no variant's limits (widen them, or delete the shape)",
	}},
	{"expression at an unsupported shape", goodDevice, "{D: 64, causal: 0}", "{causal: 0}", []string{
		`kernel.yaml:26:33: variants.stage0.launch.block[0]: "64/max(0, 65 - D)" divides by zero at a secret shape, S=160 D=128 causal=0 (use max(1, …) where a divisor can be 0)`,
	}},
	{"reference launch missing", goodDevice, "  launch: {grid: [S], block: [D], shared_memory: 4*D}\n", "", []string{
		`kernel.yaml:11:3: reference.launch: is required for a reference on the device (write e.g. launch: {grid: ["ceildiv(S, 4)"], block: [128]})`,
	}},
	{"reference in C for the device", goodDevice, "source: reference.cu", "source: reference.c", []string{
		`kernel.yaml:11:11: reference.source: "reference.c" is no CUDA file: the reference of a cuda kernel runs on the GPU (write a __global__ function in a .cu file, and its launch, or a function in a .py file)`,
	}},
	{"reference launch in cpu mode", goodCPU, "entry: sdpa_reference}", "entry: sdpa_reference, launch: {grid: [S], block: [1]}}", []string{
		"kernel.yaml:12:65: reference.launch: is not read in cpu mode (delete it)",
	}},
	{"reference on the device in cpu mode", goodCPU, "source: reference.c", "source: reference.cu", []string{
		`kernel.yaml:12:21: reference.source: "reference.cu" is device code, which cpu mode does not run (write e.g. reference.c or reference.py)`,
	}},
	{"reference launch fields", goodDevice, "shared_memory: 4*D}", "cluster: [2]}", []string{
		"kernel.yaml:13:35: reference.launch.cluster: unknown field (known here: block, grid, shared_memory)",
	}},
	{"reference launch axes", goodDevice, "launch: {grid: [S], block: [D]", "launch: {grid: [], block: [D, 1, 1, 1]", []string{
		"kernel.yaml:13:18: reference.launch.grid: has 0 axes (write one to three)",
		"kernel.yaml:13:29: reference.launch.block: has 4 axes (write one to three)",
	}},
	{"reference launch with a toggle", goodDevice, "launch: {grid: [S]", "launch: {grid: [TILE]", []string{
		`kernel.yaml:13:19: reference.launch.grid[0]: "TILE" in "TILE" is not known here (known: S, D, causal)`,
	}},
	{"reference launch at a shape", goodDevice, "block: [D]", "block: [9*D]", []string{
		`kernel.yaml:13:31: reference.launch.block[0]: "9*D" is 1152 at shape wide of variant stage1, S=96 D=128 causal=1 (make it 1024 or less)`,
	}},
}
