// Package measure turns a job into evidence on this host. It picks the backend for the manifest's
// mode, lets it gather evidence, and collects its artifacts. Runners and kernelgate check call it.
// It judges nothing, and knows nothing about repositories or pull requests.
package measure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/command"
	"github.com/kernelgate/kernelgate/runners/backend/cpu"
	"github.com/kernelgate/kernelgate/runners/backend/cuda"
	"github.com/kernelgate/kernelgate/runners/backend/gpus"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/gather"
)

// The values of a Config's Runner. A mode means only the kernels of that mode.
const (
	Auto = "auto" // the backend for the kernel's mode
	CPU  = string(cpu.Mode)
	CUDA = string(cuda.Mode)
)

// Runners lists the values of a Config's Runner.
func Runners() []string { return []string{Auto, CPU, CUDA} }

// Config says how this host measures, and what a run needs to know in addition to the job.
type Config struct {
	Worker []string // command that starts a GPU worker
	GPU    gpus.GPU // which GPU; the zero value is the first that CUDA lists
	Runner string   // auto, cpu or cuda; "" means auto
	Cache  string   // folder of the build cache; "" means no cache
	Name   string   // name of the runner, for messages; "" means this host

	Includes IncludeSets // headers that manifests include by name: <cutlass>

	// Toolchains are further compilers of this host, which policies may pin; see
	// toolchain.Installed.
	Toolchains []string

	// Static only compiles and reads resources, for Arch or the manifest's first architecture. It
	// needs no GPU. The policy must ask for no more.
	Static bool
	Arch   string

	Rivals bool                // also time the manifest's rivals, for information
	Seed   uint64              // of secret cases, inputs and order; 0 draws an unpredictable one
	Getenv func(string) string // nil means os.Getenv
	Log    *slog.Logger        // also gets the progress; nil discards

	turns bool // several backends take turns, see Open
}

// Measure gathers evidence about the job. Builds go to scratch, which the caller removes. If the
// job's record knows both sides' machine code, Measure continues from that evidence
// (runners.Record), whichever process or host of the same kind gathered it.
func (c Config) Measure(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error) {
	if why := LeftOut(c.Runner, job.Manifest); why != "" {
		return runners.Measured{}, fmt.Errorf("measuring %s: %s", job.Manifest.Name, why)
	}
	if c.Log != nil {
		p = both{p, &runners.Plain{Out: lines{c.Log.With("kernel", job.Manifest.Name)}}}
	}
	ctx, end := context.WithCancel(ctx) // also ends what a backend has started ahead
	defer end()
	sets, err := c.layIn(ctx, job)
	if err != nil {
		return runners.Measured{Evidence: job.Fault(err)}, nil
	}
	var handed *toolchain.Handover
	if job.Builds != "" {
		handed = &toolchain.Handover{Dir: job.Builds, Log: c.Log}
	}
	worker, err := c.open(ctx, job, scratch, handed)
	if err != nil {
		return runners.Measured{}, err
	}
	job.Notes = slices.Concat(job.Notes, worker.Notes())
	var out runners.Measured
	if out.Evidence, err = gather.Gather(ctx, job, worker, p); err != nil {
		return runners.Measured{}, err
	}
	if handed != nil && handed.Taken() > 0 {
		out.Evidence.Notes = append(slices.Clip(out.Evidence.Notes), "Compiled on "+job.Builder+".")
	}
	if c.Static {
		if err := gather.CheckReference(ctx, job, out.Evidence, worker, p); err != nil {
			return runners.Measured{}, err
		}
	}
	maps.Copy(out.Evidence.Provenance.Tools, sets)
	if c.Rivals {
		if out.Evidence.Rivals, err = rivals(ctx, job, out.Evidence, c.command(scratch), p); err != nil {
			return runners.Measured{}, err
		}
	}
	out.BuildLog, out.Artifacts = worker.BuildLog(), worker.Artifacts()
	return out, nil
}

