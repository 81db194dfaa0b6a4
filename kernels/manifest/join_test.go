package manifest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/strict"
)

func joined(t testing.TB, problem, implementation string) *Manifest {
	t.Helper()
	m, err := Join("kernel.yaml", []byte(problem), []byte(implementation))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// edited is a text with some of it replaced.
func edited(t testing.TB, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		was := text
		if text = strings.Replace(text, pairs[i], pairs[i+1], 1); text == was {
			t.Fatalf("%q is not in the manifest", pairs[i])
		}
	}
	return text
}

// Every field of a manifest belongs to one of the halves, and to the one that was agreed.
func TestHalves(t *testing.T) {
	halves := map[string][]string{}
	for _, f := range strict.Fields(reflect.TypeFor[Manifest]()) {
		halves[f.Half] = append(halves[f.Half], f.Name)
	}
	same(t, "problem", halves[strict.HalfProblem], strings.Fields("version name description mode arguments shapes limits secret reference tolerance threads work recorded weights rivals command"))
	same(t, "implementation", halves[strict.HalfImplementation], strings.Fields("root source sources include include_first skip_init stubs compiler build entry arch flags launch scratch variants default_variant choose toggles constants autotune num_warps num_stages num_ctas"))
	same(t, "neither", len(halves[""]), 0)
}

// edits of a manifest in either half, of which any number may be made together. Some
// make it a wrong one.
var edits = [][2]string{
	{"name: sdpa\n", "name: other\n"}, {"name: sdpa\n", "name: sdpa\ndescription: d\n"}, {"mode: cuda", "mode: cpu"},
	{"dtype: f16, access: out", "dtype: f32, access: out"}, {"shape: [S, D]}\n  - {name: y", "shape: [S, 2*D]}\n  - {name: y"},
	{"name: x, dtype: f16, access: in", "name: z, dtype: f16, access: in"},
	{"entry: sdpa_reference", "entry: easy"}, {"source: reference.c", "source: stage3.c"}, {"abs: 0.06", "abs: 0.5"}, {"abs: 0.06", "rel: 9"},
	{"mission: {S: 96, D: 64}", "mission: {S: 9, D: 64}"}, {"  small: {S: 32, D: 64}\n", ""}, {"toggles:", "limits: {S: 1..96}\ntoggles:"},
	{"toggles:", "secret: {S: 1..64}\ntoggles:"}, {"toggles:", "work: {flops: S, bytes: D, peak: fp32}\ntoggles:"}, {"toggles:", "rivals: [{name: r, command: [r]}]\ntoggles:"},
	{"entry: sdpa_fp8", "entry: sdpa2"}, {"arch: [sm_89, sm_90]", "arch: [sm_90]"}, {"flags: [-O3]", "flags: [-O2, -DX=1]"}, {"block: [128]", "block: [256]"},
	{"grid: [\"ceildiv(S, TILE)\"]", "grid: [S, D]"}, {"  shared_memory: 4*TILE*D\n", ""}, {"default_variant: stage2", "default_variant: stage1"},
	{"default_variant: stage2", "choose: [{when: S > 50, variant: stage1}, {variant: stage2}]"}, {"default_variant: stage2", "choose: [{when: S > 999, variant: stage1}, {variant: stage2}]"},
	{"  stage1: {source: stage1.cu}\n", "  stage1: {source: stage1.cu}\n  stage3: {source: stage3.cu, limits: {S: 32}}\n"},
	{"source: stage2.cu", "source: new.cu, launch: {grid: [S], block: [64]}"}, {"default: 64", "default: 32"}, {"TILE: 32", "TILE: 1024"},
	{"launch:\n  grid: [\"ceildiv(S, TILE)\"]\n  block: [128]\n  shared_memory: 4*TILE*D\n", "scratch: [{name: part, dtype: f32, shape: [S, TILE]}]\nlaunch:\n  steps:\n" +
		"    - {entry: one, grid: [S], block: [32], args: [x, part]}\n    - {memset: y}\n    - {entry: two, cooperative: true, grid: [\"ceildiv(S, TILE)\"], block: [64], args: [part, y]}\n"},
	{"  block: [128]\n", "  block: [64]\n  args: [y, x]\n"},
	{"toggles:", "sources: [\"*.cu\", \"**\"]\ntoggles:"}, {"shape: [S, D]}\n", "shape: [S, D], tensor_map: {box: [8, 64]}}\n"},
}

