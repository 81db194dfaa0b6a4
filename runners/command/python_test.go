package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// The snippet's own tests need no PyTorch: they hand in the clock.
func TestPythonBench(t *testing.T) {
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

// What the snippet prints is what the worker reads: a kernel in plain Python
// passes through all gates, timed by the host's clock.
func TestPythonHarness(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("there is no /usr/bin/python3, the only one that the sandbox sees")
	}
	job, config := trial{}.job(t)
	for dir, work := range map[string]string{job.Baseline.Dir: "20000", job.Candidate.Dir: "200"} {
		bench := `import kernelgate_bench, sys
print("noise")
def problem(dims, seed, distribution):
    x = [float(seed % 1000 + i) for i in range(dims["N"])]
    def launch():
        for _ in range(` + work + `): pass
        return [2 * v for v in x]
    return launch, [2 * v for v in x]
kernelgate_bench.run(problem)
`
		for name, text := range map[string]string{"bench.py": bench, "kernelgate_bench.py": PythonBench} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	job.Manifest.Command.Bench = []string{"/usr/bin/python3", "bench.py"}
	_, v, _ := gate(t, job, config)
	for _, g := range v.Gates {
		if g.Gate == "correctness" && (g.Status != gates.Passed || g.Text != "6/6 cases, max |err| 0, norm error 0%, deterministic, bit-identical to the baseline") {
			t.Errorf("correctness: %s (%s)", g.Text, g.Status)
		}
	}
	// The launches differ by a factor of a hundred, but a busy machine may
	// still make the control wobble: then the verdict is about the runner.
	if v.Outcome != gates.Pass && v.Reason != gates.ReasonRunner && v.Reason != gates.ReasonInconclusive {
		t.Errorf("got %s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
}