// Open returns the backend for the job, for a caller that takes the steps itself (gather.Steps).
// Builds go to scratch, which the caller removes. Everything that the backend starts ends with ctx.
// Several of them may take turns. The include sets of the sides must be in their folders: see LayIn.
func (c Config) Open(ctx context.Context, job runners.Job, scratch string) (runners.Backend, error) {
	if why := LeftOut(c.Runner, job.Manifest); why != "" {
		return nil, fmt.Errorf("measuring %s: %s", job.Manifest.Name, why)
	}
	c.turns = true
	return c.open(ctx, job, scratch, nil)
}

// LayIn copies the include sets that a side names into its folder. The job says which manifest the
// side is built by.
func (c Config) LayIn(ctx context.Context, job runners.Job, side runners.Side) error {
	job.Baseline, job.Candidate = nil, side
	_, err := c.layIn(ctx, job)
	return err
}

// getenv returns the environment in which compilers and harnesses are found.
func (c Config) getenv() func(string) string {
	if c.Getenv == nil {
		return os.Getenv
	}
	return c.Getenv
}

// layIn copies the include sets that the job names into its folders.
func (c Config) layIn(ctx context.Context, job runners.Job) (map[string]string, error) {
	name := "this host"
	if c.Name != "" {
		name = "the runner " + c.Name
	}
	sets := c.Includes
	if sets.miss(job) {
		found := FoundSets(ctx, c.getenv())
		maps.Copy(found, sets)
		sets = found
	}
	return sets.layIn(job, name)
}

// both reports progress to the caller and to the log.
type both [2]runners.Progress

func (b both) Report(e runners.Event) {
	for _, p := range b {
		p.Report(e)
	}
}

// lines logs each write as one line.
type lines struct{ log *slog.Logger }

