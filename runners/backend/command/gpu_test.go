package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// TestTorchOnGPU runs on a host with a GPU and PyTorch. kernelgate_bench.py times real launches in
// the sandbox, and a kernel that reads its input once beats one that reads it four times.
func TestTorchOnGPU(t *testing.T) {
	devices, err := filepath.Glob("/dev/nvidia*")
	if err != nil {
		t.Fatal(err)
	}
	lent := []string{}
	for _, d := range devices {
		if info, err := os.Stat(d); err == nil && info.Mode()&os.ModeDevice != 0 {
			lent = append(lent, d)
		}
	}
	python, err := exec.LookPath("python3")
	if len(lent) == 0 || err != nil {
		t.Skip("needs a GPU and python3")
	}
	out, err := exec.CommandContext(t.Context(), python, "-c", "import torch, sys; torch.zeros(1, device='cuda'); print(sys.prefix + ':' + sys.base_prefix)").Output()
	if err != nil {
		t.Skip("needs PyTorch with CUDA")
	}
	job, config := trial{}.job(t)
	config.Devices = lent
	config.Getenv = func(name string) string {
		return map[string]string{"PATH": filepath.Dir(python) + ":/usr/bin:/bin", "KERNELGATE_READ": strings.TrimSpace(string(out))}[name]
	}
	for dir, passes := range map[string]string{job.Baseline.Dir: "range(4)", job.Candidate.Dir: "range(1)"} {
		bench := `import torch, kernelgate_bench
def problem(dims, seed, distribution):
    x = torch.randn(dims["N"] << 12, device="cuda", generator=torch.Generator("cuda").manual_seed(seed))
    y = torch.empty_like(x)
    def launch():
        for _ in ` + passes + `: torch.mul(x, 2, out=y)
        return y
    return launch, 2 * x.double()
kernelgate_bench.run(problem, abs=1e-3)
`
		for name, text := range map[string]string{"bench.py": bench, "kernelgate_bench.py": pythonBench} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	job.Manifest.Command.Bench = []string{"python3", "bench.py"}
	e, v, w := gate(t, job, config)
	t.Logf("%s (%s) on %s: %s", v.Outcome, v.Reason, e.Device.Name, v.Summary)
	if v.Outcome != gates.Pass || e.Device.Kind != "gpu" || !strings.HasPrefix(e.Device.UUID, "GPU-") {
		t.Errorf("got %s (%s) on %+v\n%s", v.Outcome, v.Reason, e.Device, w.BuildLog())
	}
}
