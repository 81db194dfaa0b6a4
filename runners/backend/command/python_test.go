package command

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

//go:embed kernelgate_bench.py
var pythonBench string

// TestPythonBench runs the snippet's own tests. They need no PyTorch, because they supply the
// clock.
func TestPythonBench(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "kernelgate_bench_test.py"))
	cmd.Env = []string{"PYTHONPATH=" + here, "PYTHONDONTWRITEBYTECODE=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestPythonHarness checks that the worker reads what the snippet prints, from correctness to a
// round timed by the host's clock.
func TestPythonHarness(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("there is no /usr/bin/python3, the only one that the sandbox sees")
	}
	job, config := trial{}.job(t)
	for _, dir := range []string{job.Baseline.Dir, job.Candidate.Dir} {
		bench := `import kernelgate_bench
print("noise")
def problem(dims, seed, distribution):
    x = [float(seed % 1000 + i) for i in range(dims["N"])]
    return (lambda: [2 * v for v in x]), [2 * v for v in x]
kernelgate_bench.run(problem)
`
		for name, text := range map[string]string{"bench.py": bench, "kernelgate_bench.py": pythonBench} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	job.Manifest.Command.Bench = []string{"/usr/bin/python3", "bench.py"}
	w := built(t, job, config)
	asked := job.Policy.RuleFor(job.Change).Gates
	c, err := w.Correctness(t.Context(), asked.Correctness, silent{})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Cases) != 6 {
		t.Errorf("%d cases, want 6\n%s", len(c.Cases), w.BuildLog())
	}
	for _, k := range c.Cases {
		if k.Failure != nil || k.Errors == nil || k.Errors.Norm != 0 || k.Deterministic == nil || !*k.Deterministic || k.BitParity == nil || !*k.BitParity {
			t.Errorf("got %+v", k)
		}
	}
	r, err := w.Round(t.Context(), asked.Performance, job.Manifest.Shapes[:2], silent{})
	if err != nil || r.Failure != nil {
		t.Fatalf("got %v, %v", r.Failure, err)
	}
	for _, s := range r.Series {
		if len(s.Nanos) != 6 || s.Batch != 4 || s.Verified != 4 || s.Worst.Bad != 0 {
			t.Errorf("got %+v", s)
		}
	}
}
