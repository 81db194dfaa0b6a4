package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestOneGPU checks that a harness is told which GPU to use, and that evidence names that GPU.
func TestOneGPU(t *testing.T) {
	c := Config{Getenv: os.Getenv, GPU: "GPU-b", Timeout: time.Minute}
	out, failure, err := c.harness([]string{"/bin/sh", "-c", "env"}, t.TempDir()).run(t.Context(), request{mode: performance})
	if err != nil || failure != nil {
		t.Fatal(failure, err)
	}
	if n := strings.Count(out.stdout.String(), "VISIBLE_DEVICES"); n != 1 || !strings.Contains(out.stdout.String(), "CUDA_VISIBLE_DEVICES=GPU-b\n") {
		t.Errorf("it sees\n%s", out.stdout.String())
	}
	dir := t.TempDir()
	for folder, text := range map[string]string{"0000:17:00.0": "Model: NVIDIA L4\nGPU UUID: GPU-a\n", "0000:3b:00.0": "Model: NVIDIA H200\nGPU UUID: GPU-b\n"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, folder, "information"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for uuid, want := range map[string]string{"": "NVIDIA L4", "GPU-b": "NVIDIA H200", "GPU-c": ""} {
		if got := gpuProperties(filepath.Join(dir, "*/information"), uuid)["Model"]; got != want {
			t.Errorf("%q is %q, want %q", uuid, got, want)
		}
	}
}
