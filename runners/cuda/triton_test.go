package cuda

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/toolchain"
)

// needsTriton skips a test where there is none, but not in CI, where `make setup` has fetched it.
func needsTriton(t *testing.T) {
	t.Helper()
	if _, err := toolchain.FindTriton(t.Context(), os.Getenv); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// A tritonTrial is a Triton kernel of testdata against itself: other toggles, or another text.
type tritonTrial struct {
	kernel              string // of testdata/triton
	policy              string
	baseline, candidate string                     // variants
	edit                func(source string) string // of the candidate
	arch                string                     // without a GPU
	manifest            func(text string) string
}

func readText(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (tr tritonTrial) gather(t *testing.T) (*gates.Evidence, *gates.Verdict, runners.Job) {
	t.Helper()
	text := readText(t, "testdata", "triton", tr.kernel+".yaml")
	if tr.manifest != nil {
		text = tr.manifest(text)
	}
	source := readText(t, "..", "toolchain", "testdata", "triton", tr.kernel+".py")
	m, err := kernels.Parse("kernel.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policies.Parse("test.yaml", []byte(tr.policy))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	side := func(name, source, variant string) runners.Side {
		dir := filepath.Join(root, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"kernel.py": source, "reference.cu": readText(t, "testdata", "triton", tr.kernel+".cu")} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return runners.Side{Dir: dir, Variant: variant}
	}
	base := side("base", source, tr.baseline)
	if tr.edit != nil {
		was := source
		if source = tr.edit(source); source == was {
			t.Fatal("the edit changed nothing")
		}
	}
	job := runners.Job{Manifest: m, ManifestText: text, Policy: p, Trusted: base.Dir, Baseline: &base, Candidate: side("head", source, tr.candidate)}
	b, err := New(t.Context(), job, Config{
		Scratch: filepath.Join(root, "build"), Cache: buildCache(t), Program: []string{os.Args[0], serveWord}, Arch: tr.arch, Getenv: os.Getenv,
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := runners.Gather(t.Context(), job, b, silent{})
	if err != nil {
		t.Fatal(err)
	}
	return e, gates.Judge(p, "test.yaml", e), job
}

// Without a GPU a Triton kernel still compiles for any architecture: its resources are judged, and equal code is told as equal.
func TestTritonStatic(t *testing.T) {
	needsCompiler(t)
	needsTriton(t)
	const policy = "version: 1\ngates:\n  ptxas: {registers: \"<= 64\", spill_stores: \"<= 0B\"}\nrules: [{name: default}]\n"
	t.Run("another tile", func(t *testing.T) {
		e, v, _ := tritonTrial{kernel: "softmax", policy: policy, baseline: "narrow", candidate: "wide", arch: "sm_90"}.gather(t)
		if v.Outcome != gates.Pass {
			t.Fatalf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
		}
		base, cand := e.Baseline, e.Candidate
		if *base.Resources.BlockThreads != 32 || *cand.Resources.BlockThreads != 256 || base.Code == cand.Code || e.SameCode {
			t.Errorf("blocks of %d and %d threads, same code %v", *base.Resources.BlockThreads, *cand.Resources.BlockThreads, e.SameCode)
		}
		if !strings.HasPrefix(cand.Compiler, "triton 3.") || *cand.Resources.Registers < 8 || *cand.Resources.SpillStores != 0 || cand.EntryLine != 5 {
			t.Errorf("the build's evidence is not whole: %+v", cand)
		}
	})
	t.Run("a comment", func(t *testing.T) {
		e, _, _ := tritonTrial{kernel: "softmax", policy: policy, baseline: "wide", candidate: "wide", arch: "sm_90",
			edit: func(s string) string { return "# A comment.\n" + s }}.gather(t)
		if !e.SameCode {
			t.Error("a comment is told as another kernel")
		}
	})
	t.Run("a mistake", func(t *testing.T) {
		_, v, _ := tritonTrial{kernel: "softmax", policy: policy, baseline: "wide", candidate: "wide", arch: "sm_90",
			edit: func(s string) string { return strings.Replace(s, "tl.max(", "tl.maxx(", 1) }}.gather(t)
		if v.Reason != gates.ReasonBuild || !strings.Contains(v.Summary, "kernel.py:10: ") {
			t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
		}
	})
	t.Run("another type", func(t *testing.T) {
		_, v, _ := tritonTrial{kernel: "softmax", policy: policy, baseline: "wide", candidate: "wide", arch: "sm_90",
			edit: func(s string) string { return strings.Replace(s, "rows, cols,", "rows, cols: \"*fp32\",", 1) }}.gather(t)
		if v.Reason != gates.ReasonBuild {
			t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
		}
	})
}
