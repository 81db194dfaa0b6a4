package why_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/why"
)

// A recording is what ncu counted on an H200 of a kernel of runners/backend/cuda/testdata/why: as `gpu.sh why` left it, without
// times and without counters that nothing reads.
type recording struct {
	Kernel, Direction, Device, Tool, Program, Time string
	Speedup                                        float64
	Baseline, Again, Candidate                     []struct {
		Kernel   string
		Counters map[string]float64
	}
}

func (r recording) launches() (baseline, again, candidate why.Launch) {
	for _, k := range r.Baseline {
		baseline = append(baseline, why.Kernel{Name: k.Kernel, Counters: k.Counters})
	}
	for _, k := range r.Again {
		again = append(again, why.Kernel{Name: k.Kernel, Counters: k.Counters})
	}
	for _, k := range r.Candidate {
		candidate = append(candidate, why.Kernel{Name: k.Kernel, Counters: k.Counters})
	}
	return baseline, again, candidate
}

func recordings(t *testing.T, file string) (all []recording) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r recording
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// expected is the cause of each pair, and words of its sentence.
func expected(t *testing.T) map[string][2]string {
	t.Helper()
	text, err := os.ReadFile("../../runners/backend/cuda/testdata/why/causes.txt")
	if err != nil {
		t.Fatal(err)
	}
	causes := map[string][2]string{}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
			causes[fields[0]] = [2]string{fields[1], fields[2]}
		}
	}
	return causes
}

// The sentence names the known cause of a pair, in both directions.
func TestCausesOfPairs(t *testing.T) {
	causes, named, all := expected(t), 0, recordings(t, "pairs.jsonl")
	for _, r := range all {
		b, again, c := r.launches()
		x := why.Explain(why.Profiles{Baseline: b, Again: again, Candidate: c, Speedup: r.Speedup})
		says := facts.Explained{Explanation: x}.Sentence()
		want := causes[r.Kernel]
		if string(x.Cause) == want[0] && strings.Contains(says, want[1]) && x.Faster == (r.Direction == "faster") {
			named++
			continue
		}
		t.Logf("%s, %s: %s (%s)", r.Kernel, r.Direction, says, x.Cause)
	}
	if len(all) != 24 || named < 22 {
		t.Errorf("the sentence names the cause in %d of %d", named, len(all))
	}
}

// These public changes were not made for the rules. Six of the first eight were explained correctly when they were measured, and
// samples_reduce_sequential is a ninth. llmc_trimat_registers was named wrongly, and led to the rule of the L1 cache. samples_reduce_divergent is said to
// diverge by its author: the compiler of today makes code of it in which 31.9 of 32 threads take part, and fewer instructions are
// what its counters show.
func TestCausesOfPublicPairs(t *testing.T) {
	explainEach(t, "public.jsonl", map[string]why.Cause{
		"llama_cpy_transpose": why.Uncoalesced, "llama_dmmv_f16": why.NarrowAccess, "llama_ssm_scan": why.Barriers, "sglang_topk_smem": why.Occupancy,
		"cuvs_polynomial_fp64": why.FP64, "leimao_gemm_wmma": why.NoTensorCores, "samples_reduce_sequential": why.BankConflicts,
		"llmc_trimat_registers": why.L1Traffic, "samples_reduce_divergent": why.Instructions,
	})
}

// What the sentences say of the stages of the attention kernel is what docs/why.md compares with its history.
func TestCausesOfStages(t *testing.T) {
	explainEach(t, "stages.jsonl", map[string]why.Cause{
		"stage1": why.NarrowAccess, "stage2": why.Instructions, "stage3a": "", "stage3a_xor": why.Instructions, "stage3b": why.NoTensorCores,
	})
}

// explainEach explains every recording of a file, and expects one of each kernel.
func explainEach(t *testing.T, file string, want map[string]why.Cause) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range recordings(t, file) {
		cause, known := want[r.Kernel]
		if !known || seen[r.Kernel] {
			t.Errorf("%s is not expected here, or a second time", r.Kernel)
		}
		seen[r.Kernel] = true
		explainRecorded(t, r, cause)
	}
	if len(seen) != len(want) {
		t.Errorf("%s has %d of %d kernels", file, len(seen), len(want))
	}
}

func explainRecorded(t *testing.T, r recording, want why.Cause) {
	t.Helper()
	b, again, c := r.launches()
	x := why.Explain(why.Profiles{Baseline: b, Again: again, Candidate: c, Speedup: r.Speedup})
	if x.Cause != want {
		t.Errorf("%s: %s (%s), want %s", r.Kernel, facts.Explained{Explanation: x}.Sentence(), x.Cause, want)
	}
}

// An equal kernel has no difference, in one run and across runs: 50 times.
func TestEqualKernelsRecorded(t *testing.T) {
	explained := 0
	check := func(name string, b, again, c why.Launch) {
		explained++
		if x := why.Explain(why.Profiles{Baseline: b, Again: again, Candidate: c}); x.Moved || x.Cause != "" {
			t.Errorf("%s: %s", name, facts.Explained{Explanation: x}.Sentence())
		}
	}
	equal := recordings(t, "equal.jsonl")
	for i, r := range equal {
		b, again, c := r.launches()
		check(fmt.Sprintf("%s %d", r.Kernel, i), b, again, c)
		if i > 0 && equal[i-1].Kernel == r.Kernel {
			_, _, c := equal[i-1].launches()
			check(fmt.Sprintf("%s %d with %d", r.Kernel, i, i-1), b, again, c)
		}
	}
	// The candidate of one direction of a pair is the baseline of the other.
	pairs := recordings(t, "pairs.jsonl")
	for i := 0; i+1 < len(pairs); i += 2 {
		b, again, c := pairs[i].launches()
		otherB, otherAgain, otherC := pairs[i+1].launches()
		check(pairs[i].Kernel+" slow", b, again, otherC)
		check(pairs[i].Kernel+" fast", otherB, otherAgain, c)
	}
	if explained < 50 {
		t.Errorf("only %d were explained", explained)
	}
}
