package toolchain

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/internal/long"
)

// cudaHome finds a toolkit: the one that CUDA_HOME names, else the one that fetch-cuda.sh has fetched.
func cudaHome(t *testing.T) string {
	t.Helper()
	if home := os.Getenv("CUDA_HOME"); home != "" {
		return home
	}
	out, err := exec.Command("./fetch-cuda.sh", "--check").Output()
	if err == nil {
		return strings.TrimSpace(string(out))
	}
	const missing = "no CUDA toolkit: run runners/build/toolchain/fetch-cuda.sh, or set CUDA_HOME to an installed one"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

func TestToolsAgreeOnFreshCubins(t *testing.T) {
	bin := filepath.Join(cudaHome(t), "bin")
	for _, kernel := range []string{"callee", "globals"} {
		t.Run(kernel, func(t *testing.T) {
			if kernel != "globals" {
				long.Test(t)
			}
			t.Parallel()
			cubin := filepath.Join(t.TempDir(), kernel+".cubin")
			log, err := exec.Command(filepath.Join(bin, "nvcc"), "-cubin", "-arch=sm_89", "-Xptxas", "-v",
				"-o", cubin, filepath.Join("testdata", kernel+".cu")).CombinedOutput()
			if err != nil {
				t.Fatalf("nvcc: %v\n%s", err, log)
			}
			usage, err := exec.Command(filepath.Join(bin, "cuobjdump"), "--dump-resource-usage", cubin).Output()
			if err != nil {
				t.Fatalf("cuobjdump: %v", err)
			}
			functions, err := parseResourceUsage(string(usage))
			if err != nil {
				t.Fatal(err)
			}
			report := parsePTXAS(t, string(log))
			if compareTools(t, report, functions) == 0 {
				t.Error("no entry compared")
			}

			image, err := os.ReadFile(cubin)
			if err != nil {
				t.Fatal(err)
			}
			f, err := readCubin(image)
			if err != nil {
				t.Fatal(err)
			}
			sum := 0
			for _, g := range f.globals() {
				sum += g.Size
			}
			if said := fmt.Sprintf(": %d bytes gmem", sum); !strings.Contains(string(log), said) {
				t.Errorf("the symbols add up to %d bytes, and ptxas does not say so:\n%s", sum, log)
			}
		})
	}
}
