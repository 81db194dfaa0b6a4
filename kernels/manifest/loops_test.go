package manifest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// goodLoop is a transform of log2(N) passes: one kernel that swaps halves, in two buffers.
const goodLoop = `version: 1
name: walsh
mode: cuda
arch: [sm_89, sm_90]
source: walsh.cu
entry: pass
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: n, dtype: i32, access: scalar, value: N}
launch:
  steps:
    - {copy: x, to: y}
    - {repeat: {name: s, count: log2(N)}, grid: ["ceildiv(N, 2*WIDE)"], block: [WIDE], scalars: [{name: half, dtype: i32, value: 2**s}], args: [y, half, n]}
reference: {source: reference.cu, entry: walsh_reference, launch: {grid: [1], block: [32]}}
tolerance: {abs: 0.06}
shapes:
  small: {N: 8}
  mission: {N: 1048576}
toggles:
  WIDE: {values: [64, 128], default: 128, layer: micro}
`

const loopStep = `{repeat: {name: s, count: log2(N)}, grid: ["ceildiv(N, 2*WIDE)"], block: [WIDE], scalars: [{name: half, dtype: i32, value: 2**s}], args: [y, half, n]}`

// inWords is what a launch does, one word for each step.
func inWords(t *testing.T, m *Manifest, shape string) string {
	t.Helper()
	at, _ := m.Shape(shape)
	steps, err := m.Steps("default", at.Dims, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, s := range steps {
		word := s.Entry
		if !s.Kernel() {
			word = s.Memset + s.Copy
		}
		for _, own := range s.Scalars {
			word += fmt.Sprintf(":%s=%v", own.Name, own.Value)
		}
		if s.Programmatic {
			word += ":early"
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

// The number of launches follows the problem's size, and every round has its own value of the counter.
func TestLoops(t *testing.T) {
	m := parsed(t, goodLoop)
	same(t, "small", inWords(t, m, "small"), "x pass:half=1 pass:half=2 pass:half=4")
	at, _ := m.Shape("mission")
	steps, err := m.Steps("default", at.Dims, nil)
	same(t, "error", err, nil)
	same(t, "launches", len(steps), 21)
	same(t, "last", steps[20].Scalars, []ScalarAt{{"half", I32, 1 << 19}})
	kernels := m.Kernels("default")
	same(t, "kernels", len(kernels), 1)
	var parameters []string
	for _, p := range m.Parameters(kernels[0].Args, kernels[0].Scalars...) {
		parameters = append(parameters, fmt.Sprintf("%s %s %d+%d", p.Name, p.Type, p.Offset, p.Size))
	}
	same(t, "parameters", parameters, []string{"y pointer to f32 0+8", "half i32 8+4", "n i32 12+4"})
}

// Several steps make a round, grids follow the counter, and a first kernel never overlaps the launch before it.
func TestLoopsOfSeveralSteps(t *testing.T) {
	two := `{repeat: {name: s, from: 1, count: log2(N) - 1, steps: 2}, programmatic: true, entry: down, grid: [N/2**s], block: [32], args: [x, y]}
    - {entry: up, grid: [2**s], block: [32], args: [y]}`
	text := edited(t, goodLoop, loopStep, two, "    - {copy: x, to: y}\n", "", "[sm_89, sm_90]", "[sm_90]")
	m := parsed(t, text)
	same(t, "steps", inWords(t, m, "small"), "down up down:early up")
	at, _ := m.Shape("small")
	steps, _ := m.Steps("default", at.Dims, nil)
	var grids []int
	for _, s := range steps {
		grids = append(grids, s.Grid[0])
	}
	same(t, "grids", grids, []int{4, 2, 2, 4})
	// A loop of no rounds leaves no kernel behind that the next could overlap.
	after := edited(t, text, "count: log2(N) - 1", "count: log2(N) - 3",
		"    - {entry: up,", "    - {repeat: {name: k, count: 2}, programmatic: true, entry: last, grid: [1], block: [32], args: [y]}\n    - {entry: up,",
		", steps: 2}", "}", "grid: [2**s]", "grid: [1]")
	same(t, "none before", inWords(t, parsed(t, after), "small"), "last last:early up")
}

// How often a loop runs belongs to the implementation: the head decides it, and another count is another launch.
func TestLoopsAreOfTheImplementation(t *testing.T) {
	base := parsed(t, goodLoop)
	for name, c := range map[string]struct {
		edit          []string
		words, number bool
	}{
		"a round less":    {[]string{"count: log2(N)", "count: log2(N) - 1"}, true, true},
		"another start":   {[]string{"name: s, count", "name: s, from: 1, count"}, true, true},
		"another scalar":  {[]string{"value: 2**s", "value: 2**s + 1"}, true, true},
		"another format":  {[]string{"half, dtype: i32", "half, dtype: u32"}, true, true},
		"the same by 2^s": {[]string{"value: 2**s", "value: \"pow(2, s)\""}, true, false},
	} {
		m := joined(t, goodLoop, edited(t, goodLoop, c.edit...))
		same(t, name+" in words", m.Call("default") != base.Call("default"), c.words)
		same(t, name+" in numbers", m.Launches("default") != base.Launches("default"), c.number)
		same(t, name+": differences in the problem", len(Compare(base, m)), 0)
	}
}

// A Triton kernel is compiled for each round whose constants or hints differ.
func TestLoopsAreSpecialised(t *testing.T) {
	m := parsed(t, edited(t, goodLoop, "source: walsh.cu\n", "source: walsh.py\ncompiler: triton\n", ", block: [WIDE]", ", constants: {STEP: 2**s}"))
	at, _ := m.Shape("small")
	all, err := m.Specials("default", at.Dims, nil, true)
	same(t, "error", err, nil)
	var got []string
	for _, s := range all {
		got = append(got, fmt.Sprint(s.Constants["STEP"], " ", s.Arguments[1].Type, s.Arguments[1].Hint, " ", *s.Arguments[1].Value))
	}
	same(t, "kinds", got, []string{"1 i321 1", "2 i32 2", "4 i32 4"})
}

// Random loops: the launch has as many steps as the loops say, counters run from their start without a gap, and a launch of more
// than the limit is refused when the manifest is read.
func TestRandomLoops(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	read := 0
	for range 300 {
		var list, want []string
		for i := range 1 + rng.IntN(4) {
			from, count, steps := rng.IntN(40)-20, rng.IntN(30), 1+rng.IntN(3)
			for k := range steps {
				repeat := ""
				if k == 0 {
					repeat = fmt.Sprintf("repeat: {name: c%d, from: %d, count: %d, steps: %d}, ", i, from, count, steps)
				}
				list = append(list, fmt.Sprintf(`    - {%sentry: k%d_%d, grid: [1], block: [32], scalars: [{name: v, dtype: i32, value: 3*c%d}], args: [y, v]}`, repeat, i, k, i))
			}
			for round := range count {
				for k := range steps {
					want = append(want, fmt.Sprintf("k%d_%d:v=%d", i, k, 3*(from+round)))
				}
			}
		}
		text := edited(t, goodLoop, "    - "+loopStep, strings.Join(list, "\n"), "    - {copy: x, to: y}\n", "")
		m, err := Parse("kernel.yaml", []byte(text))
		if fits := len(want) > 0 && len(want) <= maxLaunched; fits != (err == nil) {
			t.Fatalf("%d steps: %v\n%s", len(want), err, text)
		}
		if err == nil {
			read++
			same(t, text, inWords(t, m, "small"), strings.Join(want, " "))
		}
	}
	if read < 50 {
		t.Errorf("only %d of 300 manifests were short enough", read)
	}
}

var loopMistakes = []mistake{
	{"loop without a count", goodLoop, "name: s, count: log2(N)", "name: s", []string{
		"kernel.yaml:14:16: launch.steps[1].repeat.count: is required (write e.g. count: log2(S))",
	}},
	{"loop without an end", goodLoop, "count: log2(N)", "count: N", []string{
		`kernel.yaml:14:33: launch.steps[1].repeat.count: "N" is 1048576 at shape mission, N=1048576 (make it 64 or less)`,
	}},
	{"loop of half a round", goodLoop, "count: log2(N)", "count: log2(N)/2", []string{
		`kernel.yaml:14:33: launch.steps[1].repeat.count: "log2(N)/2" is not a whole number but 1.5 at shape small, N=8 (use ceildiv, ceil or floor)`,
	}},
	{"loop over more steps than follow", goodLoop, "count: log2(N)", "count: log2(N), steps: 3", []string{
		"kernel.yaml:14:49: launch.steps[1].repeat.steps: 3 steps are repeated, and 0 follow (write 1 or fewer)",
	}},
	{"loop in a loop", goodLoop, "{copy: x, to: y}", "{repeat: {name: k, count: 2, steps: 2}, copy: x, to: y}", []string{
		"kernel.yaml:13:43: launch.steps[0].repeat.steps: step 1 has a loop of its own, and loops do not nest (write one loop whose counter runs over all rounds)",
	}},
	{"counter named like a dim", goodLoop, "name: s,", "name: N,", []string{
		`kernel.yaml:14:23: launch.steps[1].repeat.name: "N" is the name of a dim, a toggle or the number of SMs too (choose another)`,
		`kernel.yaml:14:130: launch.steps[1].scalars[0].value: "s" in "2**s" is not known here (known: N, WIDE, SMS, N)`,
	}},
	{"counter outside of its loop", goodLoop, "launch:\n  steps:\n", "launch:\n  steps:\n    - {grid: [s], block: [32], args: [y]}\n", []string{
		`kernel.yaml:13:15: launch.steps[0].grid[0]: "s" in "s" is not known here (known: N, WIDE, SMS)`,
	}},
	{"counter in its own count", goodLoop, "count: log2(N)", "count: s", []string{
		`kernel.yaml:14:33: launch.steps[1].repeat.count: "s" in "s" is not known here (known: N, WIDE)`,
	}},
	{"grid that ends in a round", goodLoop, `"ceildiv(N, 2*WIDE)"`, `"floor(N/2**(s + 1)/2)"`, []string{
		`kernel.yaml:14:50: launch.steps[1].grid[0]: "floor(N/2**(s + 1)/2)" is 0 where s is 2 at shape small, N=8 (make it 1 or more)`,
	}},
	{"scalar that overflows in a round", goodLoop, "value: 2**s", "value: 2**(s + 13)", []string{
		`kernel.yaml:14:130: launch.steps[1].scalars[0].value: "2**(s + 13)" is 2147483648 where s is 18 at shape mission, N=1048576 (make it 2147483647 or less)`,
	}},
	{"scalar that nothing takes", goodLoop, "args: [y, half, n]", "args: [y, n]", []string{
		"kernel.yaml:14:105: launch.steps[1].scalars[0].name: the kernel is not passed half (name it in the args of the step, or delete it)",
	}},
	{"scalar named like an argument", goodLoop, "{name: half,", "{name: n,", []string{
		`kernel.yaml:14:105: launch.steps[1].scalars[0].name: "n" is the name of an argument or of scratch too (choose another)`,
		`kernel.yaml:14:145: launch.steps[1].args[1]: "half" is neither an argument nor scratch (write one of x, y, n, n)`,
	}},
	{"scalar of a memset", goodLoop, "{copy: x, to: y}", "{memset: y, scalars: [{name: half, dtype: i32, value: 1}]}", []string{
		"kernel.yaml:13:19: launch.steps[0].scalars: a memset has none (delete it, or make it a separate step)",
	}},
	{"scalar of half a byte", goodLoop, "half, dtype: i32", "half, dtype: int4", []string{
		"kernel.yaml:14:118: launch.steps[1].scalars[0].dtype: int4 is no format of a scalar (write e.g. i32)",
	}},
}
