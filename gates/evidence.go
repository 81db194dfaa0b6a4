package gates

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// EvidenceSchema names the version of the evidence format.
const EvidenceSchema = "kernelgate/evidence/v1"

// Evidence is what a runner observed of one kernel at one head: raw facts with their origin, and no
// judgement. A nil part was not gathered: an earlier gate failed, or the part is still to come.
type Evidence struct {
	Schema     string        `json:"schema"`
	Kernel     string        `json:"kernel"`
	Mode       string        `json:"mode"`
	Abilities  *Abilities    `json:"abilities,omitempty"` // of the backend; evidence of earlier versions does not have them, see [Evidence.Can]
	Provenance Provenance    `json:"provenance"`
	Change     policy.Change `json:"change"`
	Device     Device        `json:"device"`
	Shapes     []Shape       `json:"shapes"`
	Weights    *Weights      `json:"weights,omitempty"` // of the shapes, where the manifest has them
	Notes      []string      `json:"notes,omitempty"`
	// Recorded is the recordings that the policy named: where they are from is in the manifest, and their values nowhere here.
	Recorded []distribution.Recording `json:"recorded,omitempty"`

	Removed   bool   `json:"removed,omitempty"` // the head has no such kernel any more
	Baseline  *Build `json:"baseline,omitempty"`
	Candidate *Build `json:"candidate,omitempty"`
	SameCode  bool   `json:"same_code,omitempty"` // both built to equal machine code
	// SameShapes is the shapes that equal machine code serves on both sides, where a side chooses by problem size and not all of it
	// is equal.
	SameShapes  []string     `json:"same_shapes,omitempty"`
	MachineCode *MachineCode `json:"machine_code,omitempty"` // of both, where it differs and a disassembler was there
	Correctness *Correctness `json:"correctness,omitempty"`
	Sanitize    *Sanitize    `json:"sanitize,omitempty"`
	Performance *Performance `json:"performance,omitempty"`
	Energy      *Energy      `json:"energy,omitempty"`
	Profile     *Profile     `json:"profile,omitempty"`
	Explained   *Explained   `json:"explained,omitempty"` // counters that say why the times differ
	Rivals      []Rival      `json:"rivals,omitempty"`
	Best        []Best       `json:"best,omitempty"` // the baseline's speed relative to the kernel's best; only a server fills it in

	Took map[Gate]float64 `json:"took,omitempty"` // seconds of this run's steps

	// Fault is an error of the runner, or of the base branch. It ends the run as ERROR,
	// whatever else was observed.
	Fault   string       `json:"fault,omitempty"`
	Setup   bool         `json:"setup,omitempty"`    // the fault is in the base's reference, manifest or sources
	FaultAt []Diagnostic `json:"fault_at,omitempty"` // the lines at fault, where they are known
}

// Provenance is where evidence comes from.
type Provenance struct {
	Time       time.Time         `json:"time"`
	Repository string            `json:"repository,omitempty"`
	Base       Commit            `json:"base"`
	Head       Commit            `json:"head"`
	Baseline   string            `json:"baseline,omitempty"` // the commit that the baseline is of, where that is not Base
	Program    string            `json:"program"`            // kernelgate's own version
	Tools      map[string]string `json:"tools,omitempty"`
	Manifest   string            `json:"manifest,omitempty"` // hash of the base's kernel.yaml
	// Implementation is the hash of the kernel.yaml that the candidate was built and
	// launched by, where it differs from Manifest.
	Implementation string `json:"implementation,omitempty"`
	// Label is the device that the run was for, as the policy names it. It is empty if the policy asks
	// for one run only.
	Label   string `json:"label,omitempty"`
	Policy  string `json:"policy,omitempty"` // hash of the policy that steered the gathering
	Host    string `json:"host,omitempty"`
	Command string `json:"command,omitempty"` // reproduces the run
}

// A Commit is one state of a repository.
type Commit struct {
	SHA     string `json:"sha,omitempty"`
	Branch  string `json:"branch,omitempty"`
	Dirty   bool   `json:"dirty,omitempty"`
	Variant string `json:"variant,omitempty"`
	Lesson  string `json:"lesson,omitempty"` // what its manifest says was learnt from the variant
}

