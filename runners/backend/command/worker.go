package command

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// Config is what a worker needs to know in addition to the job.
type Config struct {
	Scratch string        // folder for the built sides; the caller removes it
	Seed    uint64        // of secret cases, inputs and order; 0 draws an unpredictable one
	Timeout time.Duration // of one bench process; 0 is that of sandbox.Bench
	// Getenv is used for PATH, and for KERNELGATE_READ: folders, separated by colons, that the
	// commands may read in addition to the system's, such as a Python environment.
	Getenv  func(string) string
	Devices []string // device files that bench may use, such as /dev/nvidia0
	GPU     string   // UUID of the GPU to use; "" leaves the choice to bench
}

func (c Config) filled() (Config, error) {
	c.Timeout, c.Seed = cmp.Or(c.Timeout, sandbox.Bench.Limits().Wall), runners.Seed(c.Seed)
	for _, dir := range c.readable() {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" {
			return c, fmt.Errorf("KERNELGATE_READ names %q (write absolute folders, separated by colons, e.g. /opt/venv)", dir)
		}
	}
	return c, nil
}

func (c Config) readable() []string {
	return slices.DeleteFunc(filepath.SplitList(c.Getenv("KERNELGATE_READ")), func(dir string) bool { return dir == "" })
}

func (c Config) harness(argv []string, dir string) harness {
	return harness{argv: argv, dir: dir, path: c.Getenv("PATH"), read: c.readable(), devices: c.Devices, gpu: c.GPU, timeout: c.Timeout}
}

// Mode is the mode of the kernels that this backend measures.
const Mode = manifest.ModeCommand

// A Worker measures one job with the repository's own harness.
type Worker struct {
	runners.WithoutArtifacts
	runners.WithoutArms
	runners.WithoutDisassembly
	runners.WithoutExplanation
	runners.WithoutEnergy
	runners.WithoutReference
	job    runners.Job
	config Config
	rng    *rand.Rand
	sides  map[runners.Role]side
	log    strings.Builder
}

// A side is one built state of the kernel's folder.
type side struct {
	dir, variant string
	manifest     *manifest.Manifest
}

// NewWorker makes a worker for a job of command mode.
func NewWorker(_ context.Context, job runners.Job, config Config) (*Worker, error) {
	if job.Manifest.Mode != Mode || job.Manifest.Command == nil {
		return nil, fmt.Errorf("%s is a %s kernel: the command runner runs command kernels (write mode: command, or choose another runner)", job.Manifest.Name, job.Manifest.Mode)
	}
	config, err := config.filled()
	if err != nil {
		return nil, err
	}
	return &Worker{
		job: job, config: config, rng: rand.New(rand.NewPCG(config.Seed, 0)), sides: map[runners.Role]side{},
	}, nil
}

// Abilities returns what the backend can do.
func (w *Worker) Abilities() gates.Abilities { return runners.ModeOf(w.job.Manifest).Abilities }

// Seed returns the seed from which everything secret in the run is drawn.
func (w *Worker) Seed() uint64 { return w.config.Seed }

// Tools returns the commands that were used.
func (w *Worker) Tools() map[string]string {
	c := w.job.Manifest.Command
	return map[string]string{"build": strings.Join(c.Build, " "), "bench": strings.Join(c.Bench, " ")}
}

// BuildLog returns everything that the builds printed, and the last output of bench processes that
// failed.
func (w *Worker) BuildLog() string { return w.log.String() }

// Notes returns what a reader of the evidence must know about this mode.
func (w *Worker) Notes() []string {
	notes := []string{
		"Times and error figures are the harness's own words: in command mode kernelgate keeps neither the clock nor the reference. " +
			"Patched timers, work outside the timed region and forged results, which cuda mode makes impossible, are not detected.",
		"A sample is the median of the launches of one fresh process.",
	}
	if slices.Contains(w.job.Manifest.Sources, "**") {
		notes = append(notes, "The change may bring its own harness: kernel.yaml's sources name every file. Name only the kernel's files, and the base's harness measures both sides.")
	}
	return notes
}

