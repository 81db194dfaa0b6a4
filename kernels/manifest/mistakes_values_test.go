package manifest

// Shapes, ranges, expressions and what they amount to.
var valueMistakes = []mistake{
	{"shapes missing", goodCommand, "shapes: {small: {N: 1024}}\n", "", []string{
		"kernel.yaml:1:1: shapes: is required (write e.g. shapes: {mission: {B: 1, H: 8, S: 512, D: 64}})",
	}},
	{"shapes a list", goodCommand, "{small: {N: 1024}}", "[small]", []string{
		"kernel.yaml:5:9: shapes: is not a mapping (write e.g. mission: {B: 1, H: 8, S: 512, D: 64})",
	}},
	{"shapes empty", goodCommand, "{small: {N: 1024}}", "{}", []string{
		"kernel.yaml:5:9: shapes: is empty (write e.g. mission: {B: 1, H: 8, S: 512, D: 64})",
	}},
	{"shape of other dims", goodCPU, "mission: {B: 1, H: 2, S: 96, D: 64}", "mission: {B: 1, T: 2, S: 96, D: 64}", []string{
		"kernel.yaml:16:12: shapes.mission: has no H, which shape small has (write e.g. H: 1)",
		"kernel.yaml:16:22: shapes.mission.T: is no dim of shape small (all shapes have the same dims: B, H, S, D)",
	}},
	{"shape twice", goodCPU, "mission:", "small:", []string{
		"kernel.yaml:16:3: shapes.small: is set twice (delete one)",
	}},
	{"shape called all", goodCPU, "mission:", "all:", []string{
		`kernel.yaml:16:3: shapes.all: "all" has a special meaning in policies and reports (choose a different name)`,
	}},
	{"shape called secret", goodCPU, "mission:", "secret3:", []string{
		`kernel.yaml:16:3: shapes.secret3: "secret3" has a special meaning in policies and reports (choose a different name)`,
	}},
	{"shape negative", goodCPU, "S: 96", "S: -1", []string{
		`kernel.yaml:16:28: shapes.mission.S: "-1" is not a size (write a whole number from 0 to 2147483647)`,
	}},
	{"shape zero", goodCPU, "H: 2", "H: 0", []string{
		`kernel.yaml:8:51: arguments[0].shape[1]: "H" is 0 at shape mission, B=1 H=0 S=96 D=64 (make it 1 or more)`,
		`kernel.yaml:9:53: arguments[1].shape[0]: "H" is 0 at shape mission, B=1 H=0 S=96 D=64 (make it 1 or more)`,
		`kernel.yaml:10:51: arguments[2].shape[1]: "H" is 0 at shape mission, B=1 H=0 S=96 D=64 (make it 1 or more)`,
	}},
	{"secret zero", goodCUDA, "toggles:", "secret: {S: 0..9}\ntoggles:", []string{
		`kernel.yaml:8:47: arguments[0].shape[0]: "S" is 0 at a secret shape, S=0 D=64 (make it 1 or more)`,
		`kernel.yaml:9:48: arguments[1].shape[0]: "S" is 0 at a secret shape, S=0 D=64 (make it 1 or more)`,
		`kernel.yaml:11:10: launch.grid[0]: "ceildiv(S, TILE)" is 0 at a secret shape, S=0 D=64 (make it 1 or more)`,
	}},
	{"shape beyond limits", goodCPU, "S: 96", "S: 5000", []string{
		"kernel.yaml:16:28: shapes.mission.S: 5000 is outside limits.S 1..4096 (change one of them)",
	}},
	{"dim is a function", goodCommand, "N: 1024", "max: 1024", []string{
		`kernel.yaml:5:18: shapes.small.max: "max" means something else in expressions (choose another name)`,
	}},
	{"infinities of an output", goodCPU, "access: out, shape: [B, H, S, D]", "access: out, shape: [B, H, S, D], infinities: true", []string{
		"kernel.yaml:10:73: arguments[2].infinities: an output is not drawn (delete it, or write access: inout)",
	}},
	{"infinities quantised", goodCPU, "scale: q_scale}", "scale: q_scale}, infinities: true", []string{
		"kernel.yaml:8:111: arguments[0].infinities: a quantised array has none: its scale would be infinite (delete it)",
	}},
	{"infinities of integers", goodCUDA, "dtype: f16, access: in", "dtype: i32, access: in, init: any, infinities: true", []string{
		"kernel.yaml:8:62: arguments[0].infinities: i32 keeps no infinities (delete it, or write one of f16, bf16, f32, f64)",
	}},
	{"infinities that the problem does not allow", goodCUDA, "access: in", "access: in, init: infinite", []string{
		"kernel.yaml:8:45: arguments[0].init: infinite draws ±Inf, which the problem must allow (add infinities: true)",
	}},
	{"limits unknown", goodCPU, "limits: {S: 1..4096", "limits: {T: 1..4096", []string{
		"kernel.yaml:17:10: limits.T: is no dim of the shapes (write one of B, H, S, D)",
	}},
	{"limits wrong", goodCPU, "1..4096", "4096..1", []string{
		`kernel.yaml:17:13: limits.S: "4096..1" is not a range of sizes: they run upwards from 0 to 2147483647 (write e.g. 1..4096, 64|128 or 2..4096 step 2)`,
	}},
	{"limits no range", goodCPU, "1..4096", "1-4096", []string{
		`kernel.yaml:17:13: limits.S: "1-4096" is not a range (write e.g. 1..4096, 64|128 or 2..4096 step 2)`,
	}},
	{"secret beyond limits", goodCPU, "secret: {S: 1..160}", "secret: {S: 1..5000, D: 64|96}", []string{
		"kernel.yaml:18:13: secret.S: 1..5000 is not within limits.S 1..4096 (narrow it)",
		"kernel.yaml:18:25: secret.D: 64|96 is not within limits.D 64|128 (narrow it)",
	}},
	{"expression unknown name", goodCPU, "4*B*H*S*S*D", "4*B*T", []string{
		`kernel.yaml:19:15: work.flops: "T" in "4*B*T" is not known here (known: B, H, S, D)`,
	}},
	{"expression toggle in work", goodCUDA, "toggles:", "work: {flops: TILE, bytes: S, peak: fp8}\ntoggles:", []string{
		`kernel.yaml:19:15: work.flops: "TILE" in "TILE" is not known here (known: S, D)`,
	}},
	{"expression broken", goodCPU, "4*B*H*S*S*D", "4*B*(H", []string{
		`kernel.yaml:19:15: work.flops: "4*B*(H" is not arithmetic: unexpected end (write e.g. ceildiv(S, 64); functions: ceildiv, roundup, pow2ceil, min, max, ceil, floor, sqrt, log2, pow)`,
	}},
	{"expression string", goodCPU, "4*B*H*S*S*D", "'\"a\"'", []string{
		`kernel.yaml:19:15: work.flops: "\"a\"" is not arithmetic (write e.g. ceildiv(S, 64); functions: ceildiv, roundup, pow2ceil, min, max, ceil, floor, sqrt, log2, pow)`,
	}},
	{"expression function", goodCPU, "4*B*H*S*S*D", "len(B)", []string{
		`kernel.yaml:19:15: work.flops: "len(B)" is not arithmetic: it has no function len (write e.g. ceildiv(S, 64); functions: ceildiv, roundup, pow2ceil, min, max, ceil, floor, sqrt, log2, pow)`,
	}},
	{"expression arguments", goodCPU, "4*B*H*S*S*D", "ceildiv(B)", []string{
		`kernel.yaml:19:15: work.flops: "ceildiv(B)" is not arithmetic: not enough arguments to call ceildiv (write e.g. ceildiv(S, 64); functions: ceildiv, roundup, pow2ceil, min, max, ceil, floor, sqrt, log2, pow)`,
	}},
	{"expression power", goodCPU, "4*B*H*S*S*D", "S ^ 2", []string{
		`kernel.yaml:19:15: work.flops: "S ^ 2" is not arithmetic (write e.g. ceildiv(S, 64); functions: ceildiv, roundup, pow2ceil, min, max, ceil, floor, sqrt, log2, pow)`,
	}},
	{"expression condition", goodCPU, "4*B*H*S*S*D", "S > 2", []string{
		`kernel.yaml:19:15: work.flops: "S > 2" is not arithmetic: expected a number, but got a condition (write e.g. ceildiv(S, 64); functions: ceildiv, roundup, pow2ceil, min, max, ceil, floor, sqrt, log2, pow)`,
	}},
	{"expression not whole", goodCPU, "access: out, shape: [B, H, S, D]", "access: out, shape: [B, H, S/64, D]", []string{
		`kernel.yaml:10:54: arguments[2].shape[2]: "S/64" is not a whole number but 0.5 at shape small, B=1 H=1 S=32 D=64 (use ceildiv, ceil or floor)`,
	}},
	{"expression not whole in secret", goodCPU, "access: out, shape: [B, H, S, D]", "access: out, shape: [B, H, S/32, D]", []string{
		`kernel.yaml:10:54: arguments[2].shape[2]: "S/32" is not a whole number but 0.03125 at a secret shape, B=1 H=1 S=1 D=64 (use ceildiv, ceil or floor)`,
	}},
	{"expression by zero", goodCPU, "value: S", "value: D/(S-96)", []string{
		`kernel.yaml:11:50: arguments[3].value: "D/(S-96)" divides by zero at shape mission, B=1 H=2 S=96 D=64 (use max(1, …) where a divisor can be 0)`,
	}},
	{"expression root", goodCPU, "value: S", "value: sqrt(32-S)", []string{
		`kernel.yaml:11:50: arguments[3].value: "sqrt(32-S)" takes the root of a negative number at shape mission, B=1 H=2 S=96 D=64 (use max(0, …))`,
	}},
	{"expression negative", goodCPU, "bytes: 5*B*H*S*D", "bytes: S-33", []string{
		`kernel.yaml:19:35: work.bytes: "S-33" is -1 at shape small, B=1 H=1 S=32 D=64 (make it 0 or more)`,
	}},
	{"expression too large", goodCPU, "4*B*H*S*S*D", "S*S*S*S*S*S*S*S*S*S", []string{
		`kernel.yaml:19:15: work.flops: "S*S*S*S*S*S*S*S*S*S" is 6.6483263599150105e+19 at shape mission, B=1 H=2 S=96 D=64 (keep it within ±2^53)`,
	}},
	{"scalar too large", goodCPU, "value: S", "value: S*1000000000", []string{
		`kernel.yaml:11:50: arguments[3].value: "S*1000000000" is 32000000000 at shape small, B=1 H=1 S=32 D=64 (make it 2147483647 or less)`,
	}},
	{"array too large", goodCPU, "access: out, shape: [B, H, S, D]", "access: out, shape: [S*S*S, S*S*S]", []string{
		"kernel.yaml:10:47: arguments[2].shape: has more than 2^31 elements at shape mission, B=1 H=2 S=96 D=64 (make the array smaller)",
	}},
	{"arch", goodCUDA, "sm_89", "sm_70", []string{
		`kernel.yaml:5:8: arch[0]: "sm_70" is not an architecture (write sm_75 to sm_121, e.g. sm_89)`,
	}},
	{"arch suffix", goodCUDA, "sm_89", "sm_89a", []string{
		`kernel.yaml:5:8: arch[0]: "sm_89a" does not exist: a begins with sm_90, f with sm_100 (write sm_89)`,
	}},
	{"arch twice", goodCUDA, "sm_89", "sm_90", []string{
		`kernel.yaml:5:15: arch[1]: "sm_90" is named twice (delete one)`,
	}},
	{"cluster before sm_90", goodCUDA, "block: [128]", "block: [128]\n  cluster: [2]", []string{
		`kernel.yaml:5:8: arch[0]: "sm_89" has no clusters, which launch.cluster asks for (write sm_90 or later, or delete the cluster)`,
	}},
	{"launch missing", goodCUDA, "launch:\n  grid: [\"ceildiv(S, TILE)\"]\n  block: [128]\n  shared_memory: 4*TILE*D\n", "", []string{
		`kernel.yaml:1:1: launch: is required in cuda mode (write e.g. launch: {grid: ["ceildiv(S, 64)"], block: [128]})`,
	}},
	{"grid axes", goodCUDA, "[\"ceildiv(S, TILE)\"]", "[1, 1, 1, 1]", []string{
		"kernel.yaml:11:9: launch.grid: has 4 axes (write one to three)",
	}},
	{"grid y", goodCUDA, "[\"ceildiv(S, TILE)\"]", "[1, 65536]", []string{
		`kernel.yaml:11:13: launch.grid[1]: "65536" is 65536 at shape small, S=32 D=64 (make it 65535 or less)`,
	}},
	{"grid zero", goodCUDA, "[\"ceildiv(S, TILE)\"]", "[floor(S/TILE)]", []string{
		`kernel.yaml:11:10: launch.grid[0]: "floor(S/TILE)" is 0 at shape small, S=32 D=64 (make it 1 or more)`,
	}},
	{"block threads", goodCUDA, "[128]", "[S, 16]", []string{
		`kernel.yaml:12:14: launch.block[1]: "16" makes a block of 1536 threads at shape mission, S=96 D=64 (make it 1024 or fewer)`,
	}},
	{"shared memory", goodCUDA, "4*TILE*D", "100*TILE*D", []string{
		`kernel.yaml:13:18: launch.shared_memory: "100*TILE*D" is 409600 at shape small, S=32 D=64 (make it 232448 or less)`,
	}},
}
