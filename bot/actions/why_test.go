package actions_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

const gpuManifest = `version: 1
name: scale
mode: cuda
arch: [sm_80]
entry: scale
source: scale.cu
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: N, dtype: i32, access: scalar, value: N}
launch: {grid: ["N / 32"], block: [32]}
reference: {source: reference.py, entry: reference}
tolerance: {abs: 0.1}
shapes:
  mission: {N: 1024}
`

// gpuKernel replaces the kernel of the world by one for a GPU. What would be measured there is made up.
func gpuKernel() map[string]string {
	return map[string]string{"kernels/scale/kernel.yaml": gpuManifest, "kernels/scale/scale.cu": "// base\n", "kernels/scale/reference.py": "# the truth\n", "kernels/scale/scale.c": "", "kernels/scale/reference.c": ""}
}

// /why profiles both sides in the job that the comment starts, and replies with the explanation. The verdict stays as it is.
func TestWhyInAWorkflow(t *testing.T) {
	w := newWorld(t, gpuKernel(), mayWrite)
	pr := w.propose("faster", map[string]string{"kernels/scale/scale.cu": "// speed 1.3\n"}, embedded.PROptions{})
	w.must(w.act("pull_request"), "PASS", "", 0)
	profiled := 0
	var fault error
	w.measure = func(ctx context.Context, job runners.Job, dir string, p runners.Progress) (runners.Measured, error) {
		if job.Part != runners.PartExplain || strings.Join(job.Shapes, " ") != "mission" || job.Record != nil {
			t.Errorf("the job is %+v", job)
		}
		if profiled++; fault != nil {
			return runners.Measured{}, fault
		}
		side := func(cycles float64) []gates.Counted {
			return []gates.Counted{{Kernel: "scale", Counters: map[string]float64{"launch__registers_per_thread": cycles}}}
		}
		build := gates.Build{OK: true}
		return runners.Measured{Evidence: &gates.Evidence{
			Schema: gates.EvidenceSchema, Kernel: "scale", Change: job.Change, Provenance: job.Provenance, Baseline: &build, Candidate: &build,
			Device:    gates.Device{Kind: gates.DeviceGPU, Name: "made up", Arch: "sm_80"},
			Shapes:    []gates.Shape{{Name: "mission", Dims: "N=1024"}},
			Explained: &gates.Explained{Tool: "ncu", Shapes: []gates.ExplainedShape{{Shape: "mission", Baseline: side(80), Again: side(80), Candidate: side(40)}}},
		}}, nil
	}
	for _, c := range []struct {
		name, who, text string
		fault           error
		profiles        int
		reply           string
	}{
		{"everything", "walt", "/why", nil, 1, "**Why** on `mission`"},
		{"a shape", "walt", "/why scale mission", nil, 1, "**Why** on `mission`"},
		{"no such shape", "walt", "/why wide", nil, 0, "has no shape \"wide\""},
		{"no role", "rita", "/why", nil, 0, "needs the role `write` in this repository, and you have `read`"},
		{"no GPU", "walt", "/why", errors.New("there is no GPU"), 1, "this runner cannot profile scale: there is no GPU"},
	} {
		profiled, fault = 0, c.fault
		before, checks := len(pr.Comments()), w.repo.Checks(pr.HeadSHA())
		sticky := pr.Comments()[0].Body
		_, err := pr.Comment(c.who, c.text)
		w.no(err)
		done := w.act("issue_comment")
		w.must(done, "", "", 0)
		replies := pr.Comments()[before+1:]
		if len(replies) != 1 || profiled != c.profiles {
			t.Fatalf("%s: profiled %d times, replies %+v", c.name, profiled, replies)
		}
		w.holds(replies[0].Body, c.reply)
		if (done.Results != "") != (c.profiles > 0 && c.fault == nil) {
			t.Errorf("%s: the results are in %q", c.name, done.Results)
		}
		if now := w.repo.Checks(pr.HeadSHA()); len(now) != len(checks) || pr.Comments()[0].Body != sticky {
			t.Errorf("%s: the verdict has changed: %+v", c.name, now)
		}
	}
}

// A fork's code is not profiled before somebody approved it.
func TestWhyOfAFork(t *testing.T) {
	w := newWorld(t, gpuKernel(), mayWrite)
	fork, err := w.repo.Fork("eve")
	w.no(err)
	pr := w.propose("faster", map[string]string{"kernels/scale/scale.cu": "// head\n"}, embedded.PROptions{HeadRepo: fork})
	w.measure = func(context.Context, runners.Job, string, runners.Progress) (runners.Measured, error) {
		t.Error("the fork's code runs")
		return runners.Measured{}, errors.New("no")
	}
	_, err = pr.Comment("walt", "/why")
	w.no(err)
	w.must(w.act("issue_comment"), "", "", 0)
	all := pr.Comments()
	w.holds(all[len(all)-1].Body, "/ok-to-test")
}
