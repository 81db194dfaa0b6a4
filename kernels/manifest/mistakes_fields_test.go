package manifest

// Fields and what they have to do with each other.
var fieldMistakes = []mistake{
	{"version", goodCPU, "version: 1", "version: 2", []string{
		"kernel.yaml:1:10: version: 2 is not a version this program reads (write 1)",
	}},
	{"version missing", goodCPU, "version: 1\n", "", []string{
		"kernel.yaml:1:1: version: is required (write e.g. version: 1)",
	}},
	{"name", goodCPU, "name: sdpa\n", "name: a/b\n", []string{
		`kernel.yaml:2:7: name: "a/b" is not a name (write letters, digits, '.', '_' and '-')`,
	}},
	{"mode", goodCPU, "mode: cpu", "mode: gpu", []string{
		`kernel.yaml:3:7: mode: "gpu" is not one of cuda, cpu, command (did you mean cuda?)`,
	}},
	{"unknown field", goodCPU, "tolerance:", "tolerence:", []string{
		"kernel.yaml:1:1: tolerance: is required in cpu mode (write e.g. tolerance: {abs: 0.06})",
		"kernel.yaml:13:1: tolerence: unknown field (did you mean tolerance?)",
	}},
	{"entry", goodCPU, "entry: sdpa_fp8", "entry: 'sdpa; system'", []string{
		`kernel.yaml:4:8: entry: "sdpa; system" has ";" in it, which no name of a kernel has (write e.g. sdpa, attention<64, true>, ns::kernel or scale(float*, const float*, int))`,
	}},
	{"entry keyword", goodCPU, "entry: sdpa_fp8", "entry: int", []string{
		`kernel.yaml:4:8: entry: "int" is no name of a kernel: "int" is a keyword of C or C++ (write e.g. sdpa, attention<64, true>, ns::kernel or scale(float*, const float*, int))`,
	}},
	{"reference entry", goodCPU, "entry: sdpa_reference", "entry: sdpa_fp8", []string{
		`kernel.yaml:12:41: reference.entry: "sdpa_fp8" is the kernel's entry too (name the reference differently)`,
	}},
	{"reference missing", goodCPU, "reference: {source: reference.c, entry: sdpa_reference}\n", "", []string{
		"kernel.yaml:1:1: reference: is required in cpu mode (write e.g. reference: {source: reference.c, entry: sdpa_reference})",
	}},
	{"reference outside", goodCPU, "source: reference.c", "source: ../reference.c", []string{
		`kernel.yaml:12:21: reference.source: "../reference.c" is not a file within the kernel's folder (write e.g. sdpa.c)`,
	}},
	{"cpu with launch", goodCPU, "flags: [-O2]", "launch: {grid: [S], block: [1]}\narch: [sm_89]", []string{
		"kernel.yaml:6:9: launch: is not read in cpu mode (delete it)",
		"kernel.yaml:7:7: arch: is not read in cpu mode (delete it)",
	}},
	{"source missing", goodCPU, "source: sdpa.c\n", "", []string{
		"kernel.yaml:1:1: source: is required (write e.g. source: sdpa.c, or variants)",
	}},
	{"source empty", goodCPU, "source: sdpa.c\n", "source: ''\n", []string{
		"kernel.yaml:5:9: source: is required (write e.g. source: sdpa.c)",
	}},
	{"source not matched", goodCPU, "source: sdpa.c\n", "source: sdpa.cu\n", []string{
		`kernel.yaml:5:9: source: "sdpa.cu" is in no language that cpu mode compiles (end the name of a C file in .c, and that of a C++ file in .cc or .cpp or .cxx or .c++)`,
		`kernel.yaml:5:9: source: "sdpa.cu" matches none of sources *.c, *.cc, *.cpp, *.cxx, *.c++, *.h: no change could touch what is gated (add it there)`,
	}},
	{"source that is C++ only to some", goodCPU, "source: sdpa.c\n", "source: sdpa.C\nsources: [\"*\"]\n", []string{
		`kernel.yaml:5:9: source: "sdpa.C" is in no language that cpu mode compiles (end the name of a C file in .c, and that of a C++ file in .cc or .cpp or .cxx or .c++)`,
	}},
	{"source without a language", goodCPU, "source: sdpa.c\n", "source: sdpa\nsources: [\"*\"]\n", []string{
		`kernel.yaml:5:9: source: "sdpa" is in no language that cpu mode compiles (end the name of a C file in .c, and that of a C++ file in .cc or .cpp or .cxx or .c++)`,
	}},
	{"reference in assembler", goodCPU, "source: reference.c,", "source: reference.S,", []string{
		`kernel.yaml:12:21: reference.source: "reference.S" is in no language that cpu mode compiles (end the name of a C file in .c, and that of a C++ file in .cc or .cpp or .cxx or .c++)`,
	}},
	{"source is the reference", goodCPU, "source: sdpa.c\n", "source: reference.c\n", []string{
		`kernel.yaml:5:9: source: "reference.c" is the reference, which no change may bring (name another file)`,
	}},
	{"source absolute", goodCPU, "source: sdpa.c\n", "source: /etc/passwd\n", []string{
		`kernel.yaml:5:9: source: "/etc/passwd" is not a file within the kernel's folder (write e.g. sdpa.c)`,
	}},
	{"sources", goodCPU, "flags:", "sources: ['*.c', ../other/*.c]\nflags:", []string{
		`kernel.yaml:6:18: sources[1]: "../other/*.c" is not a glob within the kernel's folder (write e.g. *.cu or include/**)`,
	}},
	{"flag", goodCPU, "[-O2]", "[-O2, -I/usr/include]", []string{
		`kernel.yaml:6:14: flags[1]: "-I/usr/include" is not an allowed flag (allowed: -O0 to -O3, -Os, -Ofast, -march=native, -march=x86-64-v2 to -v4, -march=armv8-a, -mtune=native, -ffast-math, -fno-NAME, -funroll-loops, -ftree-vectorize, -ftree-slp-vectorize, -ffp-contract=fast|on|off, -std=NAME, -WNAME, -g, -lm, -DNAME[=VALUE])`,
	}},
	{"flag in cuda", goodCUDA, "[-O3]", "[-Xcompiler, -fopenmp]", []string{
		`kernel.yaml:6:9: flags[0]: "-Xcompiler" is not an allowed flag (allowed: -O0 to -O3, --use_fast_math, -std=NAME, -lineinfo, -maxrregcount=N, --fmad=, --ftz=, --prec-div=, --prec-sqrt=true|false, --expt-relaxed-constexpr, --expt-extended-lambda, -Xptxas=FLAG with -O0 to -O3, -v, -dlcm=, -dscm=, -warn-spills or -warn-lmem-usage, -DNAME[=VALUE])`,
		`kernel.yaml:6:21: flags[1]: "-fopenmp" is not an allowed flag (allowed: -O0 to -O3, --use_fast_math, -std=NAME, -lineinfo, -maxrregcount=N, --fmad=, --ftz=, --prec-div=, --prec-sqrt=true|false, --expt-relaxed-constexpr, --expt-extended-lambda, -Xptxas=FLAG with -O0 to -O3, -v, -dlcm=, -dscm=, -warn-spills or -warn-lmem-usage, -DNAME[=VALUE])`,
	}},
	{"flag for ptxas", goodCUDA, "[-O3]", "[-Xptxas, -o]", []string{
		`kernel.yaml:6:18: flags[1]: "-o" is not allowed behind -Xptxas (allowed: -O0 to -O3, -v, -dlcm=, -dscm=, -warn-spills or -warn-lmem-usage)`,
	}},
	{"flag for ptxas missing", goodCUDA, "[-O3]", "[-O3, -Xptxas]", []string{
		`kernel.yaml:6:14: flags[1]: "-Xptxas" is followed by nothing (write e.g. -Xptxas=-O3)`,
	}},
	{"flag defines a toggle", goodCUDA, "{source: stage1.cu}", "{source: stage1.cu, flags: [-DTILE=64]}", []string{
		`kernel.yaml:22:39: variants.stage1.flags[0]: "-DTILE=64" defines the toggle TILE (set it under the variant's toggles)`,
	}},
	{"dtype", goodCPU, "dtype: e4m3", "dtype: f8", []string{
		`kernel.yaml:8:22: arguments[0].dtype: "f8" is not one of e4m3, e5m2, f16, bf16, f32, f64, i8, u8, i32, i64, i16, u16, u32, u64, bool, int4, e2m1 (did you mean e4m3 or e5m2?)`,
	}},
	{"argument name", goodCPU, "name: o,", "name: 1o,", []string{
		`kernel.yaml:10:12: arguments[2].name: "1o" is not a C identifier (write letters, digits and _)`,
	}},
	{"argument twice", goodCPU, "name: o,", "name: q,", []string{
		`kernel.yaml:10:12: arguments[2].name: "q" is the name of an earlier argument too (choose another)`,
	}},
	{"argument is the entry", goodCPU, "name: o,", "name: sdpa_fp8,", []string{
		`kernel.yaml:10:12: arguments[2].name: "sdpa_fp8" is the kernel's entry too (choose another)`,
	}},
	{"no output", goodCPU, "access: out", "access: in", []string{
		"kernel.yaml:8:3: arguments: write nothing: none is out or inout (add access: out to the output)",
	}},
	{"array without shape", goodCPU, "access: out, shape: [B, H, S, D]", "access: out", []string{
		"kernel.yaml:10:5: arguments[2].shape: is required for an array (write e.g. shape: [B, H, S, D])",
	}},
	{"array with value", goodCPU, "access: out,", "access: out, value: 1,", []string{
		"kernel.yaml:10:47: arguments[2].value: an array has none (delete it, or write access: scalar)",
	}},
	{"output with init", goodCPU, "access: out,", "access: out, init: zero,", []string{
		"kernel.yaml:10:46: arguments[2].init: an output is poisoned before every launch (delete it, or write access: inout)",
	}},
	{"scalar without value", goodCPU, ", value: S", "", []string{
		"kernel.yaml:11:5: arguments[3].value: is required for a scalar (write e.g. value: B)",
	}},
	{"scalar with shape", goodCPU, ", value: S", ", value: S, shape: [S]", []string{
		"kernel.yaml:11:60: arguments[3].shape: a scalar has none (delete it, or write access: in)",
	}},
	{"scalar dtype", goodCPU, "dtype: i32", "dtype: e4m3", []string{
		`kernel.yaml:11:22: arguments[3].dtype: "e4m3" is no format of a scalar (write one of i8, u8, i16, u16, i32, u32, i64, u64, bool, f16, bf16, f32, f64)`,
	}},
	{"quantize dtype", goodCPU, "dtype: e4m3", "dtype: f16", []string{
		`kernel.yaml:8:22: arguments[0].dtype: "f16" is no format to quantise to (write one of e4m3, e5m2, i8, int4, e2m1)`,
	}},
	{"quantize output", goodCPU, "dtype: e4m3, access: in", "dtype: e4m3, access: inout", []string{
		"kernel.yaml:8:74: arguments[0].quantize: only an input can be quantised (delete it, or write access: in)",
	}},
	{"scale missing", goodCPU, "scale: q_scale", "scale: scales", []string{
		`kernel.yaml:8:89: arguments[0].quantize.scale: "scales" is no argument (add - {name: scales, dtype: f32, access: in, shape: [H]})`,
	}},
	{"scale empty", goodCPU, "scale: q_scale", "scale: ''", []string{
		"kernel.yaml:8:89: arguments[0].quantize.scale: is empty (write the name of the argument that receives the scales)",
	}},
	{"scale of two", goodCPU, "{name: o, dtype: f16, access: out, shape: [B, H, S, D]}", "{name: o, dtype: f16, access: out, shape: [S]}\n  - {name: k, dtype: i8, access: in, shape: [H, S], quantize: {per: [H], scale: q_scale}}", []string{
		`kernel.yaml:11:81: arguments[3].quantize.scale: "q_scale" already receives the scales of q (add an argument for those of k)`,
	}},
	{"scale dtype and access", goodCPU, "dtype: f32, access: in", "dtype: f64, access: out", []string{
		`kernel.yaml:9:28: arguments[1].dtype: "f64": q_scale receives the scales of q (write f32)`,
		`kernel.yaml:9:41: arguments[1].access: "out": q_scale receives the scales of q (write in)`,
	}},
	{"scale shape", goodCPU, "shape: [H]", "shape: [B, H]", []string{
		"kernel.yaml:9:52: arguments[1].shape: [B, H] has not one scale per group of q (write [H])",
	}},
	{"scale init", goodCPU, "access: in, shape: [H]", "access: in, init: ones, shape: [H]", []string{
		"kernel.yaml:9:5: arguments[1]: q_scale is filled with the scales of q (delete its init and quantize)",
	}},
	{"per unknown", goodCPU, "per: [H]", "per: [HEADS]", []string{
		`kernel.yaml:8:78: arguments[0].quantize.per[0]: "HEADS" is no axis of q that is a dim alone (write one of B, H, S, D)`,
	}},
	{"per out of order", goodCPU, "per: [H]", "per: [H, B]", []string{
		`kernel.yaml:8:81: arguments[0].quantize.per[1]: "B" is out of order (write the axes as in shape, each once)`,
	}},
}
