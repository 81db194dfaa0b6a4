// Package measure takes a job to evidence on this host: it picks the backend
// that the manifest's mode asks for, has it gather, and collects what it leaves
// behind. It judges nothing, and knows nothing of repositories or pull requests.
package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/command"
	"github.com/kernelgate/kernelgate/runners/cpu"
	"github.com/kernelgate/kernelgate/runners/cuda"
)

// What a Config's Runner may be.
const (
	Auto = "auto" // what the kernel's mode asks for
	CPU  = "cpu"  // kernels of mode cpu, no others
	CUDA = "cuda" // kernels of mode cuda, no others
)

// Runners lists what a Config's Runner may be.
func Runners() []string { return []string{Auto, CPU, CUDA} }

// Config is what a run may be told beside the job.
type Config struct {
	Scratch      string   // folder for what is built; the caller removes it
	Cache        string   // folder of the build cache; "" keeps none
	ManifestText string   // the base's kernel.yaml
	Worker       []string // command that starts a GPU worker
	Device       int      // which GPU
	Runner       string   // auto, cpu or cuda; "" is auto

	// Static compiles and reads resources alone, for Arch or the manifest's first
	// architecture: it needs no GPU. The policy must ask for no more.
	Static bool
	Arch   string

	Rivals bool   // time the manifest's rivals too
	Seed   uint64 // of secret cases, inputs and order; 0 draws one that nobody knows before
	Getenv func(string) string
}

// An Outcome is what a run leaves behind.
type Outcome struct {
	Evidence  *gates.Evidence
	BuildLog  string   // what the compilers printed
	Artifacts []string // files in Scratch worth keeping
}

// Run gathers evidence about the job. Where the job's record knows both sides'
// machine code it goes on from there (runners.Record), in whatever process and on
// whatever host of the same kind.
func Run(ctx context.Context, job runners.Job, c Config, p runners.Progress) (Outcome, error) {
	if why := LeftOut(c.Runner, job.Manifest); why != "" {
		return Outcome{}, fmt.Errorf("measuring %s: %s", job.Manifest.Name, why)
	}
	worker, err := open(ctx, job, c)
	if err != nil {
		return Outcome{}, err
	}
	if speaks, ok := worker.(interface{ Notes() []string }); ok {
		job.Notes = slices.Concat(job.Notes, speaks.Notes())
	}
	var out Outcome
	if out.Evidence, err = runners.Gather(ctx, job, worker, p); err != nil {
		return Outcome{}, err
	}
	if c.Rivals {
		if out.Evidence.Rivals, err = rivals(ctx, job, out.Evidence, c, p); err != nil {
			return Outcome{}, err
		}
	}
	out.BuildLog = worker.BuildLog()
	if keeps, ok := worker.(interface{ Artifacts() []string }); ok {
		out.Artifacts = keeps.Artifacts()
	}
	return out, nil
}

// LeftOut says why a runner does not measure a kernel; it is empty where it
// does.
func LeftOut(runner string, m *kernels.Manifest) string {
	if runner == "" || runner == Auto || runner == string(m.Mode) {
		return ""
	}
	switch {
	case runner == CPU && m.Mode == kernels.ModeCUDA:
		return "it is a cuda kernel, and only a GPU can measure it (leave --runner out on a host with one, or with --static to compile it and judge its resources alone)"
	case m.Mode == kernels.ModeCommand:
		return fmt.Sprintf("it is measured by a command of its own, not by the %s runner (leave --runner out)", runner)
	}
	return fmt.Sprintf("it is a %s kernel, not one for the %s runner (leave --runner out)", m.Mode, runner)
}

// A backend that keeps what its compiler printed.
type backend interface {
	runners.Backend
	BuildLog() string
}

func open(ctx context.Context, job runners.Job, c Config) (backend, error) {
	switch job.Manifest.Mode {
	case kernels.ModeCPU:
		return cpu.NewWorker(ctx, job, cpu.Config{Scratch: c.Scratch, Seed: c.Seed, Getenv: c.Getenv})
	case kernels.ModeCUDA:
		return openCUDA(ctx, job, c)
	case kernels.ModeCommand:
		return command.NewWorker(ctx, job, c.command())
	}
	return nil, fmt.Errorf("no runner measures kernels of mode %q", job.Manifest.Mode)
}

func openCUDA(ctx context.Context, job runners.Job, c Config) (backend, error) {
	config := cuda.Config{
		Scratch: c.Scratch, Cache: c.Cache, Manifest: c.ManifestText, Program: c.Worker, Ordinal: c.Device,
		Seed: c.Seed, Getenv: c.Getenv,
	}
	if c.Static {
		config.Arch = c.Arch
		if config.Arch == "" {
			config.Arch = strings.TrimRight(string(job.Manifest.ArchOf(job.Candidate.Variant)[0]), "af")
		}
	}
	b, err := cuda.New(ctx, job, config)
	if errors.Is(err, cuda.ErrNoGPU) {
		advice := "check it on a host with one, or compile it and judge its resources alone with --static"
		if c.Runner == CUDA {
			advice = "--runner cuda needs one: use it on a host with an NVIDIA GPU and its driver, and see kernelgate doctor"
		}
		return nil, fmt.Errorf("measuring %s: %w (%s)", job.Manifest.Name, err, advice)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (c Config) command() command.Config {
	return command.Config{Scratch: c.Scratch, Seed: c.Seed, Getenv: c.Getenv, Devices: gpuDevices()}
}

// gpuDevices is what a harness needs to reach the host's GPUs, if it has any.
func gpuDevices() []string {
	files, _ := filepath.Glob("/dev/nvidia*")
	return slices.DeleteFunc(files, func(file string) bool {
		info, err := os.Stat(file)
		return err != nil || info.Mode()&os.ModeCharDevice == 0
	})
}
