package scaffold

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats"
)

// A run becomes a trace for each shape, with the uuid of its workload and the figures that its status asks for.
func TestTraces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "w.jsonl")
	if err := os.WriteFile(file, []byte(`{"definition": "rmsnorm", "workload": {"uuid": "u-1", "axes": {"B": 4}, "inputs": {"x": {"type": "safetensors", "path": "x", "tensor_key": "x"}, "eps": {"type": "scalar", "value": 0.5}}}}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	e := &gates.Evidence{
		Kernel: "rmsnorm", Candidate: &gates.Build{OK: true}, Device: gates.Device{Name: "NVIDIA H200"},
		Provenance: gates.Provenance{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Head: gates.Commit{SHA: "0123456789abcdef"}, Tools: map[string]string{"nvcc": "13.0"}},
		Shapes:     []gates.Shape{{Name: "w1", Dims: "B=4 H=128"}, {Name: "w2", Dims: "B=8 H=128"}, {Name: "w3", Dims: "B=9 H=128"}, {Name: "w4", Dims: "B=10 H=128"}, {Name: "secret1", Dims: "B=5 H=128", Secret: true}},
		Correctness: &gates.Correctness{Cases: []gates.Case{
			{Input: gates.Input{Shape: "w1"}, Errors: &gates.Errors{MaxAbs: 0.25, Norm: 0.125}}, {Input: gates.Input{Shape: "w1"}, Errors: &gates.Errors{MaxAbs: 0.125, Norm: 0.25}},
			{Input: gates.Input{Shape: "w2"}, Errors: &gates.Errors{MaxAbs: 8, Norm: 1}}, {Input: gates.Input{Shape: "w3"}, Failure: &gates.Failure{Kind: gates.FailureCrash}},
			{Input: gates.Input{Shape: "w4"}, Errors: &gates.Errors{}},
		}},
	}
	v := &gates.Verdict{
		Correctness: []gates.CaseRow{{Shape: "w1", Passed: 2, Total: 2}, {Shape: "w2", Passed: 0, Total: 1}},
		Comparisons: []gates.Comparison{{Shape: "w1", Baseline: &stats.Summary{P50: 20}, Candidate: &stats.Summary{P50: 16}, Speedup: gates.Estimate{Value: 0.25}}},
	}
	traces, err := Traces(e, v, TraceOptions{Workloads: []string{file}})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, trace := range traces {
		text, err := json.Marshal(trace)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(text))
	}
	const where = `"environment":{"hardware":"NVIDIA_H200","libs":{"nvcc":"13.0"}},"timestamp":"2026-01-02T03:04:05Z"}}`
	want := []string{
		`{"definition":"rmsnorm","solution":"kernelgate_0123456789ab","workload":{"uuid":"u-1","axes":{"B":4},"inputs":{"eps":{"type":"scalar","value":0.5},"x":{"type":"random"}}},"evaluation":{"status":"PASSED","log_file":"build.log","correctness":{"max_relative_error":0.25,"max_absolute_error":0.25},"performance":{"latency_ms":0.016,"reference_latency_ms":0.02,"speedup_factor":1.25},` + where,
		`{"definition":"rmsnorm","solution":"kernelgate_0123456789ab","workload":{"uuid":"UUID","axes":{"B":8,"H":128},"inputs":{}},"evaluation":{"status":"INCORRECT_NUMERICAL","log_file":"build.log","correctness":{"max_relative_error":1,"max_absolute_error":8},"performance":null,` + where,
		`{"definition":"rmsnorm","solution":"kernelgate_0123456789ab","workload":{"uuid":"UUID","axes":{"B":9,"H":128},"inputs":{}},"evaluation":{"status":"RUNTIME_ERROR","log_file":"build.log","correctness":null,"performance":null,` + where,
	}
	for i := range want {
		want[i] = strings.Replace(want[i], "UUID", traces[min(i, len(traces)-1)].Workload.UUID, 1)
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	e.Candidate.OK = false
	if traces, err := Traces(e, v, TraceOptions{Definition: "d", Solution: "s"}); err != nil || len(traces) != 4 || traces[0].Evaluation.Status != "COMPILE_ERROR" || traces[0].Definition != "d" || traces[0].Solution != "s" {
		t.Errorf("%+v, %v", traces, err)
	}
	if _, err := Traces(&gates.Evidence{Kernel: "k"}, v, TraceOptions{}); err == nil || err.Error() != "the results of k have no shape that was both compared with the reference and timed" {
		t.Error(err)
	}
}
