package toolchain

import (
	"errors"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

const tunedKernel = `import triton
import triton.language as tl

def hook(args):
    raise RuntimeError("called")

@triton.autotune(configs=[
    triton.Config({"BLOCK": 64}, num_warps=2),
    triton.Config({"BLOCK": 128}, num_warps=4),
    triton.Config({"BLOCK": 128}, num_warps=8, maxnreg=32, pre_hook=hook),
], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0, "BIASED": lambda args: args["bias"] is not None})
@triton.jit
def scale_kernel(x, bias, y, n, scale, BLOCK: tl.constexpr, EVEN: tl.constexpr, BIASED: tl.constexpr, ACT: tl.constexpr, OUT: tl.constexpr, FLAG: tl.constexpr, EXTRA: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.static_assert(FLAG is True or FLAG.value is True)
    tl.static_assert(EXTRA is None)
    if EVEN:
        v = tl.load(x + at)
    else:
        v = tl.load(x + at, mask=at < n, other=0.0)
    if BIASED:
        v += tl.load(bias + at, mask=at < n, other=0.0)
    if ACT == "silu":
        v = v * tl.sigmoid(v.to(tl.float32))
    tl.store(y + at, v.to(OUT) * scale, mask=at < n)
`

func tunedBuild(t *testing.T, text string, n float64, configuration map[string]manifest.Literal) TritonBuild {
	t.Helper()
	arguments := specialArguments("x:*fp32/16 bias:none y:*fp16/16 n:i32 scale:fp32")
	half := 0.5
	arguments[3].Value, arguments[4].Value = &n, &half
	for _, i := range []int{0, 2} {
		arguments[i].Shape = []int{int(n)}
	}
	if int(n)%16 == 0 {
		arguments[3].Hint = "16"
	}
	return TritonBuild{
		Dir: folder(t, map[string]string{"scale.py": text}), Source: "scale.py", Arch: "sm_90", Scratch: t.TempDir(),
		Kinds: []manifest.Special{{
			Entry: "scale_kernel", Exact: true, Warps: 4, Stages: 3, CTAs: 1, Arguments: arguments, Configuration: configuration,
			Constants: map[string]float64{},
			Literals: map[string]manifest.Literal{
				"ACT": {Kind: manifest.LiteralText, Text: "silu"}, "OUT": {Kind: manifest.LiteralDType, Text: "float16"}, "FLAG": {Kind: manifest.LiteralBool, Text: "true"}, "EXTRA": {Kind: manifest.LiteralNone},
			},
		}},
	}
}

func wants(values ...any) map[string]manifest.Literal {
	all := map[string]manifest.Literal{}
	for i := 0; i < len(values); i += 2 {
		all[values[i].(string)] = manifest.Literal{Kind: manifest.LiteralNumber, Number: float64(values[i+1].(int))}
	}
	return all
}

// The configuration that a manifest chooses is built with its parameters and options, and heuristics see the sizes.
func TestTritonTuning(t *testing.T) {
	c := cached(t, realTritons(t)[0])
	build := func(n float64, configuration map[string]manifest.Literal) *Cubin {
		return mustBuildTriton(t, c, tunedBuild(t, tunedKernel, n, configuration))[0]
	}
	narrow, wide, bounded := build(1024, wants("BLOCK", 64)), build(1024, wants("num_warps", 4)), build(1024, wants("maxnreg", 32))
	for cubin, threads := range map[*Cubin]int{narrow: 64, wide: 128, bounded: 256} {
		if cubin.Start.Block[0] != threads || len(cubin.Autotune) != 3 {
			t.Errorf("%d threads, want %d, of %q", cubin.Start.Block[0], threads, cubin.Autotune)
		}
	}
	if narrow.Chosen != "BLOCK=64, num_warps=2, num_stages=3, num_ctas=1" || !strings.Contains(bounded.Chosen, "maxnreg=32, its pre_hook is not called") {
		t.Errorf("chosen are %q and %q", narrow.Chosen, bounded.Chosen)
	}
	if ragged := build(1040, wants("BLOCK", 64)); ragged.Code == narrow.Code {
		t.Error("a size that BLOCK does not divide has the same code")
	}
	b := tunedBuild(t, tunedKernel, 1024, wants("BLOCK", 64))
	b.Kinds[0].Exact = false
	if _, err := c.Build(t.Context(), b); !errors.Is(err, ErrNeedsExact) {
		t.Errorf("without the sizes: %v", err)
	}
}

// What all configurations are is told without compiling any, and their own pruning is asked.
func TestTritonDescribe(t *testing.T) {
	c := realTritons(t)[0]
	pruning := strings.Replace(tunedKernel, `key=["n"])`, `key=["n"], prune_configs_by={"early_config_prune": lambda configs, args, **more: [c for c in configs if c.kwargs["BLOCK"] <= args["n"] and more["FLAG"] and args["x"].shape == (args["n"],)]})`, 1)
	b := tunedBuild(t, pruning, 100, nil)
	all, err := c.Describe(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	k := all["scale_kernel"]
	if len(k.Configurations) != 3 || k.Configurations[2]["maxnreg"].Number != 32 || len(k.Kept) != 1 || len(k.Kept[0]) != 1 || k.Kept[0][0] != 0 {
		t.Errorf("described as %+v", k)
	}
	for name, test := range map[string]struct{ from, to, want string }{
		"needs a GPU":        {`key=["n"])`, `key=["n"], prune_configs_by={"early_config_prune": lambda configs, args, **more: configs[:args["x"].storage()]})`, "early_config_prune of prune_configs_by fails without a GPU: RuntimeError: storage of x: a build has no arrays (it knows dtype, shape and strides) (choose a configuration under autotune)"},
		"models performance": {`key=["n"])`, `key=["n"], prune_configs_by={"perf_model": lambda **more: 1, "top_k": 1})`, "prune_configs_by has a perf_model, which a build without a GPU does not ask"},
		"a list":             {`{"BLOCK": 64}`, `{"BLOCK": [64]}`, "BLOCK of a configuration is list, which cannot be written in a manifest"},
		"another each time":  {`{"BLOCK": 64}`, `{"BLOCK": 64 if __import__("os").getpid() < 24 else 32}`, "two imports gave other configurations of @triton.autotune"},
		"too many":           {"], key", "] + [triton.Config({\"BLOCK\": 16}, num_stages=i) for i in range(64)], key", "offers 67 configurations, and up to 64 are tried"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "needs a GPU" && name != "another each time" {
				long.Test(t)
			}
			t.Parallel()
			b := tunedBuild(t, strings.Replace(tunedKernel, test.from, test.to, 1), 100, nil)
			b.Seed = farProcess()
			_, err := c.Describe(t.Context(), b)
			refusal, ok := errors.AsType[*output.CompileError](err)
			if !ok || !strings.Contains(refusal.Summary, test.want) {
				t.Errorf("%v\nwant …%s…\n%s", err, test.want, logOf(err))
			}
		})
	}
}

// farProcess returns a seed whose second build has a process number of at least 24; the first build's is below. Most seeds have
// one, so a source that looks at its number is refused in most runs, and here in each.
func farProcess() uint64 {
	seed := uint64(1)
	for Elsewhere(seed).forks < 24 {
		seed++
	}
	return seed
}

// A choice that means no configuration, or several, is told with what there is.
func TestTritonTuningMistakes(t *testing.T) {
	c := realTritons(t)[0]
	const offered = "(it offers 3: BLOCK=64, num_warps=2, num_stages=3, num_ctas=1; BLOCK=128, num_warps=4, num_stages=3, num_ctas=1; BLOCK=128, num_warps=8, num_stages=3, num_ctas=1, maxnreg=32, its pre_hook is not called)"
	for name, test := range map[string]struct {
		from, to string
		chosen   map[string]manifest.Literal
		edit     func(*TritonBuild)
		want     string
	}{
		"none is chosen":       {chosen: nil, want: "scale.py:7: scale_kernel has @triton.autotune, and the manifest chooses no configuration: write autotune: {BLOCK: 64, num_warps: 2, num_stages: 3, num_ctas: 1} or autotune: all " + offered},
		"not offered":          {chosen: wants("BLOCK", 32), want: "scale.py:7: @triton.autotune of scale_kernel offers no configuration with {BLOCK: 32} " + offered},
		"several":              {chosen: wants("BLOCK", 128), want: "scale.py:7: autotune {BLOCK: 128} means 2 configurations of scale_kernel: write num_warps too " + offered},
		"no such parameter":    {chosen: wants("BLOK", 128), want: "scale.py:7: no configuration of @triton.autotune has BLOK (they have BLOCK, maxnreg, num_ctas, num_stages, num_warps)"},
		"nothing to choose":    {from: tunedKernel[strings.Index(tunedKernel, "@triton.autotune"):strings.Index(tunedKernel, "@triton.heuristics")], to: "", chosen: wants("BLOCK", 64), want: "scale.py:7: scale_kernel has no @triton.autotune, and the manifest chooses a configuration (delete autotune, and write its values under constants, num_warps and num_stages)"},
		"a constant too":       {chosen: wants("BLOCK", 64), edit: func(b *TritonBuild) { b.Kinds[0].Constants["BLOCK"] = 64 }, want: "scale.py:7: BLOCK is under constants, and the configurations of @triton.autotune have it too (delete it there)"},
		"an unknown constant":  {chosen: wants("BLOCK", 64), edit: func(b *TritonBuild) { b.Kinds[0].Constants["WIDTH"] = 64 }, want: "scale.py:7: scale_kernel has no parameter WIDTH (its parameters are x, bias, y, n, scale, BLOCK"},
		"a heuristic's fault":  {from: `args["n"] % args["BLOCK"]`, to: `args["m"] % args["BLOCK"]`, chosen: wants("BLOCK", 64), want: "scale.py:7: the function of @triton.heuristics for EVEN fails at n=1024, scale=0.5: KeyError: 'm' (a build knows the arguments by name"},
		"a heuristic's data":   {from: `args["bias"] is not None`, to: `args["x"].sum() > 0`, chosen: wants("BLOCK", 64), want: "the function of @triton.heuristics for BIASED fails at n=1024, scale=0.5: RuntimeError: sum of x: a build has no arrays"},
		"the process's number": {from: `args["bias"] is not None`, to: `args["n"] < 0 if __import__("os").getpid() < 24 else args["n"] > 0`, chosen: wants("BLOCK", 64), edit: func(b *TritonBuild) { b.Kinds[0].Arguments[1] = specialArguments("bias:*fp32/16")[0] }, want: "the machine code depends on where it is compiled"},
		"another each import":  {from: `triton.Config({"BLOCK": 64}, num_warps=2)`, to: `triton.Config({"BLOCK": 64}, num_warps=2 if __import__("os").getpid() < 24 else 4)`, chosen: wants("BLOCK", 64), want: "the machine code depends on where it is compiled"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "none is chosen" && name != "a heuristic's fault" && name != "the process's number" {
				long.Test(t)
			}
			t.Parallel()
			b := tunedBuild(t, strings.Replace(tunedKernel, test.from, test.to, 1), 1024, test.chosen)
			b.Seed = farProcess()
			if test.edit != nil {
				test.edit(&b)
			}
			mustRefuseTriton(t, c, b, test.want)
		})
	}
}

// A library may wrap a kernel once more, under a name of its own. A bool is a scalar like any other.
func TestTritonWrapped(t *testing.T) {
	c := cached(t, realTritons(t)[0])
	text := strings.Replace(tunedKernel, "@triton.autotune(", `class LibEntry:
    def __init__(self, fn):
        self.jit_function = fn

    def __getitem__(self, grid):
        raise RuntimeError("launched")

@LibEntry
@triton.autotune(`, 1)
	text = strings.Replace(text, "n, scale, BLOCK", "n, scale, flag, BLOCK", 1)
	text = strings.Replace(text, "    if ACT ==", "    if flag:\n        v += 1\n    if ACT ==", 1)
	b := tunedBuild(t, text, 1024, wants("BLOCK", 64))
	b.Kinds[0].Arguments = append(b.Kinds[0].Arguments, specialArguments("flag:u1")...)
	if cubin := mustBuildTriton(t, c, b)[0]; cubin.Start.Block[0] != 64 {
		t.Errorf("%d threads", cubin.Start.Block[0])
	}
}
