package runners

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners/toolchain"
	"github.com/kernelgate/kernelgate/runners/toolchain/output"
)

// A Job is one kernel of one change, with everything that a backend needs and
// nothing of GitHub.
type Job struct {
	Key          string             // which kernel of the repository it is, see kernels.KeyOf
	Manifest     *manifest.Manifest // of the base: the problem that both sides solve
	ManifestText string             // the manifest in Trusted
	Policy       *policy.Policy     // of the base
	PolicyFile   string             // as messages name it
	PolicyText   string
	Change       policy.Change
	Trusted      string // the folder of the base's manifest: reference and harness
	Baseline     *Side  // nil for a kernel that the base does not have
	Candidate    Side
	Provenance   gates.Provenance
	Notes        []string
	Removed      bool // the head has no such kernel any more: there is nothing to measure
	// Broken is what is wrong with the head's own manifest: there is nothing to build.
	Broken []gates.Diagnostic
	// Unready is what is not here of what a side is built from, and how to get it. It is
	// neither side's fault.
	Unready string
	// Noise says that both sides are the same on purpose: what is measured is the
	// machine.
	Noise bool

	Shapes  []string      // none leaves them to the policy
	Secret  manifest.Dims // the size of the secret shape, to repeat a run; nil draws one
	Seeds   []int64       // none leaves them to the policy
	Rounds  int           // of a further attempt; 0 is as many as the policy's last look asks
	Profile bool          // profile once more, whether or not that was done before
	Record  Record        // of what was measured before; nil where nobody remembers

	// Builds is a folder with what another host has compiled of it, see toolchain.Handover; "" compiles everything here. Builder is
	// what that host is called.
	Builds, Builder string
}

// Rule is what the policy asks of this kernel's change.
func (j Job) Rule() *policy.Rule {
	change := j.Change
	change.Kernel = j.Manifest.Name
	return j.Policy.RuleFor(change)
}

// RemovedEvidence is all that there is to know of a kernel that is gone.
func (j Job) RemovedEvidence() *gates.Evidence {
	e := j.evidence()
	e.Removed = true
	return e
}

// BrokenEvidence is all that there is to know of a kernel whose head cannot be built as
// its manifest says.
func (j Job) BrokenEvidence() *gates.Evidence {
	e := j.evidence()
	e.Candidate = j.brokenBuild(j.Broken)
	return e
}

// brokenBuild is a build that was not begun for mistakes in the manifest.
func (j Job) brokenBuild(mistakes []gates.Diagnostic) *gates.Build {
	first := mistakes[0]
	b := &gates.Build{Variant: j.Candidate.Variant, Diagnostics: mistakes, Error: fmt.Sprintf("%s:%d: %s", first.File, first.Line, first.Message)}
	if more := len(mistakes) - 1; more > 0 {
		b.Error += fmt.Sprintf(" (and %d more mistakes)", more)
	}
	return b
}

// UnreadyEvidence is all that there is to know of a kernel that cannot be built for what
// is not here.
func (j Job) UnreadyEvidence() *gates.Evidence {
	e := j.Fault(errors.New(j.Unready))
	e.Setup = true
	return e
}

// Fault is evidence that says why there is no other.
func (j Job) Fault(err error) *gates.Evidence {
	e := j.evidence()
	e.Fault = err.Error()
	return e
}

// evidence is what is known before anything is built.
func (j Job) evidence() *gates.Evidence {
	return &gates.Evidence{
		Schema: gates.EvidenceSchema, Kernel: j.Manifest.Name, Mode: string(j.Manifest.Mode),
		Provenance: j.Provenance, Change: j.Change, Notes: j.Notes,
	}
}

// SameCode tells whether a merge runs the same as the baseline at every problem size: equal
// machine code, and an equal Dispatch.
func (j Job) SameCode(baseline, candidate *gates.Build) bool {
	return baseline != nil && baseline.OK && candidate.OK && baseline.Code != "" &&
		baseline.Code == candidate.Code && j.sameDispatch()
}

