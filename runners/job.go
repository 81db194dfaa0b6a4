// Package runners has the words of everything that measures a kernel: a [Job] with its two [Side]s, the
// [Backend] that measures on one kind of device, the [Record] of earlier measurements of the same machine
// code, and the [Progress] of a run. The packages in its folders use them, each only those before it: host
// (this machine), build (compilers, and tools that read programs), backend, gather (from a job to evidence)
// and work (what people start).
package runners

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A Job is one kernel of one change, with everything that a backend needs. It has nothing about
// GitHub.
type Job struct {
	Key          string             // identifies the kernel in the repository, see manifest.KeyOf
	Manifest     *manifest.Manifest // the base's: the problem that both sides solve
	ManifestText string             // the manifest in Trusted
	Policy       *policy.Policy     // the base's
	PolicyFile   string             // its name in messages
	PolicyText   string
	Change       policy.Change
	Trusted      string // the folder of the base's manifest: reference and harness
	Recorded     string // the folder of the recordings that the rule names; "" if it names none
	Baseline     *Side  // nil for a kernel that the base does not have
	Candidate    Side
	Provenance   gates.Provenance
	Notes        []string
	Removed      bool // the head no longer has the kernel: there is nothing to measure
	// Broken lists what is wrong with the head's own manifest: there is nothing to build.
	Broken []gates.Diagnostic
	// Unready says which input of a build is not available, and how to get it. It is neither side's
	// fault.
	Unready string
	// Noise means that both sides are the same on purpose: the run measures the machine.
	Noise bool

	Shapes  []string      // none means the policy's
	Secret  manifest.Dims // the size of the secret shape, to repeat a run; nil draws one
	Seeds   []int64       // none means the policy's
	Rounds  int           // of a further attempt; 0 means the number of the policy's last interim analysis
	Profile bool          // profile again, even if that was done before
	Part    Part          // of the policy that is asked; see Ask
	Record  Record        // of earlier measurements; nil if there is none

	// Search asks for a search instead of a comparison; nil means a comparison.
	Search *Search

	// Share sends copies of a growing file to the bot, which stores them as an artifact with the name of
	// the file. If it is nil, the bot gets no copies.
	Share func(file string)

	// Builds is a folder with what another host, named Builder, has compiled for the job; see
	// toolchain.Handover. If it is "", everything is compiled here.
	Builds, Builder string
}

// Asked returns the policy with the shapes and seeds that somebody names.
func (j Job) Asked() *policy.Policy { return j.Policy.Narrow(j.Shapes, j.Seeds) }

// Rule returns the policy's rule for this kernel's change.
func (j Job) Rule() *policy.Rule {
	change := j.Change
	change.Kernel = j.Manifest.Name
	return j.Policy.RuleFor(change)
}

// Trial returns the name of the rule that is tried on this kernel's change in addition to Rule, or
// "".
func (j Job) Trial() string {
	change := j.Change
	change.Kernel = j.Manifest.Name
	if rule := j.Policy.TrialFor(change); rule != nil {
		return rule.Name
	}
	return ""
}

// RemovedEvidence returns the evidence of a kernel that was removed.
func (j Job) RemovedEvidence() *gates.Evidence {
	e := j.NoEvidence()
	e.Removed = true
	return e
}

// BrokenEvidence returns the evidence of a kernel whose head cannot be built as its manifest says.
func (j Job) BrokenEvidence() *gates.Evidence {
	e := j.NoEvidence()
	e.Candidate = j.BrokenBuild(j.Broken)
	return e
}

// BrokenBuild returns a build that was not started because of mistakes in the manifest.
func (j Job) BrokenBuild(mistakes []gates.Diagnostic) *gates.Build {
	first := mistakes[0]
	b := &gates.Build{Variant: j.Candidate.Variant, Diagnostics: mistakes, Error: fmt.Sprintf("%s:%d: %s", first.File, first.Line, first.Message)}
	if more := len(mistakes) - 1; more > 0 {
		b.Error += fmt.Sprintf(" (and %d more mistakes)", more)
	}
	return b
}

