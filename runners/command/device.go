package command

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

// Device is what the harness runs on. Without being told, the worker names the
// first GPU that it lends, or this machine's CPU; either has no limits to hold a
// time against, for the harness may use all of it.
func (w *Worker) Device() gates.Device {
	if w.config.Device.Kind != "" {
		return w.config.Device
	}
	if len(w.config.Devices) > 0 {
		about := gpuProperties("/proc/driver/nvidia/gpus/*/information", w.config.GPU)
		d := gates.Device{Kind: "gpu", Name: "GPU", UUID: cmp.Or(w.config.GPU, about["GPU UUID"])}
		if model := about["Model"]; model != "" {
			d.Name = model
		}
		return d
	}
	d := gates.Device{Kind: "cpu", Name: "CPU", Arch: runtime.GOARCH, Units: runtime.NumCPU()}
	if model := properties("/proc/cpuinfo")["model name"]; model != "" {
		d.Name = model
	}
	return d
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

// load is how busy the machine is: the fitness of a worker that was not given
// a better one.
func load() *gates.Fitness {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return nil
	}
	first, _, _ := strings.Cut(string(text), " ")
	average, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return nil
	}
	return &gates.Fitness{Load: average}
}