// sameWhereCompiled tells whether the machine code is equal at the sizes that it was compiled for, and may differ at others.
func (j Job) sameWhereCompiled(baseline, candidate *gates.Build) bool {
	return baseline != nil && baseline.OK && candidate.OK && baseline.Code == candidate.Code && !j.Noise &&
		j.Of(j.Candidate).Specializes() && !j.SameCode(baseline, candidate)
}

const sameWhereCompiledNote = "The machine code is the baseline's at every size that was compiled. The sources or the constants differ, so it may differ at other sizes, and the change counts as another kernel."

// SameShapes is the shapes that equal machine code, started in the same way, serves on both sides, where one of them chooses by
// problem size and not all is equal.
func (j Job) SameShapes(e *gates.Evidence) []string {
	baseline, candidate := e.Baseline, e.Candidate
	if baseline == nil || !baseline.OK || !candidate.OK || j.Baseline == nil || j.Noise || j.SameCode(baseline, candidate) || len(baseline.Parts)+len(candidate.Parts) == 0 {
		return nil
	}
	was, is := j.Of(*j.Baseline), j.Of(j.Candidate)
	var names []string
	for _, s := range e.Shapes {
		b, c := j.serving(*j.Baseline, baseline, s, e.Device), j.serving(j.Candidate, candidate, s, e.Device)
		if b.Code != "" && b.Code == c.Code && b.Variant != manifest.Choice && c.Variant != manifest.Choice && was.Call(b.Variant) == is.Call(c.Variant) {
			names = append(names, s.Name)
		}
	}
	return names
}

// serving is the build of a side that a shape is given to. The builds list the shapes of the
// manifest, and not the secret one.
func (j Job) serving(side Side, b *gates.Build, s gates.Shape, device gates.Device) *gates.Build {
	if !s.Secret {
		return b.Serving(s.Name)
	}
	m := j.Of(side)
	arch := ""
	if m.Mode == manifest.ModeCUDA {
		arch = device.Arch
	}
	dims, err := manifest.ParseDims(s.Dims, m.Shapes[0].Dims)
	if err != nil {
		return b
	}
	variant, err := m.Serving(side.Variant, arch, dims)
	if err != nil {
		return b
	}
	for i := range b.Parts {
		if b.Parts[i].Variant == variant {
			return &b.Parts[i].Build
		}
	}
	return b
}

// A Role is a side's part in the comparison.
type Role string

const (
	Baseline  Role = "baseline"
	Candidate Role = "candidate"
)

// A Side is one state of the kernel's implementation: its sources, and how they are built
// and launched.
type Side struct {
	Dir     string // folder to compile in
	Variant string
	// Manifest is the job's problem with this side's own implementation; nil is the job's
	// manifest. ManifestText is the kernel.yaml that the implementation stands in.
	Manifest     *manifest.Manifest
	ManifestText string
	// Sources is the hash of Dir for kernels whose machine code depends on the problem size; "" where it was not computed.
	Sources string
	// Toolchains is the compilers that the policy pins for it; what is not pinned is the runner's own.
	Toolchains policy.Toolchains
	// Differs is what a checkout of this side has otherwise than Dir, of the folders that Dir is made of.
	Differs []toolchain.Difference
}

// Tree is where a side's folder lies in its repository.
func (j Job) Tree(s Side) *toolchain.Tree {
	m := j.Of(s)
	t := &toolchain.Tree{Shared: m.Elsewhere(), Differs: s.Differs}
	if j.Key != "" {
		t.Folder = manifest.FolderOf(j.Key)
	}
	return t
}

// ToolchainOf is the kind of pin that a kernel is built by; "" is none.
func ToolchainOf(m *manifest.Manifest) string {
	switch {
	case m.Mode != manifest.ModeCUDA:
		return ""
	case m.Compiler == manifest.Triton:
		return policy.Triton
	}
	return policy.NVCC
}

// Of is the manifest that a side is built and launched by.
func (j Job) Of(s Side) *manifest.Manifest {
	if s.Manifest != nil {
		return s.Manifest
	}
	return j.Manifest
}

// Dispatch is everything about a side that decides what runs at every problem size, apart
// from the machine code that was compiled. Where a compiler specializes, the code is known
// only for the sizes that it was compiled for, so the sources are part of it; known is false
// where nobody hashed them.
func (j Job) Dispatch(s Side) (text string, known bool) {
	m := j.Of(s)
	text = m.Dispatch(s.Variant)
	if !m.Specializes() {
		return text, true
	}
	return text + "\nsources: " + s.Sources, s.Sources != ""
}

