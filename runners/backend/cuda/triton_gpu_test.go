package cuda

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
)

// A tritonKernel is gated on a GPU: with a better tile, with a worse one, and with a mask lost or a wrong offset.
type tritonKernel struct {
	name       string
	from, with string // the mask, and the text without it
}

var tritonKernels = []tritonKernel{
	{"softmax", `, mask=at < cols, other=-float("inf")`, ""},
	{"layer_norm", `tl.load(x + at, mask=at < cols, other=0.0)`, "tl.load(x + at)"},
	{"matmul", `sum.to(tl.float16), mask=(rows[:, None] < M) & (cols[None, :] < N)`, "sum.to(tl.float16), mask=rows[:, None] < M"},
	{"attention", `        score = tl.where(keys[None, :] < S, score, -float("inf"))` + "\n", ""},
}

// descriptorKernels take their arrays as tensor descriptors, which mask by themselves.
var descriptorKernels = []tritonKernel{
	{"matmul_descriptor", "a.load([row, start])", "a.load([row, 0])"},
	{"permute_descriptor", "x.load([head, row, 0])", "x.load([head, row + 1, 0])"},
}

const tritonPolicy = `version: 1
gates:
  ptxas: {registers: "<= 255"}
  correctness: {shapes: all, seeds: [0, 1], secret_cases: 3, norm_error: "<= 1%"}
  performance:
    target: {shapes: [mission], speedup: ">= +5%"}
    rounds: {min: 6, max: 12}
    pairs: 10
    control: 3%
    solo_shift: 10%
rules:
  - name: default
`

// tritonTried is what each of them is changed into; what is wrong has no mask.
var tritonTried = []struct {
	name    string
	trial   tritonTrial
	outcome gates.Outcome
	reason  gates.Reason
}{
	{"better", tritonTrial{baseline: "narrow", candidate: "wide"}, gates.Pass, ""},
	{"worse", tritonTrial{baseline: "wide", candidate: "narrow"}, gates.Defer, gates.ReasonTooSlow},
	{"unmasked", tritonTrial{baseline: "wide", candidate: "wide"}, gates.Defer, gates.ReasonCorrectness},
}

// A tritonFigure is one kernel's time by the two clocks, in µs: medians of the gate's rounds, and of calls of do_bench.
type tritonFigure struct {
	Kernel  string    `json:"kernel"`
	Gate    []float64 `json:"gate_us"`
	DoBench []float64 `json:"do_bench_us,omitempty"`
}

func (f tritonFigure) String() string {
	text := fmt.Sprintf("%s: kernelgate %.2f µs (spread %.2f %%)", f.Kernel, median(f.Gate), spread(f.Gate))
	if len(f.DoBench) > 0 {
		text += fmt.Sprintf(", do_bench %.2f µs (spread %.2f %%), ratio %.4f", median(f.DoBench), spread(f.DoBench), median(f.Gate)/median(f.DoBench))
	}
	return text
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// spread is the largest over the smallest, in percent.
func spread(list []float64) float64 { return 100 * (slices.Max(list)/slices.Min(list) - 1) }

// Triton kernels are judged as CUDA's are: the clock, the inputs and the comparison are the gate's own. With KERNELGATE_GPU_LONG
// the times are kept in that folder.
func TestTritonOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	needsTriton(t)
	var figures []tritonFigure
	for _, k := range slices.Concat(tritonKernels, descriptorKernels) {
		t.Run(k.name, func(t *testing.T) {
			for _, c := range tritonTried {
				tr := c.trial
				tr.kernel, tr.policy = k.name, tritonPolicy
				if c.reason == gates.ReasonCorrectness {
					tr.edit = func(s string) string { return strings.Replace(s, k.from, k.with, 1) }
				}
				e, v, job := tr.gather(t)
				t.Logf("%s: %s (%s): %s", c.name, v.Outcome, v.Reason, v.Summary)
				if v.Outcome != c.outcome || v.Reason != c.reason {
					t.Errorf("%s: got %s (%s), want %s (%s): %s %s", c.name, v.Outcome, v.Reason, c.outcome, c.reason, v.Summary, e.Fault)
				}
				keepEvidence(t, k.name+"-"+c.name, e)
				if c.outcome == gates.Pass && e.Performance != nil {
					figure := tritonFigure{Kernel: k.name, Gate: candidateMicros(e), DoBench: doBench(t, job)}
					figures = append(figures, figure)
					t.Log(figure)
				}
			}
		})
	}
	if folder := os.Getenv("KERNELGATE_GPU_LONG"); folder != "" {
		text, err := json.MarshalIndent(figures, "", " ")
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, "triton", "triton.json"), text, 0o644)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// toolsPolicy has every tool look at a kernel, too.
var toolsPolicy = strings.Replace(tritonPolicy, "  performance:", `  sanitize: {shapes: [ragged], distributions: [normal], secret_cases: 1, tools: [memcheck, racecheck, initcheck, synccheck], timeout: 5m}
  profile: {required: true, shapes: [mission], any: [{dram__throughput.avg.pct_of_peak_sustained_elapsed: ">= 1%"}]}
  performance:`, 1)

