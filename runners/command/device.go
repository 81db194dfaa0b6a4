package command

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// Device is what the harness runs on: the first GPU that it is lent, or this
// machine's CPU. Either has no limits to hold a time against, for the harness may
// use all of it.
func (w *Worker) Device() gates.Device {
	if len(w.config.Devices) > 0 {
		about := gpuProperties("/proc/driver/nvidia/gpus/*/information", w.config.GPU)
		return gates.Device{Kind: "gpu", Name: cmp.Or(about["Model"], "GPU"), UUID: cmp.Or(w.config.GPU, about["GPU UUID"])}
	}
	return gates.Device{Kind: "cpu", Name: runners.CPUName(), Arch: runtime.GOARCH, Units: runtime.NumCPU()}
}

// gpuProperties is what the driver says of the GPU with that UUID, or of the first.
func gpuProperties(pattern, uuid string) map[string]string {
	files, _ := filepath.Glob(pattern) // the pattern is right
	for _, file := range files {
		if about := properties(file); uuid == "" || about["GPU UUID"] == uuid {
			return about
		}
	}
	return map[string]string{}
}

// properties reads "name: value" lines; of a name that comes again the first
// counts.
func properties(file string) map[string]string {
	found := map[string]string{}
	text, err := os.ReadFile(file)
	if err != nil {
		return found
	}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); ok && found[name] == "" {
			found[name] = strings.TrimSpace(value)
		}
	}
	return found
}