func (l lines) Write(p []byte) (int, error) {
	l.log.Info(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

// LeftOut says why a runner does not measure a kernel. It is empty if the runner does.
func LeftOut(runner string, m *manifest.Manifest) string {
	if runner == "" || runner == Auto || runner == string(m.Mode) {
		return ""
	}
	switch info := runners.ModeOf(m); {
	case runner == CPU && info.Device == gates.DeviceGPU:
		return "it is a " + string(m.Mode) + " kernel, and only a GPU can measure it (leave --runner out on a host with one, or with --static only to compile it and judge its resources)"
	case info.OwnHarness():
		return fmt.Sprintf("its own command measures it, not the %s runner (leave --runner out)", runner)
	}
	return fmt.Sprintf("it is a %s kernel, not one for the %s runner (leave --runner out)", m.Mode, runner)
}

// An opener opens the backend for a job.
type opener func(c Config, ctx context.Context, job runners.Job, scratch string, builds *toolchain.Handover) (runners.Backend, error)

// backends has the opener for each mode. What else follows from a mode is in runners.ModeOf, because the bot needs it and links no
// backend.
var backends = map[manifest.Mode]opener{cpu.Mode: Config.openCPU, cuda.Mode: Config.openCUDA, command.Mode: Config.openCommand}

func (c Config) open(ctx context.Context, job runners.Job, scratch string, builds *toolchain.Handover) (runners.Backend, error) {
	if open, ok := backends[job.Manifest.Mode]; ok {
		return open(c, ctx, job, scratch, builds)
	}
	return nil, fmt.Errorf("no runner measures kernels of mode %q", job.Manifest.Mode)
}

func (c Config) openCPU(ctx context.Context, job runners.Job, scratch string, _ *toolchain.Handover) (runners.Backend, error) {
	return opened(cpu.NewWorker(ctx, job, cpu.Config{Scratch: scratch, Seed: c.Seed, Getenv: c.getenv()}))
}

func (c Config) openCommand(ctx context.Context, job runners.Job, scratch string, _ *toolchain.Handover) (runners.Backend, error) {
	return opened(command.NewWorker(ctx, job, c.command(scratch)))
}

func (c Config) openCUDA(ctx context.Context, job runners.Job, scratch string, builds *toolchain.Handover) (runners.Backend, error) {
	return opened(c.newCUDA(ctx, job, scratch, builds))
}

// opened returns no backend with an error. A nil pointer in the interface would look like one.
func opened[B runners.Backend](b B, err error) (runners.Backend, error) {
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (c Config) newCUDA(ctx context.Context, job runners.Job, scratch string, builds *toolchain.Handover) (*cuda.Backend, error) {
	config := cuda.Config{
		Scratch: scratch, Cache: c.Cache, Program: c.Worker, GPU: c.GPU.UUID, Devices: c.GPU.Files("/dev"), Toolchains: c.Toolchains, Handover: builds,
		Seed: c.Seed, Getenv: c.getenv(), Turns: c.turns,
	}
	if c.Static {
		config.Arch = c.Arch
		if config.Arch == "" {
			config.Arch = strings.TrimRight(string(job.Of(job.Candidate).ArchOf(job.Candidate.Variant)[0]), "af")
		}
	}
	b, err := cuda.New(ctx, job, config)
	if errors.Is(err, cuda.ErrNoGPU) {
		advice := "check it on a host with one, or only compile it and judge its resources with --static"
		if c.Runner == CUDA {
			advice = "--runner cuda needs one: use it on a host with an NVIDIA GPU and its driver, and see kernelgate doctor"
		}
		return nil, fmt.Errorf("measuring %s: %w (%s)", job.Manifest.Name, err, advice)
	}
	return b, err
}

func (c Config) command(scratch string) command.Config {
	return command.Config{Scratch: scratch, Seed: c.Seed, Getenv: c.getenv(), GPU: c.GPU.UUID, Devices: c.GPU.Files("/dev")}
}

// rivals times the manifest's other implementations on the shapes on which the candidate was timed.
// A rival that cannot be timed is recorded as such: it is no fault of the run. Only a cancelled
// context returns an error.
func rivals(ctx context.Context, job runners.Job, e *gates.Evidence, c command.Config, p runners.Progress) ([]gates.Rival, error) {
	if e.Fault != "" || e.Performance == nil || len(e.Performance.Rounds) == 0 {
		return nil, nil
	}
	var shapes []manifest.Shape
	for _, name := range gates.TimedShapes(job.Rule(), e) {
		if s, ok := job.Manifest.Shape(name); ok {
			shapes = append(shapes, s)
		}
	}
	var all []gates.Rival
	for i, r := range job.Manifest.Rivals {
		p.Report(runners.Event{Gate: "rivals", Text: "timing " + r.Name, Done: i, Total: len(job.Manifest.Rivals), Unit: "rivals"})
		times, err := command.RunRival(ctx, r, job.Trusted, shapes, c)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("timing the rivals of %s: %w", job.Manifest.Name, context.Cause(ctx))
		}
		if err != nil {
			all = append(all, gates.Rival{Name: r.Name, Failure: strings.TrimPrefix(err.Error(), "timing the rival "+r.Name+": ")})
		}
		all = append(all, times...)
	}
	return all, nil
}

// DumpCase builds both sides of the job and runs one case on them.
func (c Config) DumpCase(ctx context.Context, job runners.Job, one runners.Case, scratch string, p runners.Progress) (*runners.CaseDump, error) {
	if runners.ModeOf(job.Manifest).OwnHarness() {
		return nil, usage.Errorf("%s has its own harness, and only that sees its outputs: a single case cannot be shown (run the harness by hand with KERNELGATE_MODE=correctness)", job.Manifest.Name)
	}
	if _, err := c.layIn(ctx, job); err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx) // of what a backend has begun ahead, too
	defer end()
	b, err := c.open(ctx, job, scratch, nil)
	if err != nil {
		return nil, err
	}
	build := func(role runners.Role, side runners.Side) error {
		p.Report(runners.Event{Gate: gates.GateBuild, Text: "compiling the " + string(role)})
		built, err := b.Build(ctx, role, side)
		if err == nil && !built.OK {
			err = usage.Errorf("the %s does not build: %s", role, built.Error)
		}
		return err
	}
	if job.Baseline != nil {
		if err := build(runners.Baseline, *job.Baseline); err != nil {
			return nil, err
		}
	}
	if err := build(runners.Candidate, job.Candidate); err != nil {
		return nil, err
	}
	p.Report(runners.Event{Gate: gates.GateCorrectness, Text: one.Name()})
	found, err := b.DumpCase(ctx, one)
	if err != nil {
		return nil, fmt.Errorf("repeating the case %s: %w", one.Name(), err)
	}
	return found, nil
}