// UnreadyEvidence returns the evidence of a kernel that cannot be built because an input is not
// available.
func (j Job) UnreadyEvidence() *gates.Evidence {
	e := j.Fault(errors.New(j.Unready))
	e.Setup = true
	return e
}

// Fault returns evidence that only says why there is no other.
func (j Job) Fault(err error) *gates.Evidence {
	e := j.NoEvidence()
	e.Fault = err.Error()
	return e
}

// NoEvidence returns what is known before anything is built. The evidence of a search, whose result is a
// report, stays so.
func (j Job) NoEvidence() *gates.Evidence {
	return &gates.Evidence{
		Schema: gates.EvidenceSchema, Kernel: j.Manifest.Name, Mode: string(j.Manifest.Mode),
		Provenance: j.Provenance, Change: j.Change, Notes: j.Notes, Weights: j.Weights(),
	}
}

// Weights returns the weights of the base's manifest as evidence stores them; nil if it has none.
func (j Job) Weights() *gates.Weights {
	w := j.Manifest.Weights
	if w == nil {
		return nil
	}
	return &gates.Weights{
		Launches: maps.Clone(w.Launches), Warm: slices.Clone(w.Warm), Kernel: float64(w.Kernel), Step: float64(w.Step), Unmatched: w.Unmatched, Tool: string(w.Tool), Trace: w.Trace,
	}
}

// SameCode reports whether a merge behaves like the baseline at every problem size: equal machine
// code, and an equal Dispatch.
func (j Job) SameCode(baseline, candidate *gates.Build) bool {
	return baseline != nil && baseline.OK && candidate.OK && baseline.Code != "" &&
		baseline.Code == candidate.Code && j.sameDispatch()
}

// SameWhereCompiled reports whether the machine code is equal at the sizes for which it was
// compiled, but may differ at others.
func (j Job) SameWhereCompiled(baseline, candidate *gates.Build) bool {
	return baseline != nil && baseline.OK && candidate.OK && baseline.Code == candidate.Code && !j.Noise &&
		j.Of(j.Candidate).Specializes() && !j.SameCode(baseline, candidate)
}

// SameShapes returns the shapes that equal machine code, launched in the same way, handles on both
// sides. It applies if a side chooses by problem size and not everything is equal.
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