// A Device is what the kernel ran on, with the limits that bound any kernel on
// it.
type Device struct {
	Kind      string             `json:"kind"` // DeviceCPU or DeviceGPU
	Name      string             `json:"name"`
	Arch      string             `json:"arch"`
	UUID      string             `json:"uuid,omitempty"`
	Driver    string             `json:"driver,omitempty"`
	Units     int                `json:"units,omitempty"`     // SMs, or cores
	Peak      map[string]float64 `json:"peak,omitempty"`      // FLOP/s by number format
	Bandwidth float64            `json:"bandwidth,omitempty"` // bytes/s
	PeakFrom  string             `json:"peak_from,omitempty"` // where the limits come from
	L2Bytes   int64              `json:"l2_bytes,omitempty"`
	ClockMHz  map[string]int     `json:"clock_mhz,omitempty"`
}

// Kinds of devices.
const (
	DeviceCPU = "cpu"
	DeviceGPU = "gpu"
)

// A Shape is one problem size, with the work it takes at least.
type Shape struct {
	Name  string  `json:"name"`
	Dims  string  `json:"dims"`
	FLOPs float64 `json:"flops,omitempty"`
	Bytes float64 `json:"bytes,omitempty"`
	Peak  string  `json:"peak,omitempty"` // the number format whose peak bounds it
	// Secret marks the one size that was drawn for the run and that the manifest does not
	// name. It is timed under the guard and nothing else.
	Secret bool `json:"secret,omitempty"`
	// Of is the manifest's name of a shape that is timed in one more context, which Context says. Other
	// shapes are timed cold, and have neither.
	Of      string         `json:"of,omitempty"`
	Context policy.Context `json:"context,omitempty"`
}

// In returns the shape in one more context.
func (s Shape) In(c policy.Context) Shape {
	s.Name, s.Of, s.Context = s.Name+":"+string(c), s.Name, c
	return s
}

// Listed returns the name by which the manifest lists the shape.
func (s Shape) Listed() string { return cmp.Or(s.Of, s.Name) }

// shapeNames lists the manifest's shapes in its order.
func (e *Evidence) shapeNames() []string {
	var names []string
	for _, s := range e.Shapes {
		if !s.Secret && s.Context == "" {
			names = append(names, s.Name)
		}
	}
	return names
}

// A Build is one side's way through the compiler.
type Build struct {
	Variant     string         `json:"variant"`
	Source      string         `json:"source,omitempty"`
	EntryLine   int            `json:"entry_line,omitempty"` // of the kernel function in Source
	Toggles     map[string]int `json:"toggles,omitempty"`
	Flags       []string       `json:"flags,omitempty"`
	Shadowed    []string       `json:"shadowed_headers,omitempty"` // of the system and the toolkit, that folders of include_first replace
	Arch        string         `json:"arch,omitempty"`
	Compiler    string         `json:"compiler,omitempty"`
	Digest      string         `json:"compiler_digest,omitempty"` // of the compiler, where the policy pins it
	OK          bool           `json:"ok"`
	Error       string         `json:"error,omitempty"` // one line for people
	Diagnostics []Diagnostic   `json:"diagnostics,omitempty"`
	Code        string         `json:"code,omitempty"` // hash of the machine code
	Seconds     float64        `json:"seconds,omitempty"`
	Cached      bool           `json:"cached,omitempty"`
	Resources   *Resources     `json:"resources,omitempty"` // of the kernel; of several, the most that any of them needs
	Kernels     []KernelUse    `json:"kernels,omitempty"`   // of a launch of several, each
	Tuning      *Tuning        `json:"tuning,omitempty"`    // of a Triton kernel with @triton.autotune
	Parts       []Part         `json:"parts,omitempty"`     // of a choice by problem size: every variant that it chooses from on this device
}

// A Tuning is the configurations that @triton.autotune offers, and which of them is measured.
type Tuning struct {
	Offered []string     `json:"offered,omitempty"`
	Chosen  []string     `json:"chosen,omitempty"`  // by the manifest
	Picks   []TuningPick `json:"picks,omitempty"`   // by shape; none where no GPU ran
	Refused []string     `json:"refused,omitempty"` // configurations that do not compile, with the reason
}

// A TuningPick is the configuration that was fastest at a shape.
type TuningPick struct {
	Shape         string       `json:"shape"`
	Configuration string       `json:"configuration"`
	Micros        float64      `json:"micros"`
	Times         []TuningTime `json:"times,omitempty"` // of all that were tried, in the decorator's order
}

// A TuningTime is the time of a launch with a configuration.
type TuningTime struct {
	Configuration string  `json:"configuration"`
	Micros        float64 `json:"micros"`
}

// A KernelUse is what one kernel of a launch of several needs.
type KernelUse struct {
	Entry string `json:"entry"`
	Line  int    `json:"line,omitempty"` // of the kernel function in the source; 0: not known
	Resources
}