// Sanitizers and the profiler see Triton's kernels as they see CUDA's, and a finding names the line of the Python source.
func TestTritonToolsOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	needsTriton(t)
	t.Run("clean", func(t *testing.T) {
		e, v, _ := tritonTrial{kernel: "softmax", policy: toolsPolicy, baseline: "narrow", candidate: "wide"}.gather(t)
		if v.Outcome != gates.Pass || !toolsLooked(e) {
			t.Errorf("%s (%s): %s %s\n%+v\n%+v", v.Outcome, v.Reason, v.Summary, e.Fault, e.Sanitize, e.Profile)
		}
		keepEvidence(t, "softmax-tools", e)
	})
	t.Run("writes beside", func(t *testing.T) {
		const store = "tl.store(y + row * cols + at, v / tl.sum(v, 0)"
		var line int
		b, job := tritonTrial{kernel: "softmax", policy: toolsPolicy, baseline: "wide", candidate: "wide", edit: func(s string) string {
			before, _, _ := strings.Cut(s, store)
			line = 1 + strings.Count(before, "\n")
			return strings.Replace(s, store+", mask=at < cols)", store+")", 1)
		}}.open(t)
		if build, err := b.Build(t.Context(), runners.Candidate, job.Candidate); err != nil || !build.OK {
			t.Fatal(err, build.Error)
		}
		s, err := b.Sanitize(t.Context(), job.Rule().Gates.Sanitize, silent{})
		if err != nil || s.Skipped != "" {
			t.Fatal(err, s.Skipped)
		}
		found := slices.ContainsFunc(s.Tools, func(run gates.Sanitized) bool {
			return run.Tool == "memcheck" && slices.ContainsFunc(run.Findings, func(f gates.Finding) bool {
				return f.Kind == gates.KindOutOfBounds && f.File == "kernel.py" && f.Line == line
			})
		})
		if !found {
			t.Errorf("line %d was not found: %+v", line, s.Tools)
		}
		t.Logf("%v", s.Tools[0].Findings)
	})
}

// toolsLooked tells whether all tools ran and found nothing, and whether the profiler counted.
func toolsLooked(e *gates.Evidence) bool {
	return e.Sanitize != nil && len(e.Sanitize.Tools) == 4 && e.Profile != nil && len(e.Profile.Metrics) > 0 &&
		!slices.ContainsFunc(e.Sanitize.Tools, func(run gates.Sanitized) bool {
			return run.Skipped != "" || run.Failure != nil || len(run.Findings) > 0
		})
}

// compilersTried are kernels in PTX, by ptxas and by a program of the repository, in the place of the CUDA baseline.
var compilersTried = []struct {
	name    string
	own     *strings.Replacer
	from    string // an instruction, and what is put there
	with    string
	outcome gates.Outcome
	reason  gates.Reason
}{
	{"ptx", byPTX, "", "", gates.Pass, ""},
	{"command", byCommand, "", "", gates.Pass, ""},
	{"ptx-wrong", byPTX, "add.f32 %f2, %f1, %f1;", "mul.f32 %f2, %f1, %f1;", gates.Defer, gates.ReasonCorrectness},
	{"command-beside", byCommand, "st.global.f32 [%a5], %f2;", "st.global.f32 [%a5], %f2;\n\tst.global.f32 [%a5+4], %f2;", gates.Defer, gates.ReasonCorrectness},
}

// compilersPolicy does not ask for spills: of what a program compiled they are not known.
var compilersPolicy = strings.Replace(policyText, `, spill_stores: "<= 0B"`, "", 1)

func TestCompilersRecorded(t *testing.T) {
	for _, c := range compilersTried {
		if v := judgeRecorded(t, "compilers/"+c.name, compilersPolicy); v.Outcome != c.outcome || v.Reason != c.reason {
			t.Errorf("%s: got %s (%s), want %s (%s): %s", c.name, v.Outcome, v.Reason, c.outcome, c.reason, v.Summary)
		}
	}
}

func TestCompilersOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	for _, c := range compilersTried {
		t.Run(c.name, func(t *testing.T) {
			code := readText(t, "..", "..", "build", "toolchain", "testdata", "scale.ptx")
			if c.from != "" && !strings.Contains(code, c.from) {
				t.Fatal("the edit changes nothing")
			}
			e, v := otherCompiler(t, c.own, strings.Replace(code, c.from, c.with, 1), around(baselineBody), compilersPolicy, "")
			if v.Outcome != c.outcome || v.Reason != c.reason {
				t.Errorf("got %s (%s), want %s (%s): %s %s", v.Outcome, v.Reason, c.outcome, c.reason, v.Summary, e.Fault)
			}
			t.Logf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			keepEvidence(t, c.name, e)
		})
	}
}

