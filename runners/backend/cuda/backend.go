// Package cuda gathers evidence about CUDA kernels on this machine's GPU. It
// builds cubins in the sandbox and starts a fresh worker process (package
// worker) for every comparison and every round; it opens no context itself.
package cuda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	sides "github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/worker"
	"github.com/kernelgate/kernelgate/runners/build/pyref"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// Mode is the mode of the kernels that this backend measures.
const Mode = manifest.ModeCUDA

// Config is what a backend needs in addition to the job.
type Config struct {
	Scratch       string              // folder for cubins; the caller removes it
	Cache         string              // folder of the build cache; "" keeps none
	Toolchains    []string            // additional compilers of this host, see toolchain.Installed
	Handover      *toolchain.Handover // of builds from one host to another; may be nil
	Program       []string            // starts a worker: this program with the arguments that lead to Worker
	GPU           string              // UUID of the GPU to use; "" means the first that the driver lists
	Devices       []string            // its device files, for a reference in Python that computes on the GPU
	Arch          string              // compile for this architecture and use no GPU; "" means the GPU's
	LaunchTimeout time.Duration       // of one launch; 0 is sandbox.LaunchTime
	Seed          uint64              // of secret cases, inputs and order; 0 draws a random seed
	Getenv        func(string) string

	// Turns means that several backends take turns on the GPU. A backend then prepares no worker for
	// its next round: its contexts would disturb the round of another.
	Turns bool
}

// A Backend measures one job on one GPU.
type Backend struct {
	runners.WithoutNotes
	runners.ArmSet[*sides.Built]
	job        runners.Job
	config     Config
	cuda       *toolchain.CUDA
	installed  toolchain.Installed
	found      *found
	device     gates.Device
	seed       uint64 // the seed of everything secret
	rng        *rand.Rand
	sides      map[runners.Role]*sides.Built
	kinds      map[runners.Role]*codes
	sampled    map[toolchain.CodePlace]map[int]int // by Explain: how often warps were found at the instructions of a kernel
	made       map[madeCode]*codes
	compiling  map[string]*compilation
	micros     map[string]float64 // the rough time of a launch, by shape
	calibrated []manifest.Shape   // the shapes of micros
	spent      gates.Spent        // of the last comparisons
	whole      context.Context    // what is started before its gate ends with it
	tools      *tools             // running sanitizers
	next       *next              // a worker that is started before its round
	xids       xidSource          // nil if NVML reports no Xids
	told       int                // files that describe its code to the process of a side
	python     *pyref.Reference   // nil if the reference runs on the device
	log        strings.Builder
	once       bool // nothing is compiled twice, see BuildArm
}

// found is the pinned compilers that were found, because they were needed. The arms of a search share it.
type found struct {
	mu      sync.Mutex
	cudas   map[policy.Toolchain]*toolchain.CUDA
	tritons map[policy.Toolchain]*toolchain.Triton // the zero pin means the host's default
}

func newFound() *found {
	return &found{cudas: map[policy.Toolchain]*toolchain.CUDA{}, tritons: map[policy.Toolchain]*toolchain.Triton{}}
}

// New finds the GPU and the compiler. Work that the backend starts ahead of its gate ends with ctx,
// the context of the whole run.
func New(ctx context.Context, job runners.Job, config Config) (*Backend, error) {
	if job.Manifest.Mode != Mode {
		return nil, fmt.Errorf("%s is a %s kernel: the cuda runner builds cuda kernels", job.Manifest.Name, job.Manifest.Mode)
	}
	installed := toolchain.Installed{Paths: config.Toolchains, Getenv: config.Getenv, Handover: config.Handover}
	if config.Cache != "" {
		installed.Cache = &toolchain.Cache{Dir: config.Cache}
	}
	var compiler *toolchain.CUDA
	var missing error
	found := make(chan struct{})
	go func() {
		defer close(found)
		compiler, missing = installed.CUDA(ctx, judgePin(job))
	}()
	device := gates.Device{Kind: gates.DeviceGPU, Name: "no GPU: compiled only", Arch: config.Arch}
	var xids xidSource
	var err error
	if config.Arch == "" {
		var gpu driver.Properties
		if gpu, err = find(config.GPU); err == nil {
			device, xids = probe(gpu), watchXids(gpu)
		}
	}
	<-found
	// The GPU comes first: a host without a GPU should not have to install a compiler to learn
	// that.
	if err != nil {
		return nil, err
	}
	if missing != nil {
		return nil, missing
	}
	b := &Backend{
		job: job, config: config, cuda: compiler, installed: installed, found: newFound(), device: device, sides: map[runners.Role]*sides.Built{}, kinds: map[runners.Role]*codes{}, made: map[madeCode]*codes{}, compiling: map[string]*compilation{},
		xids: xids, whole: ctx,
	}
	b.config.LaunchTimeout = cmp.Or(b.config.LaunchTimeout, sandbox.LaunchTime)
	b.seed = runners.Seed(b.config.Seed)
	b.rng = rand.New(rand.NewPCG(b.seed, 0))
	if job.Manifest.Reference.Python() {
		b.python = pyref.StartReference(ctx, job, pyref.ReferenceConfig{
			Scratch: config.Scratch, Getenv: config.Getenv, Devices: config.Devices, GPU: config.GPU, OnCPU: config.Arch != "",
		})
	}
	return b, nil
}

