package scaffold

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// A Trace is one result in FlashInfer-Bench's format: one solution on one workload.
type Trace struct {
	Definition string          `json:"definition"`
	Solution   string          `json:"solution"`
	Workload   TraceWorkload   `json:"workload"`
	Evaluation TraceEvaluation `json:"evaluation"`
}

// A TraceWorkload is the sizes of the result.
type TraceWorkload struct {
	UUID   string         `json:"uuid"`
	Axes   map[string]int `json:"axes"`
	Inputs map[string]any `json:"inputs"`
}

// A TraceEvaluation is what was found. Figures are null where the status leaves none.
type TraceEvaluation struct {
	Status      string            `json:"status"`
	LogFile     string            `json:"log_file"`
	Correctness *TraceCorrectness `json:"correctness"`
	Performance *TracePerformance `json:"performance"`
	Environment TraceEnvironment  `json:"environment"`
	Timestamp   string            `json:"timestamp"`
}

// A TraceCorrectness is the largest errors over all inputs of the size. The relative one is the norm of the error over the norm of
// the expected output: evidence has no other.
type TraceCorrectness struct {
	MaxRelativeError float64 `json:"max_relative_error"`
	MaxAbsoluteError float64 `json:"max_absolute_error"`
}

// A TracePerformance is in milliseconds. The baseline stands in the place of the reference, which kernelgate does not time.
type TracePerformance struct {
	Latency          float64 `json:"latency_ms"`
	ReferenceLatency float64 `json:"reference_latency_ms"`
	Speedup          float64 `json:"speedup_factor"`
}

// A TraceEnvironment is where it was found.
type TraceEnvironment struct {
	Hardware string            `json:"hardware"`
	Libs     map[string]string `json:"libs"`
}

// The statuses of FlashInfer-Bench that kernelgate's evidence can tell apart.
const (
	tracePassed      = "PASSED"
	traceIncorrect   = "INCORRECT_NUMERICAL"
	traceRuntime     = "RUNTIME_ERROR"
	traceDoesNotLink = "COMPILE_ERROR"
)

// TraceOptions name what evidence calls otherwise.
type TraceOptions struct {
	Definition string   // "" is the kernel's name
	Solution   string   // "" is the head's commit
	Workloads  []string // JSONL files of the definition, for the uuids
}

// Traces are the results of a run in FlashInfer-Bench's format, one for each shape of the manifest that was timed or compared.
func Traces(e *gates.Evidence, v *gates.Verdict, opt TraceOptions) ([]Trace, error) {
	if opt.Definition == "" {
		opt.Definition = e.Kernel
	}
	if opt.Solution == "" {
		opt.Solution = "kernelgate_" + e.Provenance.Head.SHA[:min(12, len(e.Provenance.Head.SHA))]
	}
	workloads, err := readWorkloads(opt.Definition, opt.Workloads)
	if err != nil {
		return nil, err
	}
	var all []Trace
	for _, s := range e.Shapes {
		if s.Secret {
			continue
		}
		t := Trace{Definition: opt.Definition, Solution: opt.Solution, Workload: workloadOf(opt.Definition, s, workloads)}
		t.Evaluation = evaluation(e, v, s.Name)
		if t.Evaluation.Status == tracePassed && (t.Evaluation.Correctness == nil || t.Evaluation.Performance == nil) {
			continue // the format has no result without its figures
		}
		all = append(all, t)
	}
	if len(all) == 0 {
		return nil, usage.Errorf("the results of %s have no shape that was both compared with the reference and timed", e.Kernel)
	}
	return all, nil
}

// workloadOf is the workload whose axes a shape has, or one of its own.
func workloadOf(name string, s gates.Shape, known []workload) TraceWorkload {
	axes := map[string]int{}
	for word := range strings.FieldsSeq(s.Dims) {
		dim, value, _ := strings.Cut(word, "=")
		if n, err := strconv.Atoi(value); err == nil {
			axes[dim] = n
		}
	}
	for _, w := range known {
		same := len(w.Workload.Axes) > 0
		for axis, size := range w.Workload.Axes {
			same = same && axes[axis] == size
		}
		if same {
			inputs := map[string]any{}
			for name, in := range w.Workload.Inputs {
				inputs[name] = map[string]any{"type": "random"}
				if in.Type == "scalar" {
					inputs[name] = map[string]any{"type": "scalar", "value": in.Value}
				}
			}
			return TraceWorkload{UUID: w.Workload.UUID, Axes: w.Workload.Axes, Inputs: inputs}
		}
	}
	h := sha256.Sum256([]byte(name + " " + s.Dims))
	return TraceWorkload{UUID: fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16]), Axes: axes, Inputs: map[string]any{}}
}

func evaluation(e *gates.Evidence, v *gates.Verdict, shape string) TraceEvaluation {
	t := TraceEvaluation{
		Status: tracePassed, LogFile: "build.log", Timestamp: e.Provenance.Time.UTC().Format("2006-01-02T15:04:05Z"),
		Environment: TraceEnvironment{Hardware: strings.ReplaceAll(e.Device.Name, " ", "_"), Libs: e.Provenance.Tools},
	}
	if e.Candidate == nil || !e.Candidate.OK {
		t.Status = traceDoesNotLink
		return t
	}
	var found TraceCorrectness
	compared := false
	if e.Correctness != nil {
		for _, c := range e.Correctness.Cases {
			switch {
			case c.Shape != shape:
			case c.Failure != nil || c.Errors == nil:
				t.Status = traceRuntime
				return t
			default:
				compared = true
				found.MaxAbsoluteError = max(found.MaxAbsoluteError, c.Errors.MaxAbs)
				found.MaxRelativeError = max(found.MaxRelativeError, c.Errors.Norm)
			}
		}
	}
	if compared {
		t.Correctness = &found
	}
	if slices.ContainsFunc(v.Correctness, func(row gates.CaseRow) bool { return row.Shape == shape && row.Passed < row.Total }) {
		t.Status = traceIncorrect
		return t
	}
	for _, c := range v.Comparisons {
		if c.Shape != shape || c.Candidate == nil {
			continue
		}
		if c.Baseline == nil {
			continue // a new kernel has nothing to compare with
		}
		t.Performance = &TracePerformance{Latency: c.Candidate.P50 / 1e3, ReferenceLatency: c.Baseline.P50 / 1e3, Speedup: 1 + c.Speedup.Value}
	}
	return t
}