// What an H200 showed is judged as it was, and the two clocks agreed on the same code.
func TestTritonRecorded(t *testing.T) {
	for _, k := range slices.Concat(tritonKernels, descriptorKernels) {
		for _, c := range tritonTried {
			if v := judgeRecorded(t, "triton/"+k.name+"-"+c.name, tritonPolicy); v.Outcome != c.outcome || v.Reason != c.reason {
				t.Errorf("%s, %s: got %s (%s), want %s (%s): %s", k.name, c.name, v.Outcome, v.Reason, c.outcome, c.reason, v.Summary)
			}
		}
	}
	v := judgeRecorded(t, "triton/softmax-tools", toolsPolicy)
	if len(v.Gates) < 6 {
		t.Errorf("only %d gates looked at softmax", len(v.Gates))
	}
	for _, gate := range v.Gates { // sanitize and profile among them
		if gate.Status != gates.Passed {
			t.Errorf("softmax under every tool: %s: %s", gate.Gate, gate.Text)
		}
	}
	var figures []tritonFigure
	if err := json.Unmarshal([]byte(readText(t, "testdata", "h200", "triton", "triton.json")), &figures); err != nil || len(figures) != len(tritonKernels) {
		t.Fatalf("%d kernels were timed by both clocks, want %d: %v", len(figures), len(tritonKernels), err)
	}
	for _, f := range figures {
		if off := median(f.Gate)/median(f.DoBench) - 1; off < -0.03 || off > 0.03 {
			t.Errorf("the clocks differ by %.1f %%: %s", 100*off, f)
		}
	}
}

// candidateMicros is the candidate's median of each round at the shape that is asked for.
func candidateMicros(e *gates.Evidence) []float64 {
	var all []float64
	if e.Performance == nil {
		return nil
	}
	for _, r := range e.Performance.Rounds {
		for _, s := range r.Series {
			var times []float64
			for i, letter := range strings.ReplaceAll(s.Order, " ", "") {
				if letter == gates.SideCandidate && i < len(s.Nanos) && !slices.Contains(s.Disturbed, i) {
					times = append(times, s.Nanos[i]/1e3)
				}
			}
			if s.Shape == "mission" && len(times) > 0 {
				all = append(all, median(times))
			}
		}
	}
	return all
}

// doBench has the candidate timed by Triton's own clock, just in time; nothing where the Python has no torch.
func doBench(t *testing.T, job runners.Job) []float64 {
	t.Helper()
	m, variant := job.Manifest, job.Candidate.Variant
	shape, _ := m.Shape("mission")
	specials, err := m.Specials(variant, shape.Dims, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	special := specials[0]
	steps, err := m.Steps(variant, shape.Dims, nil)
	if err != nil {
		t.Fatal(err)
	}
	type argument struct {
		DType string         `json:"dtype"`
		Shape []int          `json:"shape,omitempty"`
		Value float64        `json:"value"`
		Tile  *manifest.Tile `json:"tile,omitempty"` // of a tensor descriptor
	}
	request := struct {
		Source    string             `json:"source"`
		Entry     string             `json:"entry"`
		Arguments []argument         `json:"arguments"`
		Constants map[string]float64 `json:"constants"`
		Warps     int                `json:"warps"`
		Stages    int                `json:"stages"`
		Grid      [3]int             `json:"grid"`
		Repeat    int                `json:"repeat"`
	}{filepath.Join(job.Candidate.Dir, "kernel.py"), m.Entry, nil, map[string]float64{}, special.Warps, special.Stages, steps[0].Grid, 12}
	source := readText(t, request.Source)
	for name, value := range special.Constants {
		request.Constants[name] = value
	}
	for name, value := range special.Toggles {
		if strings.Contains(source, name+": tl.constexpr") {
			request.Constants[name] = float64(value)
		}
	}
	for i := range m.Arguments {
		a := &m.Arguments[i]
		one := argument{DType: string(a.DType)}
		if a.Value != nil {
			one.Value, err = m.ScalarValue(a, shape.Dims, nil)
		} else {
			one.Shape, err = m.ShapeOf(a, shape.Dims, nil)
		}
		if err == nil && a.TensorMap != nil {
			var tile manifest.Tile
			tile, err = m.TileOf(a, shape.Dims, m.ToggleValues(variant))
			one.Tile = &tile
		}
		if err != nil {
			t.Fatal(err)
		}
		request.Arguments = append(request.Arguments, one)
	}
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "request.json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	python := os.Getenv("KERNELGATE_PYTHON")
	if python == "" {
		python = "python3"
	}
	var errors strings.Builder
	cmd := exec.Command(python, "testdata/triton/do_bench.py", file)
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Logf("do_bench could not be asked: %v %s", err, errors.String())
		return nil
	}
	var times []float64
	if err := json.Unmarshal(out, &times); err != nil {
		t.Fatalf("do_bench printed %q: %v", out, err)
	}
	return times
}
