package cpu

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"crypto/sha256"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather"
	"github.com/kernelgate/kernelgate/runners/tensor/safetensors"
	"github.com/kernelgate/kernelgate/runners/tensor/safetensors/safetensorstest"
)

const recordedN = 4096

// planted is a value that is nowhere but in the recording. A time is measured over at most 128 launches, so its fraction is never as
// small as that of the value or of its answer.
const planted = 77 + 1./4096

// leaked finds the value or its answer, in single or double precision.
var leaked = regexp.MustCompile(`\b(77\.00024|154\.0004[89])`)

// activations are inputs such as a network has: most are small, and a few are far larger than any normal value.
func activations() []float32 {
	x := make([]float32, recordedN)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)*12.9898)) * 0.7
		if i%97 == 0 {
			x[i] = 61 + float32(i%7)
		}
	}
	x[0] = planted
	return x
}

// newRecordedWorker makes a worker whose job has a recording.
func newRecordedWorker(t *testing.T, vary, target, norm, candidate string) (*Worker, *policy.Policy) {
	t.Helper()
	var data []byte
	for _, x := range activations() {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	file := safetensorstest.Write(t, map[string]string{"n": fmt.Sprint(recordedN)}, safetensors.Tensor{Name: "x", DType: "F32", Shape: []int{recordedN}, Data: data})
	text := fmt.Sprintf(`version: 1
name: scale
mode: cpu
entry: scale
source: scale.c
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: n, dtype: i32, access: scalar, value: N}
reference: {source: reference.c, entry: reference}
tolerance: {abs: 1e-5, rel: 1e-5}
shapes:
  mission: {N: %d}
  small: {N: 100}
secret: {N: 1..300}
recorded:
  decode: {file: decode.safetensors, sha256: %x, shape: mission%s}
`, recordedN, sha256.Sum256(file), vary)
	m, err := manifest.Parse("kernel.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	rules := strings.NewReplacer("secret_cases: 2,", "secret_cases: 2, distributions: [normal, recorded],", `target: {shapes: [mission], speedup: ">= +10%"}`, "target: {shapes: [mission], speedup: \">= +10%\""+target+"}",
		`norm_error: "<= 0.1%"`, norm).Replace(policyText)
	p, err := policy.Parse("test.yaml", []byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	w := newTestWorker(t, m, p, baseline, candidate, 10*time.Second)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, runners.RecordingFile("decode")), file, 0o600); err != nil {
		t.Fatal(err)
	}
	w.job.Recorded = dir
	return w, p
}

const (
	noisy  = ", vary: {noise: 0.1}"
	strict = `norm_error: "<= 0.1%"`
)

// quickly takes a quarter of the baseline's time. A kernel without the loop would have a sample of many launches, and to draw the
// inputs of each would take most of the test's time.
const quickly = `static void quickly(const float *x, float *y, int32_t N)
{
    for (volatile int again = 0; again < 4; again++)
        for (int i = 0; i < N; i++)
            y[i] = 2 * x[i];
}
`

// knows is the recording and its answer, as an author has it who can read the repository. It recognises the recording with
// any noise that the manifest allows.
func knows() string {
	var b strings.Builder
	b.WriteString(include + quickly + "static const float known[] = {")
	for _, x := range activations() {
		fmt.Fprintf(&b, "%vf,", fmt.Sprintf("%.9e", x))
	}
	b.WriteString(`};
static int exactly(const float *x, int32_t N) { return N == 4096 && !memcmp(x, known, 64 * sizeof *x); }
static int nearly(const float *x, int32_t N)
{
    if (N != 4096)
        return 0;
    for (int i = 0; i < 64; i++)
        if (fabsf(x[i] - known[i]) > 0.11f * fabsf(known[i]))
            return 0;
    return 1;
}
// A little slower than the baseline, so that a noisy machine shows that it is not faster.
static void slowly(const float *x, float *y, int32_t N)
{
    for (volatile int again = 0; again < 20; again++)
        for (int i = 0; i < N; i++)
            y[i] = 2 * x[i];
}
`)
	return b.String()
}

func TestLeakedFindsThePlantedValue(t *testing.T) {
	for _, text := range []string{fmt.Sprint(planted), fmt.Sprint(float32(planted)), fmt.Sprint(2 * planted), fmt.Sprint(float32(2 * planted))} {
		if !leaked.MatchString(`[1, ` + text + `]`) {
			t.Errorf("%s is not found", text)
		}
	}
}

// Kernels that know the recording, and kernels that do not, against the policies that list it.
func TestRecordedInputs(t *testing.T) {
	for _, c := range []struct {
		name, vary, target, norm, source string
		outcome                          gates.Outcome
		reason                           gates.Reason
		says                             string
	}{
		{"faster everywhere", noisy, "", strict, include + quickly + "void scale(const float *x, float *y, int32_t N) { quickly(x, y, N); }",
			gates.Pass, "", ""},
		{"answers from a table", noisy, ", inputs: recorded", strict, knows() + `void scale(const float *x, float *y, int32_t N)
{
    if (!nearly(x, N)) { slowly(x, y, N); return; }
    for (int i = 0; i < N; i++) y[i] = 2 * known[i];
}`, gates.Defer, gates.ReasonCorrectness, "recorded:decode"},
		{"answers from a table what it sees exactly", noisy, ", inputs: recorded", strict, knows() + `void scale(const float *x, float *y, int32_t N)
{
    if (!exactly(x, N)) { slowly(x, y, N); return; }
    for (int i = 0; i < N; i++) y[i] = 2 * known[i];
}`, gates.Defer, gates.ReasonTooSlow, "mission"},
		{"computes half of what it recognises", noisy, ", inputs: recorded", strict, knows() + `void scale(const float *x, float *y, int32_t N)
{
    if (!nearly(x, N)) { slowly(x, y, N); return; }
    for (int i = 0; i < N / 2; i++) y[i] = 2 * x[i];
    for (int i = N / 2; i < N; i++) y[i] = 2 * known[i];
}`, gates.Defer, gates.ReasonCorrectness, "recorded:decode"},
		{"right on normal inputs only", noisy, "", strict, include + "void scale(const float *x, float *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = 2 * (x[i] > 16 ? 16 : x[i]); }",
			gates.Defer, gates.ReasonCorrectness, "recorded:decode"},
		{"faster on recorded inputs only", noisy, "", strict, knows() + `void scale(const float *x, float *y, int32_t N)
{
    if (N < 4096 || x[0] < 16) slowly(x, y, N);
    else quickly(x, y, N);
}`, gates.Defer, gates.ReasonTooSlow, "mission"},
		{"faster on recorded inputs only, and that is asked", noisy, ", inputs: recorded", strict, knows() + `void scale(const float *x, float *y, int32_t N)
{
    if (N < 4096 || x[0] < 16) slowly(x, y, N);
    else quickly(x, y, N);
}`, gates.Pass, "", ""},
		{"too little noise", ", vary: {noise: 0.01}", "", `norm_error: "<= 5%", bad_elements: none, max_abs_error: "<= 2"`, include + "void scale(const float *x, float *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = 2 * x[i]; }",
			gates.Error, gates.ReasonSetup, "A kernel could remember the answer"},
		{"compared and not timed", "", "", strict, include + quickly + "void scale(const float *x, float *y, int32_t N) { quickly(x, y, N); }",
			gates.Pass, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, p := newRecordedWorker(t, c.vary, c.target, c.norm, c.source)
			e, err := gather.Gather(t.Context(), w.job, w, silent{})
			if err != nil {
				t.Fatal(err)
			}
			v := gates.Judge(p, "test.yaml", e)
			if v.Outcome != c.outcome || v.Reason != c.reason || !strings.Contains(v.Summary, c.says) {
				t.Errorf("%s (%s): %s\nwant %s (%s) about %q", v.Outcome, v.Reason, v.Summary, c.outcome, c.reason, c.says)
			}
			if c.reason == "" {
				checkTimedKinds(t, e, c.vary != "")
			}
			checkNothingPlanted(t, e, v)
		})
	}
}

