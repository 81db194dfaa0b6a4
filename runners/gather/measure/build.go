package measure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/bundle"
	"github.com/kernelgate/kernelgate/runners/gather"
)

// Build compiles both sides of a job, without a GPU, for every GPU that the candidate is built for.
// If all of these lead to the same verdict and need no measurement for it, for example because the
// machine code is equal or the candidate does not compile, the result is the evidence that Measure
// would have gathered. Otherwise the job stays open, and the artifacts include the compiled code
// for the measuring runner. The job also stays open after a fault of this host, which is no verdict
// on anything.
func (c Config) Build(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error) {
	devices := Devices(job)
	if len(devices) == 0 || job.Of(job.Candidate).Compiler == manifest.Program {
		return runners.Measured{}, fmt.Errorf("%s is no kernel that is compiled ahead of its measuring", job.Manifest.Name)
	}
	if c.Log != nil {
		p = both{p, &runners.Plain{Out: lines{c.Log.With("kernel", job.Manifest.Name)}}}
	}
	job.Policy = job.Asked()
	job.Record = nil // what is known about the code is known for one GPU
	sets, err := c.layIn(ctx, job)
	if err != nil {
		return runners.Measured{Evidence: job.Fault(err), Open: true}, nil
	}
	given := &toolchain.Handover{Dir: filepath.Join(scratch, "builds"), Gives: true, Log: c.Log}
	var all []compiled
	for _, device := range devices {
		one, err := c.compile(ctx, job, device, filepath.Join(scratch, device), given, p)
		if err != nil {
			return runners.Measured{}, err
		}
		if one.worker != nil {
			maps.Copy(one.evidence.Provenance.Tools, sets)
		}
		all = append(all, one)
	}
	out := runners.Measured{Evidence: all[0].evidence}
	if decided(job, all) {
		out.Evidence.Notes = append(slices.Clip(out.Evidence.Notes), CompiledFor(devices, nil))
		out.BuildLog = logsOf(all)
		return out, nil
	}
	out.Open = true
	if i := slices.IndexFunc(all, func(one compiled) bool { return one.evidence.Fault != "" }); i >= 0 {
		out.Evidence = all[i].evidence // a runner that measures will report the fault
	}
	for _, one := range all {
		if one.evidence.Fault == "" && gates.Next(job.Policy, one.evidence).Gate != "" {
			p.Report(runners.Event{Gate: gates.GateBuild, Text: "compiling the reference", Detail: one.evidence.Device.Arch})
			one.worker.Prepare(ctx)
		}
	}
	out.BuildLog = logsOf(all)
	file := filepath.Join(scratch, runners.BuildsFile)
	packed, err := bundle.PackBuilds(given.Dir, file)
	if ctx.Err() != nil {
		return runners.Measured{}, context.Cause(ctx)
	}
	if err != nil {
		out.BuildLog += fmt.Sprintf("\nthe builds are not handed on: %v\n", err)
	} else if packed {
		out.Artifacts = []string{file}
	}
	return out, nil
}

// compiled is the result of a job for one kind of GPU.
type compiled struct {
	evidence *gates.Evidence
	worker   *cuda.Backend // nil if the evidence is a fault
}

func (c Config) compile(ctx context.Context, job runners.Job, device, scratch string, given *toolchain.Handover, p runners.Progress) (compiled, error) {
	if err := errors.Join(os.MkdirAll(scratch, 0o755), os.Chmod(scratch, 0o755)); err != nil {
		return compiled{}, fmt.Errorf("making room for the code for %s: %w", device, err)
	}
	c.Static, c.Arch = true, device
	worker, err := c.newCUDA(ctx, job, scratch, given)
	if err != nil {
		return compiled{evidence: job.Fault(err)}, ctx.Err()
	}
	e, err := gather.Compile(ctx, job, worker, forDevice{p, device})
	return compiled{e, worker}, err
}

// forDevice adds the device to each progress report.
type forDevice struct {
	runners.Progress
	device string
}

func (f forDevice) Report(e runners.Event) {
	e.Detail = f.device
	f.Progress.Report(e)
}

// decided reports whether the verdict is the same for every GPU, and none is needed for it. An
// ERROR does not count, because it may be this host's fault.
func decided(job runners.Job, all []compiled) bool {
	var first *gates.Verdict
	for _, one := range all {
		if one.evidence.Fault != "" || gates.Next(job.Policy, one.evidence).Gate != "" {
			return false
		}
		v := gates.Judge(job.Policy, job.PolicyFile, one.evidence)
		if first == nil {
			first = v
		}
		if v.Outcome == gates.Error || v.Outcome != first.Outcome || v.Reason != first.Reason {
			return false
		}
	}
	return true
}

func logsOf(all []compiled) string {
	var log strings.Builder
	for _, one := range all {
		if one.worker != nil {
			log.WriteString(one.worker.BuildLog())
		}
	}
	return log.String()
}

// Devices returns the architectures that the candidate of a cuda kernel is built for, without the
// suffixes of single GPUs.
func Devices(job runners.Job) []string {
	var devices []string
	if !runners.ModeOf(job.Manifest).Architectures {
		return nil
	}
	for _, a := range job.Of(job.Candidate).ArchOf(job.Candidate.Variant) {
		devices = append(devices, a.Device())
	}
	slices.Sort(devices)
	return slices.Compact(devices)
}

// CompiledFor returns a note on which of them were compiled.
func CompiledFor(done, left []string) string {
	text := "Compiled for " + strings.Join(done, ", ")
	if len(left) > 0 {
		return fmt.Sprintf("%s; not tried after that: %s.", text, strings.Join(left, ", "))
	}
	return text + "."
}

// BuildLabels returns the labels of a runner on this host that compiles and does not measure: one
// for each kind of compiler that is installed.
func (c Config) BuildLabels(ctx context.Context) ([]string, error) {
	kinds, err := toolchain.Installed{Paths: c.Toolchains, Getenv: c.getenv()}.Kinds(ctx)
	var labels []string
	for _, kind := range kinds {
		labels = append(labels, runners.BuildLabel(kind))
	}
	return labels, err
}