// Seed returns the seed of everything secret in the run.
func (b *Backend) Seed() uint64 { return b.seed }

// Abilities returns what the backend can do.
func (b *Backend) Abilities() gates.Abilities { return runners.ModeOf(b.job.Manifest).Abilities }

// Device returns the GPU.
func (b *Backend) Device() gates.Device { return b.device }

// Tools returns the programs that took part.
func (b *Backend) Tools() map[string]string {
	tools := map[string]string{"nvcc": b.cuda.Version}
	b.found.mu.Lock()
	defer b.found.mu.Unlock()
	for _, t := range b.found.tritons {
		tools["python"] = t.PythonVersion
	}
	if t := b.found.tritons[policy.Toolchain{}]; t != nil {
		tools["triton"] = t.Version
	}
	maps.Copy(tools, b.python.Tools())
	return tools
}

// BuildLog returns everything that the compiler printed.
func (b *Backend) BuildLog() string { return b.log.String() }

// Artifacts returns the files to keep with the evidence: profiler reports.
func (b *Backend) Artifacts() []string {
	files, _ := filepath.Glob(filepath.Join(b.config.Scratch, "*.ncu-rep"))
	return files
}

// archFor picks the best architecture of the list for the device: its own with the
// architecture-specific instructions, then its own without them.
func archFor(device string, archs []manifest.Arch) (string, error) {
	for _, suffix := range []string{"a", "f", ""} {
		if i := slices.Index(archs, manifest.Arch(device+suffix)); i >= 0 {
			return string(archs[i]), nil
		}
	}
	return "", fmt.Errorf("is built for %s, but the GPU is %s (add %s to arch in kernel.yaml)", strict.JoinWords(archs), device, device)
}

// buildVariant compiles one variant of a side. It builds nothing if the variant is refused.
func (b *Backend) buildVariant(ctx context.Context, role runners.Role, side runners.Side) (gates.Build, *sides.Built, error) {
	m := b.job.Of(side)
	variant, err := m.Variant(side.Variant)
	if err != nil {
		return gates.Build{}, nil, err
	}
	arch, err := archFor(b.device.Arch, m.ArchOf(side.Variant))
	if err != nil {
		return gates.Build{}, nil, runners.SetupErrorf("variant %s of %s %w", side.Variant, m.Name, err)
	}
	build := gates.Build{
		Variant: side.Variant, Source: variant.Source, Toggles: m.ToggleValues(side.Variant),
		Flags: m.CompilerFlags(side.Variant), Arch: arch,
	}
	by, err := b.compilerOf(ctx, side, arch)
	if err != nil {
		return build, nil, err
	}
	build.Compiler, build.Digest = by.String(), by.digest()
	if n, ok := by.(nvcc); ok {
		if build.Shadowed, err = n.cuda.Shadowed(ctx, side.Dir, m); err != nil {
			return build, nil, err
		}
	}
	source := m.SourceFile(variant)
	start := time.Now()
	k := &codes{side: side, by: by, cubins: map[string]*toolchain.Cubin{}, entries: map[string]string{}}
	var all *tuning
	var asked []manifest.Special
	var cubins []*toolchain.Cubin
	if m.TriesAll() {
		all, err = b.compileAll(ctx, role, k, m)
	} else {
		asked, cubins, err = b.compileKinds(ctx, role, k, m)
	}
	build.Seconds = time.Since(start).Seconds()
	if refusal, ok := errors.AsType[*output.CompileError](err); ok {
		build.Error, build.Diagnostics = refusal.Summary, refusal.Diagnostics
		return build, nil, nil
	}
	if err != nil {
		return build, nil, err
	}
	k.add(asked, cubins)
	if all != nil {
		if err := b.tune(ctx, role, all, k, m, &build); err != nil || build.Error != "" {
			return build, nil, err
		}
		m, cubins = b.of(k), slices.Collect(maps.Values(k.cubins))
	}
	if m := mismatched(cubins[0], m, side.Variant); m != nil {
		fmt.Fprintf(&b.log, "%s\n%s", m.summary, m.table())
		build.Error, build.Diagnostics = m.summary, append(m.diagnostics(source), cubins[0].Diagnostics...)
		return build, nil, nil
	}
	build.OK, build.EntryLine, build.Cached = true, cubins[0].Kernels[0].Line, true
	addTuning(&build, cubins, all == nil)
	for _, cubin := range cubins {
		build.Cached = build.Cached && cubin.Cached
		build.Diagnostics = append(build.Diagnostics, cubin.Diagnostics...)
	}
	if all != nil {
		build.Code = all.code()
	} else if build.Code, err = k.code(m); err != nil {
		return build, nil, err
	}
	if err := resources(&build, k, m, b.shapesOf(role, side.Variant)); err != nil {
		return build, nil, err
	}
	b.made[madeCode{role, side.Variant}] = k
	if b.sideOf(role).Variant != manifest.Choice {
		b.kinds[role] = k
	}
	built, err := b.built(role, k, m)
	return build, built, err
}