// halfOf is one half of a manifest as text.
func halfOf(m *Manifest, half string) string {
	var b strings.Builder
	v := reflect.ValueOf(m).Elem()
	for i := range v.NumField() {
		if tag := v.Type().Field(i).Tag; tag.Get("half") == half {
			fmt.Fprintf(&b, "%s: %s\n", tag.Get("yaml"), written(v.Field(i).Interface()))
		}
	}
	return b.String()
}

// Whatever the head writes, no field of the problem is the head's, and whatever the base
// has, no field of the implementation is the base's.
func TestJoinTakesEachHalfFromItsFile(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 1))
	draw := func() string {
		text := goodCUDA
		for range rng.IntN(5) {
			e := edits[rng.IntN(len(edits))]
			text = strings.Replace(text, e[0], e[1], 1)
		}
		return text
	}
	joins := 0
	for range 120 {
		base, head := draw(), draw()
		problem, errBase := Parse("kernel.yaml", []byte(base))
		implementation, errHead := Parse("kernel.yaml", []byte(head))
		m, err := Join("kernel.yaml", []byte(base), []byte(head))
		if errBase != nil || errHead != nil || err != nil {
			var told strict.Problems
			if errBase == nil && err != nil && (!errors.As(err, &told) || told[0].Line == 0) {
				t.Fatalf("%v\n%s\n%s", err, base, head)
			}
			continue
		}
		joins++
		if got, want := halfOf(m, strict.HalfProblem), halfOf(problem, strict.HalfProblem); got != want {
			t.Fatalf("the problem is\n%s and the base's\n%s\n%s\n%s", got, want, base, head)
		}
		if got, want := halfOf(m, strict.HalfImplementation), halfOf(implementation, strict.HalfImplementation); got != want {
			t.Fatalf("the implementation is\n%s and the head's\n%s\n%s\n%s", got, want, base, head)
		}
		if got := Compare(problem, m); len(got) > 0 {
			t.Fatalf("a joined manifest differs from its base: %v\n%s\n%s", got, base, head)
		}
	}
	if joins < 12 {
		t.Errorf("only %d of the pairs could be joined", joins)
	}
}

// A file joined with itself is the file.
func TestJoinWithItself(t *testing.T) {
	for name, text := range map[string]string{"cpu": goodCPU, "cuda": goodCUDA, "device": goodDevice, "command": goodCommand} {
		m, own := joined(t, text, text), parsed(t, text)
		for _, half := range []string{strict.HalfProblem, strict.HalfImplementation} {
			same(t, name+"'s "+half, halfOf(m, half), halfOf(own, half))
		}
		same(t, name+"'s tensor maps", m.Call(m.DefaultVariant), own.Call(own.DefaultVariant))
	}
}

// The sources of a command's kernel say what the harness is: they are no author's.
func TestJoinKeepsTheHarness(t *testing.T) {
	base := edited(t, goodCommand, "mode: command\n", "mode: command\nsources: [kernel.cu]\n")
	m := joined(t, base, edited(t, goodCommand, "mode: command\n", "mode: command\nsources: [\"**\"]\nvariants: {fast: {}}\n"))
	same(t, "sources", m.Sources, []string{"kernel.cu"})
	same(t, "variants", m.VariantNames(), []string{"fast"})
	m = joined(t, goodCommand, base)
	same(t, "sources of a base that names none", m.Sources, []string{"**"})
}

// Globs that swallow everything bring neither the reference nor the manifest.
func TestJoinedSourcesLeaveTheReference(t *testing.T) {
	m := joined(t, goodCPU, edited(t, goodCPU, "source: sdpa.c\n", "source: sdpa.c\nsources: [\"**\"]\n", "source: reference.c", "source: other.c"))
	for name, want := range map[string]bool{"reference.c": false, "REFERENCE.C": false, "kernel.yaml": false, "sub/kernel.yaml": false, "other.kernel.yaml": false, ".repository/common/x.h": false, "other.c": true, "new.c": true} {
		same(t, name, m.IsSource(name), want)
	}
}

