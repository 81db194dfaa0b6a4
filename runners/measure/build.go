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
	"github.com/kernelgate/kernelgate/runners/bundle"
	"github.com/kernelgate/kernelgate/runners/cuda"
	"github.com/kernelgate/kernelgate/runners/toolchain"
)

// Build compiles both sides of a job for every GPU that the candidate is built for, without one. Where all of these come to the same
// verdict and need nothing measured for it, as where the machine code is equal or the candidate does not compile, that is the
// evidence, as Measure would have gathered it. Otherwise the job is open: what was compiled is among the artifacts, for whoever
// measures. So it is where something here is at fault: that is no verdict on anything.
func (c Config) Build(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error) {
	devices := Devices(job)
	if len(devices) == 0 || job.Of(job.Candidate).Compiler == manifest.Program {
		return runners.Measured{}, fmt.Errorf("%s is no kernel that is compiled ahead of its measuring", job.Manifest.Name)
	}
	if c.Log != nil {
		p = both{p, &runners.Plain{Out: lines{c.Log.With("kernel", job.Manifest.Name)}}}
	}
	job.Record = nil // what is known of the code is known of a GPU's
	sets, err := c.layIn(job)
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
		out.Evidence = all[i].evidence // it is told by whoever has to mend it
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

// compiled is what became of a job for one kind of GPU.
type compiled struct {
	evidence *gates.Evidence
	worker   *cuda.Backend // nil where the evidence is a fault
}

func (c Config) compile(ctx context.Context, job runners.Job, device, scratch string, given *toolchain.Handover, p runners.Progress) (compiled, error) {
	if err := errors.Join(os.MkdirAll(scratch, 0o755), os.Chmod(scratch, 0o755)); err != nil {
		return compiled{}, fmt.Errorf("making room for the code for %s: %w", device, err)
	}
	c.Static, c.Arch = true, device
	worker, err := c.openCUDA(ctx, job, scratch, given)
	if err != nil {
		return compiled{evidence: job.Fault(err)}, ctx.Err()
	}
	e, err := runners.Compile(ctx, job, worker, forDevice{p, device})
	return compiled{e, worker}, err
}

// forDevice tells which of several a step is for.
type forDevice struct {
	runners.Progress
	device string
}

func (f forDevice) Report(e runners.Event) {
	e.Detail = f.device
	f.Progress.Report(e)
}

// decided tells whether whichever GPU it is makes no difference to the verdict, and none is needed. An ERROR may be this host's.
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

// Devices is what the candidate of a cuda kernel is built for, without the suffixes of single GPUs.
func Devices(job runners.Job) []string {
	var devices []string
	if job.Manifest.Mode != manifest.ModeCUDA {
		return nil
	}
	for _, a := range job.Of(job.Candidate).ArchOf(job.Candidate.Variant) {
		devices = append(devices, a.Device())
	}
	slices.Sort(devices)
	return slices.Compact(devices)
}

// CompiledFor is a note on which of them was compiled for.
func CompiledFor(done, left []string) string {
	text := "Compiled for " + strings.Join(done, ", ")
	if len(left) > 0 {
		return fmt.Sprintf("%s; not tried after that: %s.", text, strings.Join(left, ", "))
	}
	return text + "."
}

// BuildLabels is what a runner on this host can take that compiles and measures nothing: one label for each kind of compiler that is
// here.
func (c Config) BuildLabels(ctx context.Context) ([]string, error) {
	kinds, err := toolchain.Installed{Paths: c.Toolchains, Getenv: c.getenv()}.Kinds(ctx)
	var labels []string
	for _, kind := range kinds {
		labels = append(labels, runners.BuildLabel(kind))
	}
	return labels, err
}