// Correctness compares the sides with the reference.
func (b *Backend) Correctness(ctx context.Context, gate *policy.CorrectnessGate, p runners.Progress) (*gates.Correctness, error) {
	m := b.job.Manifest
	result := &gates.Correctness{Tolerance: gates.Tolerance(m.Tolerance), Tolerances: runners.OwnTolerances(m)}
	var cases []worker.Case
	asked := runners.Cases(b.job, gate, b.rng)
	for _, c := range asked {
		cases = append(cases, worker.Case{Case: c, Unquantised: c.EndToEnd(m)})
	}
	report := func() {
		if done := len(result.Cases); done < len(cases) {
			p.Report(runners.Event{Gate: gates.GateCorrectness, Text: asked[done].Name(), Done: done, Total: len(cases), Unit: "cases"})
		}
	}
	report()
	// Neither is timed, so both can run at once. If one of them cannot start, its gate reports
	// that.
	if gate := b.job.Rule().Gates.Sanitize; gate != nil {
		b.tools, _ = b.beginTools(b.whole, gate)
	}
	var timed []manifest.Shape
	if b.sides[runners.Baseline] != nil {
		timed = b.timed()
	}
	each := func(c gates.Case) {
		result.Cases = append(result.Cases, c)
		report()
	}
	failure, err := b.cases(ctx, cases, timed, each)
	if failure != nil {
		each(b.uncovered(cases, timed, failure))
	}
	result.Spent = b.spent
	return result, err
}

// DumpCase runs one case and keeps the outputs of both sides. Both are built.
func (b *Backend) DumpCase(ctx context.Context, c runners.Case) (*runners.CaseDump, error) {
	cases := []worker.Case{{Case: c, Look: true}}
	if failure, err := b.cover(ctx, cases, nil); err != nil {
		return nil, err
	} else if failure != nil {
		l := &runners.CaseDump{Case: c.Evidence()}
		l.Case.Failure = failure
		return l, nil
	}
	request, err := b.request(ctx, worker.TaskCases)
	if err != nil {
		return nil, err
	}
	request.Cases = cases
	var l *runners.CaseDump
	err = b.start(ctx, request, func(r worker.Reply) {
		switch {
		case r.Look != nil:
			l = r.Look
		case r.Case != nil && l == nil:
			l = &runners.CaseDump{Case: *r.Case} // it failed, and left no output to show
		}
	})
	if err == nil && l == nil {
		err = fmt.Errorf("the worker said nothing of the case %s", c.Name())
	}
	return l, err
}

// cases compares outputs, and also measures roughly how long launches take on the timed shapes. The
// failure is that of a candidate that has no code for one of the sizes.
func (b *Backend) cases(ctx context.Context, cases []worker.Case, timed []manifest.Shape, each func(gates.Case)) (*gates.Failure, error) {
	if failure, err := b.cover(ctx, cases, timed); err != nil || failure != nil {
		return failure, err
	}
	request, err := b.request(ctx, worker.TaskCases)
	if err != nil {
		return nil, err
	}
	request.Cases = cases
	for _, shape := range timed {
		request.Plans = append(request.Plans, worker.Plan{Shape: shape})
	}
	// A case that kills the candidate ends the worker's task. If the baseline fails in the same
	// way, a new worker runs the remaining cases.
	var done []gates.Case
	for {
		before := len(done)
		err := b.start(ctx, request, func(r worker.Reply) {
			if r.Case != nil {
				done = append(done, *r.Case)
				each(*r.Case)
			}
			if r.Micros != nil {
				b.micros, b.calibrated, b.spent = r.Micros, timed, r.Spent
			}
		})
		if err != nil || len(done) == before || done[len(done)-1].Failure == nil || !runners.GoesOn(done) {
			return nil, err
		}
		request.Cases = cases[len(done):]
	}
}

func (b *Backend) request(ctx context.Context, task string) (r worker.Request, err error) {
	r = worker.Request{
		Task: task, Manifest: b.job.ManifestText, Timeout: b.config.LaunchTimeout,
		Program: append(slices.Clone(b.config.Program), sideWord), Seed: b.rng.Uint64() >> 16,
		Baseline: b.sides[runners.Baseline], Candidate: b.sides[runners.Candidate], Recorded: b.job.Recorded,
	}
	for _, recording := range b.job.Recordings() {
		r.Recordings = append(r.Recordings, recording.Name)
	}
	if task == worker.TaskLaunch {
		return r, nil
	}
	if b.python != nil {
		r.Python, err = b.pythonPipes()
	} else {
		r.Reference, err = b.reference(ctx)
	}
	if err == nil {
		r.Oracle, err = b.oracle(ctx)
	}
	return r, err
}