// A toggle that bounds an input is the problem's: a head's other default would make the problem another.
func TestJoinKeepsTheInputs(t *testing.T) {
	base := edited(t, gather, "init: 0..V-1", "init: 0..V/EASY-1", "source: gather.c", "source: gather.c\ntoggles: {EASY: {values: [1, 10], default: 1, layer: micro}}")
	_, err := Join("kernel.yaml", []byte(base), []byte(edited(t, base, "default: 1", "default: 10")))
	if err == nil || !strings.Contains(err.Error(), "toggles.EASY.default: 10 changes the argument index, which is of the problem: it is 1 in the base") {
		t.Errorf("error %v", err)
	}
	joined := joined(t, base, edited(t, base, "init: 0..V/EASY-1", "init: 0..0"))
	same(t, "the head's own bounds", written(joined.Arguments[1].Init), "{draw: uniform, range: 0..V/EASY-1}")
}

// Where the halves do not fit, the message names a line of the head's file.
func TestJoinRefuses(t *testing.T) {
	const head = "# the head's\n# own\n"
	for name, c := range map[string]struct{ base, head, want string }{
		"limits beyond the problem's": {
			edited(t, goodCUDA, "toggles:", "limits: {S: 1..96}\ntoggles:"),
			head + edited(t, goodCUDA, "source: stage2.cu", "source: stage2.cu, limits: {S: 1..1000}"),
			"kernel.yaml:25:43: variants.stage2.limits.S: 1..1000 is not within limits.S 1..96 (narrow it)",
		},
		"a launch that the base's shapes do not take": {
			edited(t, goodCUDA, "mission: {S: 96", "mission: {S: 4096"),
			head + edited(t, goodCUDA, "block: [128]", "block: [S*8]"),
			`kernel.yaml:14:11: launch.block[0]: "S*8" is 32768 at shape mission, S=4096 D=64 (make it 1024 or less)`,
		},
		"a dim that the base does not have": {
			goodCUDA, head + strings.ReplaceAll(edited(t, goodCUDA, "block: [128]", "block: [N]"), "D: 64}", "D: 64, N: 32}"),
			`kernel.yaml:14:11: launch.block[0]: "N" in "N" is not known here (known: S, D, TILE, SMS)`,
		},
		"a toggle that says how large an output is": {
			edited(t, goodCUDA, "access: out, shape: [S, D]", "access: out, shape: [S, D*TILE]"),
			head + edited(t, goodCUDA, "TILE: 32}", "TILE: 64}"),
			"kernel.yaml:25:47: variants.stage2.toggles.TILE: 64 changes the argument y, which is of the problem: it is 32 in the base (keep that, or have the base changed first)",
		},
		"a lane of a vector": {
			edited(t, goodCUDA, "arguments:\n", "arguments:\n  - {name: lanes, dtype: u32, access: scalar, vector: [S, TILE]}\n"),
			head + edited(t, goodCUDA, ", toggles: {TILE: 32}", ""),
			"kernel.yaml:22:43: toggles.TILE.default: 64 changes the argument lanes, which is of the problem: it is 32 in the base (keep that, or have the base changed first)",
		},
		"and its default": {
			edited(t, goodCUDA, "access: out, shape: [S, D]", "access: out, shape: [S, D*TILE]"),
			head + edited(t, goodCUDA, ", toggles: {TILE: 32}", ""),
			"kernel.yaml:22:43: toggles.TILE.default: 64 changes the argument y, which is of the problem: it is 32 in the base (keep that, or have the base changed first)",
		},
		"another mode's fields": {
			goodCPU, head + goodCUDA, "kernel.yaml:7:7: arch: is not read in cpu mode (delete it)",
		},
	} {
		_, err := Join("kernel.yaml", []byte(c.base), []byte(c.head))
		var told strict.Problems
		if !errors.As(err, &told) || !slices.ContainsFunc(told, func(p strict.Problem) bool { return p.String() == c.want }) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// Equal machine code that is started otherwise is something else; however the same launch
// is written, in numbers it is the same.
func TestCallAndLaunches(t *testing.T) {
	base := parsed(t, goodCUDA)
	for name, c := range map[string]struct {
		pairs          []string
		call, launches bool // whether they are the same
	}{
		"a comment":                       {[]string{"name: sdpa\n", "name: sdpa # so\n"}, true, true},
		"a lesson":                        {[]string{"TILE: 32}", "TILE: 32}, lesson: it pays"}, true, true},
		"flags":                           {[]string{"-O3", "-O2"}, true, true},
		"a toggle that no launch names":   {[]string{"toggles:\n", "toggles:\n  OTHER: {values: [1], default: 1, layer: micro}\n"}, true, true},
		"the same block otherwise":        {[]string{"[128]", "[64*2]"}, false, true},
		"another block":                   {[]string{"[128]", "[256]"}, false, false},
		"another block at a shape":        {[]string{"[128]", "[\"S == 96 ? 64 : 128\"]"}, false, false},
		"another block at no known shape": {[]string{"[128]", "[\"S == 97 ? 64 : 128\"]"}, false, true},
		"a toggle that the launch names":  {[]string{"TILE: 32}", "TILE: 64}"}, false, false},
		"another entry":                   {[]string{"entry: sdpa_fp8", "entry: sdpa_other"}, false, false},
		"a variant's own launch":          {[]string{"source: stage2.cu", "source: stage2.cu, launch: {grid: [S], block: [128]}"}, false, false},
	} {
		m := parsed(t, edited(t, goodCUDA, c.pairs...))
		same(t, name+": the same call", m.Call("stage2") == base.Call("stage2"), c.call)
		same(t, name+": the same launches", m.Launches("stage2") == base.Launches("stage2"), c.launches)
	}
}

func TestSheds(t *testing.T) {
	base := edited(t, goodCUDA, "toggles:", "secret: {S: 1..64}\ntoggles:")
	for name, c := range map[string]struct {
		limits string
		shapes []string
		secret bool
	}{
		"no limits":              {", description: d", nil, false},
		"wide ones":              {", limits: {S: 1..4096}", nil, false},
		"one shape":              {", limits: {S: 1..64}", []string{"mission"}, false},
		"secret sizes alone":     {", limits: {S: 32|64|96}", nil, true},
		"even ones":              {", limits: {S: 2..96 step 2}", nil, true},
		"another dim":            {", limits: {D: 64}", nil, false},
		"one shape and a secret": {", limits: {S: 1..32}", []string{"mission"}, true},
	} {
		m := joined(t, base, edited(t, base, "TILE: 32}", "TILE: 32}"+c.limits))
		shapes, secret := Sheds(parsed(t, base), m)
		same(t, name+": shapes", shapes, c.shapes)
		same(t, name+": secret", secret, c.secret)
	}
	// What the base's own default does not take is not shed.
	narrow := edited(t, base, "TILE: 32}", "TILE: 32}, limits: {S: 1..32}")
	shapes, secret := Sheds(parsed(t, narrow), joined(t, narrow, narrow))
	same(t, "as the base", fmt.Sprint(shapes, secret), "[] false")
}

// Whatever two files hold, they are joined or refused, and no head changes the problem.
func FuzzJoin(f *testing.F) {
	for _, text := range []string{goodCPU, goodCUDA, goodDevice, goodCommand, "]", "a: &a [*a]\n", "version: 1\narguments: &x [{name: y, tensor_map: *x}]\n"} {
		f.Add(goodCUDA, text)
		f.Add(text, goodCPU)
	}
	f.Fuzz(func(t *testing.T, problem, implementation string) {
		m, err := Join("kernel.yaml", []byte(problem), []byte(implementation))
		if err != nil {
			return
		}
		if list := Compare(parsed(t, problem), m); len(list) > 0 {
			t.Errorf("the problem is another: %v", list)
		}
	})
}