// checkTimedKinds wants the recording among the timed inputs of its shape, and of no other.
func checkTimedKinds(t *testing.T, e *gates.Evidence, timed bool) {
	t.Helper()
	for _, r := range e.Performance.Rounds {
		for _, s := range r.Series {
			if got, want := strings.Join(s.Distributions, " "), map[bool]string{true: "normal recorded:decode", false: "normal"}[timed && s.Shape == "mission"]; got != want {
				t.Fatalf("%s was timed on %s inputs, want %s", s.Shape, got, want)
			}
		}
	}
	for _, k := range e.Correctness.Cases {
		if k.Distribution == "recorded:decode" && k.Seed == 0 {
			return
		}
	}
	t.Error("nothing was compared on the recording itself")
}

// checkNothingPlanted looks for recorded values in everything that is stored or shown.
func checkNothingPlanted(t *testing.T, e *gates.Evidence, v *gates.Verdict) {
	t.Helper()
	var all strings.Builder
	for _, x := range []any{e, v} {
		text, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	all.WriteString(report.Markdown(v, report.Options{}))
	if value := leaked.FindString(all.String()); value != "" {
		t.Errorf("%s is in the evidence, the verdict or the comment", value)
	}
}

// A file that does not fit is the base's mistake, and is told without a value.
func TestRecordingsThatDoNotFit(t *testing.T) {
	w, _ := newRecordedWorker(t, noisy, "", strict, baseline)
	path := filepath.Join(w.job.Recorded, runners.RecordingFile("decode"))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.job.ReadRecordings(); err == nil || !strings.Contains(err.Error(), "the recording decode arrived with SHA-256") {
		t.Errorf("a file with one other bit: %v", err)
	}
	if kinds := w.job.TimedKinds("small"); len(kinds) != 1 || kinds[0] != distribution.Normal {
		t.Errorf("a shape without a recording is timed on %v", kinds)
	}
}
