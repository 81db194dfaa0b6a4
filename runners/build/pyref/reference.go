package pyref

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// ReferenceConfig is what the process of a reference in Python may be told beside the job.
type ReferenceConfig struct {
	Scratch string
	Getenv  func(string) string
	Devices []string // of the GPU, for device: cuda
	GPU     string   // its UUID
	OnCPU   bool     // compute there whatever the manifest says: there is no GPU
}

// A Reference is the reference of a job that is written in Python. Its process is started before anybody asks for outputs,
// and lasts as long as the check.
type Reference struct {
	job     runners.Job
	getenv  func(string) string
	found   *Python
	process *Process
	err     error // why there is no process
}

// StartReference starts Python while the sides are built. What goes wrong is told when outputs are expected.
func StartReference(ctx context.Context, job runners.Job, c ReferenceConfig) *Reference {
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	r := &Reference{job: job, getenv: c.Getenv}
	if c.OnCPU {
		m, reference := *job.Manifest, *job.Manifest.Reference
		reference.Device = manifest.OnCPU
		m.Reference, job.Manifest = &reference, &m
	}
	if r.found, r.err = Find(ctx, c.Getenv); r.err == nil {
		r.err = r.found.For(job.Manifest.Reference)
	}
	if r.err != nil {
		r.err = runners.SetupErrorf("the reference %s is in Python: %w", job.Manifest.Reference.Called(), r.err)
		return r
	}
	r.process, r.err = Start(ctx, Spec{
		Manifest: job.Manifest, Trusted: job.Trusted, Scratch: c.Scratch, Python: r.found, Devices: c.Devices, GPU: c.GPU, AnyDevice: len(c.Devices) > 0 && !c.OnCPU,
	})
	r.err = r.Blame(r.err)
	return r
}

// Tools is what took part; nil has none.
func (r *Reference) Tools() map[string]string {
	if r == nil || r.found == nil {
		return nil
	}
	tools := r.found.Tools()
	if r.process != nil {
		tools["reference"] = r.job.Manifest.Reference.Called() + " " + r.process.Digest
	}
	return tools
}

// Close ends the process before its check does.
func (r *Reference) Close() {
	if r != nil && r.process != nil {
		r.process.Close()
	}
}

// Process waits until the reference is loaded.
func (r *Reference) Process() (*Process, error) {
	if r.err == nil {
		r.err = r.Blame(r.process.Ready())
	}
	return r.process, r.err
}

// Expected is the outputs of a problem, in the order of the manifest.
func (r *Reference) Expected(p *tensor.Problem, original bool) ([][]float64, error) {
	process, err := r.Process()
	if err != nil {
		return nil, err
	}
	want, err := process.Expected(p, original)
	return want, r.Blame(err)
}

// Blame puts a mistake of the reference down to whoever brings it, with its line. A package that is not installed is nobody's
// mistake of these.
func (r *Reference) Blame(err error) error {
	mistake, ok := errors.AsType[*Mistake](err)
	if !ok {
		return err
	}
	if mistake.Missing != "" && r.found != nil {
		return runners.SetupErrorf("the reference %s %w: install %s for Python %s, or set KERNELGATE_PYTHON to a Python that has it", r.job.Manifest.Reference.Called(), mistake, mistake.Missing, r.found.Version)
	}
	setup := r.job.ReferenceErrorf("%w", mistake).(*runners.SetupError)
	if source := r.job.Manifest.Reference.Source; source != "" && mistake.Line > 0 {
		setup.At = []gates.Diagnostic{{File: source, Line: mistake.Line, Severity: "error", Message: mistake.Text}}
	}
	return setup
}

// Check has the reference compute the outputs of the smallest shape: its parameters, shapes and numbers show there. On a host
// without the package that it computes with, only its parameters are compared with the manifest, and the note says so.
func (r *Reference) Check(ctx context.Context, m *manifest.Manifest, variant string) (note string, err error) {
	toggles := m.ToggleValues(variant)
	size := func(s manifest.Shape) int {
		n := 0
		p, err := tensor.Outline(m, s, toggles)
		if err != nil {
			return 1 << 62
		}
		for _, a := range p.Args {
			n += a.Size()
		}
		return n
	}
	small := slices.MinFunc(m.Shapes, func(a, b manifest.Shape) int { return size(a) - size(b) })
	p, err := tensor.NewProblem(m, small, toggles, distribution.Normal, 1)
	if err != nil {
		return "", fmt.Errorf("drawing inputs for the reference: %w", err)
	}
	_, err = r.Expected(p, false)
	name := missingArrays(err)
	if name == "" {
		return "", err
	}
	if err := CheckSignature(ctx, r.job.Manifest, r.job.Trusted, r.getenv); err != nil {
		return "", r.Blame(err)
	}
	return fmt.Sprintf("This host has no %s, so %s was not run: only its names were compared with the manifest.", name, r.job.Manifest.Reference.Called()), nil
}

// missingArrays names the library of arrays that a reference needs and this host lacks; "" if nothing is missing.
func missingArrays(err error) string {
	mistake, _ := errors.AsType[*Mistake](err)
	switch {
	case errors.Is(err, ErrNoTorch) || mistake != nil && mistake.Missing == "torch":
		return "PyTorch"
	case errors.Is(err, ErrNoArrays) || mistake != nil && mistake.Missing == "numpy":
		return "NumPy"
	}
	return ""
}