// A Diagnostic is a message about one line of a file: a compiler's, a sanitizer's, or
// about a mistake in a policy or a manifest.
type Diagnostic struct {
	Tool     string `json:"tool,omitempty"` // the program that names itself (ptxas, nvlink, gcc …); none where a compiler names only the source
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`   // 0: not said
	Column   int    `json:"column,omitempty"` // 0: not said
	Severity string `json:"severity"`         // error, warning, remark or note
	Code     string `json:"code,omitempty"`   // as printed: #177-D, C7511, -Wunused-function; none for most errors
	Message  string `json:"message"`
}

// Resources is what the compiler says that a kernel needs. A nil figure was not
// reported.
type Resources struct {
	Registers     *int     `json:"registers,omitempty"`
	StaticShared  *int     `json:"static_shared,omitempty"`
	DynamicShared *int     `json:"dynamic_shared,omitempty"` // at the shape that asks for most
	SpillStores   *int     `json:"spill_stores,omitempty"`
	SpillLoads    *int     `json:"spill_loads,omitempty"`
	Stack         *int     `json:"stack,omitempty"`
	CodeSize      *int     `json:"code_size,omitempty"`
	BlockThreads  *int     `json:"block_threads,omitempty"` // at the shape that asks for most
	Scratch       *int     `json:"scratch,omitempty"`       // bytes of a launch, at the shape that asks for most; none: it uses none
	Globals       []string `json:"globals,omitempty"`       // writable memory that outlives a launch
	Warnings      []string `json:"warnings,omitempty"`
}

// Correctness is every case that was run.
type Correctness struct {
	Tolerance  Tolerance            `json:"tolerance"`
	Tolerances map[string]Tolerance `json:"tolerances,omitempty"` // of the outputs that have their own
	Cases      []Case               `json:"cases,omitempty"`
	Test       *Test                `json:"test,omitempty"` // of a harness whose test command decides, in place of cases
	Seconds    float64              `json:"seconds,omitempty"`
	Spent      Spent                `json:"spent,omitempty"`
}

// A Test is how the test command of a harness ended on both sides; no failure is a good
// end.
type Test struct {
	Command  string   `json:"command"`
	Failure  *Failure `json:"failure,omitempty"`
	Baseline *Failure `json:"baseline,omitempty"`
}

// A Tolerance makes an element bad when |err| > Abs + Rel·|want|.
type Tolerance struct {
	Abs float64 `json:"abs"`
	Rel float64 `json:"rel"`
}

// A Case is the candidate on one input.
type Case struct {
	Input

	Errors          *Errors  `json:"errors,omitempty"`           // against the reference on what the kernel was given
	EndToEnd        *Errors  `json:"end_to_end,omitempty"`       // against the reference on the inputs before quantisation
	Baseline        *Errors  `json:"baseline,omitempty"`         // the baseline's own errors on the same input
	BaselineFailure *Failure `json:"baseline_failure,omitempty"` // how the baseline failed on it, where it did
	// BaselineEndToEnd is EndToEnd of the baseline.
	BaselineEndToEnd *Errors `json:"baseline_end_to_end,omitempty"`
	// Replayed is, on a recording with noise, the reference's answer to the recording itself against the right answer: what a
	// kernel would get that remembered it.
	Replayed *Errors `json:"replayed,omitempty"`
	// BaselineDeterministic reports whether launches of the baseline agree bit for bit. It is known where the candidate's do not.
	BaselineDeterministic *bool `json:"baseline_deterministic,omitempty"`

	Deterministic *bool    `json:"deterministic,omitempty"`  // two launches agree bit for bit
	StateKept     bool     `json:"state_kept,omitempty"`     // a launch that finds data of earlier launches gives different bits
	BitParity     *bool    `json:"bit_parity,omitempty"`     // equal to the baseline bit for bit
	InputsChanged []string `json:"inputs_changed,omitempty"` // arguments that the kernel wrote and must not
	OutOfBounds   bool     `json:"out_of_bounds,omitempty"`  // the kernel wrote outside its arguments
	Failure       *Failure `json:"failure,omitempty"`
}

// Errors compares the outputs of a launch with the reference's: their largest errors, and their summed counts. The figures leave
// out elements that are not finite; those are counted.
type Errors struct {
	Elements  int     `json:"elements"`
	MaxAbs    float64 `json:"max_abs"`
	MeanAbs   float64 `json:"mean_abs"`
	Norm      float64 `json:"norm"`
	Bad       int     `json:"bad"`
	NaN       int     `json:"nan,omitempty"`
	Inf       int     `json:"inf,omitempty"`
	Unwritten int     `json:"unwritten,omitempty"`
	// Outputs is the figures of each output, where a case is compared with the reference. Evidence of harnesses and of earlier
	// versions does not have them.
	Outputs []OutputErrors `json:"outputs,omitempty"`
}

// An OutputErrors is the figures of one output of a launch.
type OutputErrors struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Errors
}

// A Failure is how a launch failed.
type Failure struct {
	Kind   FailureKind `json:"kind"`
	Detail string      `json:"detail"` // one line for people
}

// Sanitize is what tools that watch every access saw of the candidate on a few
// small inputs.
type Sanitize struct {
	Cases   []Input     `json:"cases,omitempty"` // every tool was given all of them
	Tools   []Sanitized `json:"tools,omitempty"`
	Unseen  []string    `json:"unseen,omitempty"`  // what the tools that ran cannot see, for people
	Skipped string      `json:"skipped,omitempty"` // why none was run, with the remedy
	Seconds float64     `json:"seconds,omitempty"`
}

// Sanitized is one tool's part. At most one of NotApplicable, Skipped and
// Failure is there.
type Sanitized struct {
	Tool          string    `json:"tool"`                     // memcheck, racecheck, initcheck, synccheck
	With          string    `json:"with,omitempty"`           // the program behind it, such as compute-sanitizer 2025.3.1
	Findings      []Finding `json:"findings,omitempty"`       // the like together
	Hidden        int       `json:"hidden,omitempty"`         // findings beyond those that are listed
	Baseline      []Finding `json:"baseline,omitempty"`       // what it finds in the baseline, which is looked at where it finds something in the candidate
	NotApplicable string    `json:"not_applicable,omitempty"` // why there is nothing that it could find in any such kernel
	Skipped       string    `json:"skipped,omitempty"`        // why this runner does not have it, with the remedy; known before the candidate ran
	Failure       *Failure  `json:"failure,omitempty"`        // how its run ended where that was not well
	Seconds       float64   `json:"seconds,omitempty"`
}

// Performance is every timing sample in the order it was taken.
type Performance struct {
	Rounds    []Round `json:"rounds,omitempty"`
	Seconds   float64 `json:"seconds,omitempty"`
	Exhausted bool    `json:"exhausted,omitempty"` // the time budget ended the measuring
}

// A Round is what one set of fresh processes measured.
type Round struct {
	Attempt int `json:"attempt"` // at this machine code; those that left no rounds are counted too
	// CodeNumber says that this is the n-th distinct machine code of the change or of its author: see codeAlpha. Absent is 1.
	CodeNumber int       `json:"code_number,omitempty"`
	Started    time.Time `json:"started"`
	Seconds    float64   `json:"seconds"`
	Spent      Spent     `json:"spent,omitempty"`
	Seed       uint64    `json:"seed"` // of the order and of the inputs
	Series     []Series  `json:"series"`
	Before     *Fitness  `json:"before,omitempty"`
	After      *Fitness  `json:"after,omitempty"`
	Failure    *Failure  `json:"failure,omitempty"` // of the candidate; ends the measuring
}

// Sides in a Series' sequence.
const (
	SideBaseline  = 'b'
	SideCandidate = 'c'
	SideControl   = 'a' // a second copy of the baseline, timed as if it were a candidate
)

// A Series is one round's samples on one shape. Every half of a block has new inputs, the same for
// its three sides, and no launch has seen them before: see [Series.DrawSeed].
type Series struct {
	Shape         string    `json:"shape"`
	Batch         int       `json:"batch"`                    // launches per sample
	Cold          bool      `json:"cold,omitempty"`           // caches were flushed before every sample
	Seed          uint64    `json:"seed,omitempty"`           // of the inputs
	Distributions []string  `json:"distributions,omitempty"`  // block k draws its inputs as the k-th of them, round and round
	Order         string    `json:"order"`                    // a letter a sample: b, c or a; blocks mirror themselves, such as "bcaacb cabbac"
	Nanos         []float64 `json:"ns"`                       // time per launch, in Order
	Wall          []float64 `json:"wall_ns,omitempty"`        // the same by the judge's wall clock, with the overhead around a launch
	Disturbed     []int     `json:"disturbed,omitempty"`      // samples that were disturbed from outside: stored, not used
	Solo          []float64 `json:"solo_ns,omitempty"`        // the baseline before the candidate was loaded
	SoloDisturbed int       `json:"solo_disturbed,omitempty"` // how many of those were disturbed from outside
	Single        *Singles  `json:"single_ns,omitempty"`      // one launch at a time, where a sample is a batch of several
	Stateful      []float64 `json:"stateful_ns,omitempty"`    // the candidate without the reset of its state before the launch, where it has state
	ClockNanos    float64   `json:"clock_ns,omitempty"`       // the step of the clock that timed the launches behind a sample, where they show it: see ClockStep

	States          *States `json:"states,omitempty"`           // of the device
	Verified        int     `json:"verified"`                   // outputs of timed launches that were compared
	Worst           *Errors `json:"worst,omitempty"`            // against the reference: the largest of each figure
	Referenced      int     `json:"referenced,omitempty"`       // outputs behind Worst; 0 in older evidence, where they are all
	AgainstBaseline *Errors `json:"against_baseline,omitempty"` // against the baseline's output on the same input, over all of them
	// Apart counts the launches whose outputs are so far from the baseline's that one of the two is
	// wrong, see [Separation]. Beyond counts the others with an element beyond the tolerance of the
	// baseline's. Both are absent in older evidence.
	Apart  *Sampled `json:"apart,omitempty"`
	Beyond *Sampled `json:"beyond,omitempty"`
	// Outputs is both sides of the outputs behind Worst in which a side has an element beyond the tolerance.
	Outputs []TimedOutput `json:"outputs,omitempty"`
}

// A TimedOutput is what both sides made of one input while they were timed, against the
// reference.
type TimedOutput struct {
	Distribution string `json:"distribution"`
	Candidate    Errors `json:"candidate"`
	Baseline     Errors `json:"baseline"`
}

// Singles is the times of launches that ran alone, in the order taken. The n-th launch of both sides
// had the same inputs, of the n-th distribution of the series in rotation. A gain in a batch counts
// as far as these launches confirm it.
type Singles struct {
	Baseline  []float64 `json:"baseline"`
	Candidate []float64 `json:"candidate"`
	// Isolated says that no code of a side could reach the inputs of its launch before every earlier
	// launch of that side had finished.
	Isolated bool `json:"isolated,omitempty"`
	// What the first launch of a process took, on a CPU. Later launches find in memory what it left
	// there.
	FirstBaseline  []float64 `json:"first_baseline,omitempty"`
	FirstCandidate []float64 `json:"first_candidate,omitempty"`
	// On a CPU each time above is the median over the launches of one process without the first. These
	// are the means over the same launches: a launch that does the work of later ones shows in them.
	// Launches is how many each process ran.
	MeanBaseline  []float64 `json:"mean_baseline,omitempty"`
	MeanCandidate []float64 `json:"mean_candidate,omitempty"`
	Launches      int       `json:"launches,omitempty"`
}

// DrawSeed is the seed of the inputs of one launch. In the phase "timed", draw counts the halves of
// blocks over the series, and launch the launches of a batch. Further phases are for launches that
// warm up or run alone. Anyone can draw the inputs again with the seed; nobody can predict the next
// inputs from earlier ones.
func (s Series) DrawSeed(phase string, draw, launch int) uint64 {
	digest := sha256.Sum256(fmt.Appendf(nil, "%d %q %q %d %d", s.Seed, s.Shape, phase, draw, launch))
	return binary.LittleEndian.Uint64(digest[:]) >> 16 // exact as a JSON number in every language
}

// Fitness is the runner's own state around a round.
type Fitness struct {
	ClockMHz  map[string]int `json:"clock_mhz,omitempty"`
	Throttle  []string       `json:"throttle,omitempty"`
	Celsius   int            `json:"celsius,omitempty"`
	Watts     float64        `json:"watts,omitempty"`
	Load      float64        `json:"load,omitempty"`    // runnable processes that are not ours
	Foreign   []string       `json:"foreign,omitempty"` // processes on the device that are not ours
	ECCErrors int            `json:"ecc_errors,omitempty"`
}

// Profile is what the profiler counted, by shape and metric.
type Profile struct {
	Metrics []Metric `json:"metrics,omitempty"`
	Skipped string   `json:"skipped,omitempty"` // why there is none, with the remedy
	Seconds float64  `json:"seconds,omitempty"`
}

// A Metric is one counter of one profiled launch.
type Metric struct {
	Shape string  `json:"shape"`
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
	// Step is the number of the kernel in a launch of several, from 1, and Kernel is its name.
	Step   int    `json:"step,omitempty"`
	Kernel string `json:"kernel,omitempty"`
}

// A Rival is how long a different implementation takes on one shape, in microseconds, or why it
// could not be timed. No gate reads it.
type Rival struct {
	Name    string        `json:"name"`
	Shape   string        `json:"shape,omitempty"` // none where it failed on all of them
	Stats   stats.Summary `json:"stats"`
	Failure string        `json:"failure,omitempty"`
}
