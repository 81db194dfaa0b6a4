package gates

import (
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// VerdictSchema names the version of the verdict format.
const VerdictSchema = "kernelgate/verdict/v1"

// An Outcome is the result of a verdict.
type Outcome string

const (
	Pass  Outcome = "PASS"  // proven
	Defer Outcome = "DEFER" // not proven, or disproven; the reason says which
	Error Outcome = "ERROR" // the runner's fault, or the setup's, never the change's
)

// A Reason says why a change is deferred.
type Reason string

const (
	ReasonBuild        Reason = "build"
	ReasonResources    Reason = "resources"
	ReasonCorrectness  Reason = "correctness"
	ReasonPrecision    Reason = "precision"
	ReasonTooSlow      Reason = "too-slow"
	ReasonRegression   Reason = "regression"
	ReasonInconclusive Reason = "inconclusive"
	ReasonSuspicious   Reason = "suspicious"
	ReasonEnergy       Reason = "energy"
	ReasonProfile      Reason = "profile"
	ReasonRunner       Reason = "runner" // only with ERROR
	ReasonSetup        Reason = "setup"  // only with ERROR: both sides fail, so the change is not at fault
)

// ProvenWrong reports whether the author must fix something. A change with any other reason is not
// proven yet, and more measuring may prove it.
func (r Reason) ProvenWrong() bool {
	switch r {
	case ReasonBuild, ReasonResources, ReasonCorrectness, ReasonPrecision, ReasonRegression, ReasonEnergy, ReasonSuspicious:
		return true
	}
	return false
}

// A Verdict is the result of a run, with everything that a report shows, in the order in which it
// was decided.
type Verdict struct {
	Schema  string  `json:"schema"`
	Kernel  string  `json:"kernel"`
	Outcome Outcome `json:"outcome"`
	Reason  Reason  `json:"reason,omitempty"`
	Summary string  `json:"summary"` // one sentence
	Rule    string  `json:"rule"`
	Policy  string  `json:"policy"` // its file name
	// Enforce is that of the rule, where it does not block.
	Enforce    policy.Enforce `json:"enforce,omitempty"`
	Trial      *Trial         `json:"trial,omitempty"` // by a rule that does not block and is tried as well
	Provenance Provenance     `json:"provenance"`
	Device     Device         `json:"device"`

	Gates        []GateResult   `json:"gates"`
	Resources    []ResourceRow  `json:"resources,omitempty"`
	Correctness  []CaseRow      `json:"correctness,omitempty"`
	Sanitizers   []SanitizerRow `json:"sanitizers,omitempty"`
	Comparisons  []Comparison   `json:"comparisons,omitempty"`
	Weighted     *WeightedSpeed `json:"weighted,omitempty"`      // all launches of a step, where the manifest has weights
	WeightedWarm *WeightedSpeed `json:"weighted_warm,omitempty"` // the same with warm launches of the shapes that the weights call warm
	Best         []AgainstBest  `json:"best,omitempty"`          // of the shapes whose high-water mark is known
	Energy       []EnergyRow    `json:"energy,omitempty"`
	Profile      []MetricRow    `json:"profile,omitempty"`
	Rivals       []Rival        `json:"rivals,omitempty"`       // for information
	Builds       []Build        `json:"builds,omitempty"`       // baseline, candidate
	MachineCode  *MachineCode   `json:"machine_code,omitempty"` // for information
	Measuring    *Measuring     `json:"measuring,omitempty"`
	Why          []Why          `json:"why,omitempty"`     // why the times differ, for information
	ToPass       []string       `json:"to_pass,omitempty"` // what would make it pass
	Notes        []string       `json:"notes,omitempty"`
	Existing     []string       `json:"existing,omitempty"` // findings that the baseline has as well, by gate, in a few words
	Findings     []Diagnostic   `json:"findings,omitempty"` // for annotations on lines

	// Elsewhere is the other devices that the policy asks for, by label. The verdict says nothing about them.
	Elsewhere []OtherDevice `json:"elsewhere,omitempty"`

	// Unjudged is the times that were measured and that no gate judged, for a report. They follow from the evidence, so that a
	// stored verdict does not have them: see UnjudgedTimes.
	Unjudged []Comparison `json:"-"`
	// Unsteady is what its medians hide, for a report whose writer has the evidence: see the function Unsteady.
	Unsteady []string `json:"-"`
}

// An OtherDevice is one that a verdict says nothing about.
type OtherDevice struct {
	Label   string         `json:"label"`
	Enforce policy.Enforce `json:"enforce"` // block or inform: what its verdict does
}

// elsewhere is the devices of a policy but one, sorted.
func elsewhere(d policy.Devices, label string) []OtherDevice {
	var all []OtherDevice
	for _, device := range slices.Sorted(slices.Values(d.Each())) {
		enforce := policy.EnforceBlock
		if d.Informs(device) {
			enforce = policy.EnforceInform
		}
		if device != label {
			all = append(all, OtherDevice{device, enforce})
		}
	}
	return all
}

// Name is the kernel's, with the device that the run was for if the policy asks for several.
func (v *Verdict) Name() string { return NameOn(v.Kernel, v.Provenance.Label) }

// NameOn names the run of a kernel for a device; the device may be "".
func NameOn(kernel, device string) string {
	if device == "" {
		return kernel
	}
	return kernel + On + device
}

// On stands between a kernel's name and the device of a run.
const On = " on "

// Blocks reports whether the verdict keeps the change from being merged.
func (v *Verdict) Blocks() bool { return v.Outcome != Pass && v.Enforce.Blocks() }

// A Trial is what the evidence comes to by a rule that does not block yet, in addition to the rule
// that applies. The evidence is what the rule that applies asked for.
type Trial struct {
	Rule    string         `json:"rule"`
	Enforce policy.Enforce `json:"enforce"`
	Outcome Outcome        `json:"outcome"`
	Reason  Reason         `json:"reason,omitempty"`
	Summary string         `json:"summary"`
	Lacks   Gate           `json:"lacks,omitempty"` // the gate for which a run by this rule would gather more
}

// Remaining is the end of the summary of a pass that leaves something wrong, or nothing.
func (v *Verdict) Remaining() string {
	if v.Outcome != Pass {
		return ""
	}
	return facts.Remaining(v.Existing)
}

// A Status is how one gate, row or goal came out.
type Status string

const (
	Passed  Status = "pass"
	Failed  Status = "fail"
	Open    Status = "open"    // not decided
	Informs Status = "inform"  // would have failed, but is not required
	NotRun  Status = "not-run" // an earlier gate failed, or nothing was asked
	Missing Status = "missing" // asked, but the evidence does not have it
)

// A GateResult is one gate's part of the verdict.
type GateResult struct {
	Gate     Gate     `json:"gate"`
	Status   Status   `json:"status"`
	Required bool     `json:"required"`
	Reason   Reason   `json:"reason,omitempty"` // when failed or open
	Text     string   `json:"text"`             // the sentence of Found
	Details  []Detail `json:"details,omitempty"`
	ToPass   []string `json:"to_pass,omitempty"`

	Found facts.Fact     `json:"-"`
	More  []facts.Fact   `json:"-"` // behind Details
	Steps []facts.Advice `json:"-"` // behind ToPass
}

// ComparisonOf is the comparison of a shape, or of one of the sums over a step; nil where nothing was timed on it, and for a nil
// verdict.
func (v *Verdict) ComparisonOf(shape string) *Comparison {
	if v == nil {
		return nil
	}
	if !IsStep(shape) {
		return comparisonOf(v.Comparisons, shape)
	}
	return comparisonOf(v.judgedSums(), shape)
}

func comparisonOf(all []Comparison, shape string) *Comparison {
	if i := slices.IndexFunc(all, func(c Comparison) bool { return c.Shape == shape }); i >= 0 {
		return &all[i]
	}
	return nil
}

// A ResourceRow is one line of the resource table.
type ResourceRow struct {
	Name      string   `json:"name"`
	Unit      string   `json:"unit,omitempty"` // B for bytes
	Baseline  *float64 `json:"baseline,omitempty"`
	Candidate *float64 `json:"candidate,omitempty"`
	Limit     string   `json:"limit,omitempty"`
	Status    Status   `json:"status"`
}

// A CaseRow is one line of the correctness table: the cases of one shape and
// distribution together.
type CaseRow struct {
	Shape         string   `json:"shape"`
	Dims          string   `json:"dims"`
	Distribution  string   `json:"distribution"`
	Secret        bool     `json:"secret,omitempty"`
	Passed        int      `json:"passed"`
	Total         int      `json:"total"`
	Existing      int      `json:"existing,omitempty"` // of those that did not pass, cases that the baseline fails as badly
	MaxAbs        float64  `json:"max_abs"`
	MeanAbs       float64  `json:"mean_abs"`
	Norm          float64  `json:"norm"`
	BadShare      float64  `json:"bad_share"`
	EndToEnd      *float64 `json:"end_to_end_max_abs,omitempty"`
	Deterministic *bool    `json:"deterministic,omitempty"`
	BitParity     *bool    `json:"bit_parity,omitempty"`
	Problem       string   `json:"problem,omitempty"`
}

// A SanitizerRow is one tool's line, and its findings.
type SanitizerRow struct {
	Tool     string    `json:"tool"`
	With     string    `json:"with,omitempty"`
	Status   Status    `json:"status"`
	Note     string    `json:"note,omitempty"`
	Findings []Finding `json:"findings,omitempty"`
}

// A Comparison is one shape's baseline and candidate side by side.
type Comparison struct {
	Shape     string         `json:"shape"`
	Dims      string         `json:"dims,omitempty"`
	Secret    bool           `json:"secret,omitempty"` // the size was drawn for the run: see Shape
	Of        string         `json:"of,omitempty"`     // the manifest's name of a shape in one more context: see Shape
	Context   policy.Context `json:"context,omitempty"`
	Role      Role           `json:"role"`
	Goal      string         `json:"goal,omitempty"`
	Status    Status         `json:"status"`
	Same      bool           `json:"same,omitempty"`     // equal machine code serves it on both sides: nothing was measured
	Baseline  *stats.Summary `json:"baseline,omitempty"` // microseconds; p50 is the geometric mean of the medians on each kind of input
	Candidate *stats.Summary `json:"candidate,omitempty"`
	Kinds     []KindTime     `json:"kinds,omitempty"`      // by kind of input, where they gain differently or one of them is the reason
	KindLimit *float64       `json:"kind_limit,omitempty"` // the speedup that each kind must reach, where one of them does not

	Speedup          Estimate  `json:"speedup"`
	LatencyReduction Estimate  `json:"latency_reduction"`
	Control          *Estimate `json:"control,omitempty"` // the A/A control as a speedup
	SoloShift        *Estimate `json:"solo_shift,omitempty"`
	Alone            *Estimate `json:"alone,omitempty"`         // the speedup by launches that ran alone, where samples are batches
	Detectable       float64   `json:"detectable,omitempty"`    // smallest distance from the goal that this run could show
	RoundsNeeded     int       `json:"rounds_needed,omitempty"` // to decide, should the estimate be the truth

	TFLOPs   *float64 `json:"tflops,omitempty"`
	GBs      *float64 `json:"gb_per_s,omitempty"`
	Roofline *float64 `json:"roofline,omitempty"` // share of the device's limit
}

// CandidateTime is the candidate's time that stands next to the speedup, in microseconds: the baseline's time divided by the speedup.
// The speedup is the median of paired ratios, and the ratio of the two medians can differ from it, even in its sign. Without a
// speedup it is the candidate's median; 0 where there is none.
func (c Comparison) CandidateTime() float64 {
	switch {
	case c.Candidate == nil:
		return 0
	case c.Baseline == nil || !c.Speedup.Known():
		return c.Candidate.P50
	}
	return c.Baseline.P50 / (1 + c.Speedup.Value)
}

// CandidateTime is the same on one kind of input.
func (k KindTime) CandidateTime() float64 {
	if !k.Speedup.Known() {
		return k.Candidate
	}
	return k.Baseline / (1 + k.Speedup.Value)
}

// A KindTime is the times on one kind of input, in microseconds.
type KindTime struct {
	Kind      string   `json:"kind"`
	Baseline  float64  `json:"baseline"`
	Candidate float64  `json:"candidate"`
	Speedup   Estimate `json:"speedup"`
}

// Measuring says how the performance verdict was reached.
type Measuring struct {
	Rounds     int     `json:"rounds"`
	MaxRounds  int     `json:"max_rounds"`
	Interim    int     `json:"look"` // the interim analysis that decided, from 1. Stored verdicts have both keys, which keep the earlier word.
	Interims   int     `json:"looks"`
	Attempts   int     `json:"attempts"`
	CodeNumber int     `json:"code_number,omitempty"` // where this is not the first machine code of the change
	ErrorRate  float64 `json:"error_rate,omitempty"`  // that a later machine code may spend, out of the policy's
	Confidence float64 `json:"confidence"`            // of the shown intervals; all interim analyses together spend the error rate of Policy
	Policy     float64 `json:"policy_confidence"`
	Pairs      int     `json:"pairs"`
	Inputs     int     `json:"inputs,omitempty"` // kinds of input that were timed in turn, where there is more than one
	Disturbed  int     `json:"disturbed"`
	Seconds    float64 `json:"seconds"`
}

// A MetricRow is one profiler condition.
type MetricRow struct {
	Shape  string   `json:"shape"`
	Metric string   `json:"metric"`
	Value  *float64 `json:"value,omitempty"`
	Unit   string   `json:"unit,omitempty"`
	Limit  string   `json:"limit"`
	Status Status   `json:"status"`
}
