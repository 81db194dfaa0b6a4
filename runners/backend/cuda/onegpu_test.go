package cuda

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/internal/runnable"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/worker"
	"github.com/kernelgate/kernelgate/runners/build/inspect"
)

// Whatever a job starts on a host of several GPUs, its worker with both sides, the sanitizers and the profiler, sees one of
// them, by its UUID, whatever the runner itself sees.
func TestOneGPUForAJob(t *testing.T) {
	const uuid = "GPU-5ca1ab1e-0000-0000-0000-000000000001"
	dir := t.TempDir()
	dump := func(who string) string { return "env >" + filepath.Join(dir, who) + "\n" }
	b := sanitized(t, dump("sanitizer")+`cp "$recorded/memcheck-clean.txt" "$log"`)
	getenv := b.config.Getenv
	b.config.GPU = uuid
	b.config.Getenv = func(name string) string {
		switch name {
		case "CUDA_VISIBLE_DEVICES":
			return "0,1,2"
		case "NVIDIA_VISIBLE_DEVICES":
			return "all"
		}
		return getenv(name)
	}
	if _, err := b.Sanitize(t.Context(), gateOf(policy.Memcheck), silent{}); err != nil {
		t.Fatal(err)
	}
	ncu := filepath.Join(dir, "ncu.sh")
	if err := runnable.Write(ncu, []byte("#!/bin/sh\n"+dump("ncu")+"exit 1\n")); err != nil {
		t.Fatal(err)
	}
	asked := profiling{shape: "small", metrics: []string{"sm__cycles_active.avg"}}
	if _, _, err := b.profileShape(t.Context(), inspect.NCU{Path: ncu}, asked); err == nil {
		t.Error("a profiler that fails is not told of")
	}
	b.config.Program = []string{"/bin/sh", "-c", dump("worker") + `read request; read start; echo '{"done":true}' >&3`}
	if err := b.start(t.Context(), worker.Request{Hold: true}, func(worker.Reply) {}); err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"sanitizer", "ncu", "worker"} {
		text, err := os.ReadFile(filepath.Join(dir, who))
		if err != nil {
			t.Errorf("%s: %v", who, err)
			continue
		}
		named := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool {
			return !strings.Contains(line, "VISIBLE_DEVICES") && !strings.Contains(line, "GPU-")
		})
		if !slices.Equal(named, []string{"CUDA_VISIBLE_DEVICES=" + uuid}) {
			t.Errorf("%s sees %q", who, named)
		}
	}
}