// serving returns the build of a side that handles a shape. The builds list the manifest's shapes,
// and not the secret one.
func (j Job) serving(side Side, b *gates.Build, s gates.Shape, device gates.Device) *gates.Build {
	if !s.Secret {
		return b.Serving(s.Listed())
	}
	m := j.Of(side)
	arch := ""
	if ModeOf(m).Architectures {
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

// A Side is one state of the kernel's implementation: its sources, and how they are built and
// launched.
type Side struct {
	Dir     string // folder to compile in
	Variant string
	// Manifest is the job's problem with this side's implementation; nil means the job's manifest.
	// ManifestText is the kernel.yaml with the implementation.
	Manifest     *manifest.Manifest
	ManifestText string
	// Sources is the hash of Dir for kernels whose machine code depends on the problem size; "" if
	// it was not computed.
	Sources string
	// Toolchains are the compilers that the policy pins for it. The runner uses its own compilers
	// for the others.
	Toolchains policy.Toolchains
	// Differs lists the files that are different in a checkout of this side than in Dir, for the
	// folders that Dir consists of.
	Differs []Difference
}

// A Tree is where the folder of a kernel lies in its repository.
type Tree struct {
	Folder string   // of the kernel, from the repository's top, e.g. kernels/softmax
	Shared []string // other folders of the repository, which the folder has in manifest.RepositoryFolder
	// Differs lists the files of all these folders that a checkout has and the build does not get, or
	// has with different bytes.
	Differs []Difference
}

// A Difference is a file that differs between a build and a checkout.
type Difference struct {
	Path string `json:"path"` // from the repository's top
	Why  string `json:"why"`
}

// Tree returns where a side's folder lies in its repository.
func (j Job) Tree(s Side) *Tree {
	m := j.Of(s)
	t := &Tree{Shared: m.Elsewhere(), Differs: s.Differs}
	if j.Key != "" {
		t.Folder = manifest.FolderOf(j.Key)
	}
	return t
}

// ToolchainOf returns the kind of pin that applies to a kernel; "" means none.
func ToolchainOf(m *manifest.Manifest) string {
	switch {
	case !ModeOf(m).Architectures:
		return ""
	case m.Compiler == manifest.Triton:
		return policy.Triton
	}
	return policy.NVCC
}

// Of returns the manifest by which a side is built and launched.
func (j Job) Of(s Side) *manifest.Manifest {
	if s.Manifest != nil {
		return s.Manifest
	}
	return j.Manifest
}

// Dispatch returns everything about a side that decides what runs at every problem size, apart from
// the compiled machine code. If a compiler specializes, the code is known only for the sizes for
// which it was compiled, so the sources are part of the result. known is false if the sources were
// not hashed.
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

// supported returns the shapes that both sides can run.
func (j Job) supported() []manifest.Shape {
	return slices.DeleteFunc(j.Of(j.Candidate).ShapesFor(j.Candidate.Variant), func(s manifest.Shape) bool {
		return j.Baseline != nil && !j.Of(*j.Baseline).Supports(j.Baseline.Variant, s.Dims)
	})
}

// ShapeNames lists the shapes that both sides can run.
func (j Job) ShapeNames() []string {
	var names []string
	for _, s := range j.supported() {
		names = append(names, s.Name)
	}
	return names
}

// ShapesOnRecord returns the same shapes as evidence stores them, with the minimal work of each, in every context that the rule
// asks for.
func (j Job) ShapesOnRecord() ([]gates.Shape, error) {
	var shapes []gates.Shape
	for _, s := range j.supported() {
		shape, err := j.onRecord(s)
		if err != nil {
			return nil, err
		}
		shapes = append(shapes, shape)
	}
	return gates.InContexts(j.Rule(), shapes, j.Weights()), nil
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

// A SetupError is a mistake in something that the base supplies, so that no change to it can be
// judged: a reference that does not build or crashes, or a manifest that asks for something that
// does not exist. It is neither the runner's fault nor the change's.
type SetupError struct {
	At  []gates.Diagnostic // the lines, if they are known
	Err error
	New bool // the kernel is new, so that the change supplies it, and not the base
}

func (e *SetupError) Error() string { return e.Err.Error() }
func (e *SetupError) Unwrap() error { return e.Err }

// ReferenceErrorf returns a mistake in the reference; format continues a sentence about it. The
// base supplies the reference, so it is a setup error. A new kernel supplies its own, and then the
// mistake is the change's.
func (j Job) ReferenceErrorf(format string, args ...any) error {
	format = "the reference " + strings.ReplaceAll(j.Manifest.Reference.Called(), "%", "%%") + map[bool]string{false: " of the base"}[j.Baseline == nil] + " " + format
	err := SetupErrorf(format, args...).(*SetupError)
	err.New = j.Baseline == nil
	return err
}

// A compileError is a compiler's refusal, which names lines.
type compileError interface {
	error
	Errors() []gates.Diagnostic
}

// SetupErrorf returns a setup error. It keeps a compiler's messages, line by line.
func SetupErrorf(format string, args ...any) error {
	e := &SetupError{Err: fmt.Errorf(format, args...)}
	if refusal, ok := errors.AsType[compileError](e.Err); ok {
		e.At = refusal.Errors()
	}
	return e
}

// A job that is compiled for a GPU may have two stages: a host without a GPU compiles it, and a
// host with a GPU measures the result. Runners that compile take jobs by separate labels, one for
// each kind of compiler.

const buildLabel = "build-"

// BuildLabel returns the label of runners that compile with that kind of compiler, such as nvcc; ""
// for no compiler.
func BuildLabel(compiler string) string {
	if compiler == "" {
		return ""
	}
	return buildLabel + compiler
}

// IsBuildLabel reports whether runners with that label only compile.
func IsBuildLabel(label string) bool { return strings.HasPrefix(label, buildLabel) }

// BuildsFile is the artifact of a job that has the compiled code.
const BuildsFile = "builds.tar.gz"