// Sanitize reports that there are no sanitizers for commands.
func (w *Worker) Sanitize(context.Context, *policy.SanitizeGate, runners.Progress) (*gates.Sanitize, error) {
	return &gates.Sanitize{Skipped: "a harness of the repository's own is not run under sanitizers (have it run compute-sanitizer itself, and remove gates.sanitize from the policy)"}, nil
}

// Profile reports that there is no profiler for commands.
func (w *Worker) Profile(context.Context, *policy.ProfileGate, runners.Progress) (*gates.Profile, error) {
	return &gates.Profile{Skipped: "a harness of the repository's own is not profiled; remove gates.profile from the policy"}, nil
}

// request returns the part of a request that is the same for every process of a side.
func (s side) request(m mode) request {
	v, _ := s.manifest.Variant(s.variant) // it was built
	return request{mode: m, variant: v.Name, defines: s.manifest.Defines(s.variant)}
}

// ask runs one process of a side and parses its report.
func (w *Worker) ask(ctx context.Context, role runners.Role, r request, n needs) (*report, *gates.Failure, error) {
	s, ok := w.sides[role]
	if !ok {
		return nil, nil, fmt.Errorf("the %s was not built (build it before it is measured)", role)
	}
	h := w.config.harness(w.job.Manifest.Command.Bench, s.dir)
	out, failure, err := h.run(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	v := vocabulary{asked: r.shapes, others: w.job.Manifest.ShapeNames(), unit: w.job.Manifest.Command.Unit}
	said, failure := v.understand(out, failure, n)
	if failure != nil {
		fmt.Fprintf(&w.log, "# bench of the %s, %s mode: %s\n%s\n%s\n", role, r.mode, failure.Detail, strings.Join(h.argv, " "), tail(out.stderr.String()))
	}
	return said, failure, nil
}

// understand parses the output of a process, and determines how it failed if it did. Results
// printed before a failure are kept.
func (v vocabulary) understand(out *harnessOutput, failure *gates.Failure, n needs) (*report, *gates.Failure) {
	said, err := v.read(out.results.Bytes(), out.stdout.Bytes(), n)
	switch {
	case failure != nil && err == nil && said.problem != "" && failure.Kind == gates.FailureExit:
		return said, &gates.Failure{Kind: gates.FailureExit, Detail: "the harness says: " + said.problem}
	case failure != nil && err == nil:
		return said, failure
	case failure != nil:
		return &report{}, failure
	case err != nil:
		return &report{}, &gates.Failure{Kind: gates.FailureOutput, Detail: "the bench command's results can not be read: " + err.Error()}
	case said.problem != "":
		return said, &gates.Failure{Kind: gates.FailureExit, Detail: "the harness says: " + said.problem}
	}
	return said, nil
}

// tail returns the end of a long text.
func tail(text string) string {
	const most = 16 << 10
	if len(text) > most {
		text = "…" + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return text
}

// Device returns the device that the harness runs on: the first GPU that it may use, or this
// machine's CPU. Neither has limits to compare a time with, because the harness may use all of it.
func (w *Worker) Device() gates.Device {
	if len(w.config.Devices) > 0 {
		about := gpuProperties("/proc/driver/nvidia/gpus/*/information", w.config.GPU)
		return gates.Device{Kind: gates.DeviceGPU, Name: cmp.Or(about["Model"], "GPU"), UUID: cmp.Or(w.config.GPU, about["GPU UUID"])}
	}
	return gates.Device{Kind: gates.DeviceCPU, Name: runners.CPUName(), Arch: runtime.GOARCH, Units: runtime.NumCPU()}
}

// gpuProperties returns what the driver says about the GPU with that UUID, or about the first.
func gpuProperties(pattern, uuid string) map[string]string {
	files, _ := filepath.Glob(pattern) // the pattern is valid
	for _, file := range files {
		if about := properties(file); uuid == "" || about["GPU UUID"] == uuid {
			return about
		}
	}
	return map[string]string{}
}

// properties parses "name: value" lines. The first line with a name counts.
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