func (j Job) sameDispatch() bool {
	if j.Baseline == nil || j.Noise {
		return false
	}
	was, knownThen := j.Dispatch(*j.Baseline)
	is, known := j.Dispatch(j.Candidate)
	return knownThen && known && was == is
}

// supported is the shapes that both sides can be run on.
func (j Job) supported() []manifest.Shape {
	return slices.DeleteFunc(j.Of(j.Candidate).ShapesFor(j.Candidate.Variant), func(s manifest.Shape) bool {
		return j.Baseline != nil && !j.Of(*j.Baseline).Supports(j.Baseline.Variant, s.Dims)
	})
}

// ShapeNames lists the shapes that both sides can be run on.
func (j Job) ShapeNames() []string {
	var names []string
	for _, s := range j.supported() {
		names = append(names, s.Name)
	}
	return names
}

// ShapesOnRecord is the same as evidence has them, with the work that each takes at
// least.
func (j Job) ShapesOnRecord() ([]gates.Shape, error) {
	var shapes []gates.Shape
	for _, s := range j.supported() {
		shape, err := j.onRecord(s)
		if err != nil {
			return nil, err
		}
		shapes = append(shapes, shape)
	}
	return shapes, nil
}

func (j Job) onRecord(s manifest.Shape) (gates.Shape, error) {
	m := j.Manifest
	shape := gates.Shape{Name: s.Name, Dims: s.Dims.String()}
	if m.Work != nil {
		var errF, errB error
		shape.FLOPs, errF = m.FLOPs(s.Dims)
		shape.Bytes, errB = m.Bytes(s.Dims)
		if err := errors.Join(errF, errB); err != nil {
			return shape, fmt.Errorf("computing the work of %s: %w", s, err)
		}
		shape.Peak = string(m.Work.Peak)
	}
	return shape, nil
}

// A SetupError is what is wrong with what the base brings, so that nothing can be said
// of any change to it: a reference that does not build or crashes, a manifest that asks
// for what is not there. It is neither the runner's fault nor the change's.
type SetupError struct {
	At  []gates.Diagnostic // the lines, where they are known
	Err error
	New bool // the kernel is new, so that the change brings it, and not the base
}

func (e *SetupError) Error() string { return e.Err.Error() }
func (e *SetupError) Unwrap() error { return e.Err }

// ReferenceErrorf is a mistake in the reference, which the format continues the sentence about. The base brings the reference,
// so that it is a setup error; a new kernel brings its own, and the mistake is the change's.
func (j Job) ReferenceErrorf(format string, args ...any) error {
	format = "the reference " + strings.ReplaceAll(j.Manifest.Reference.Called(), "%", "%%") + map[bool]string{false: " of the base"}[j.Baseline == nil] + " " + format
	err := SetupErrorf(format, args...).(*SetupError)
	err.New = j.Baseline == nil
	return err
}

// SetupErrorf is a setup error. What a compiler says of it is kept, line by line.
func SetupErrorf(format string, args ...any) error {
	e := &SetupError{Err: fmt.Errorf(format, args...)}
	if refusal, ok := errors.AsType[*output.CompileError](e.Err); ok {
		for _, d := range refusal.Diagnostics {
			if d.Severity == "error" {
				e.At = append(e.At, d)
			}
		}
	}
	return e
}

// A job that is compiled for a GPU may have two stages: a host without a GPU compiles it, and one with a GPU measures what was
// compiled. Those that compile take their jobs by labels of their own, one for each kind of compiler.

const buildLabel = "build-"

// BuildLabel is the label of runners that compile by that kind of compiler, such as nvcc; "" of none.
func BuildLabel(compiler string) string {
	if compiler == "" {
		return ""
	}
	return buildLabel + compiler
}

// IsBuildLabel tells whether runners compile under that label, and measure nothing.
func IsBuildLabel(label string) bool { return strings.HasPrefix(label, buildLabel) }

// BuildsFile is the artifact of a job that holds what was compiled of it.
const BuildsFile = "builds.tar.gz"
