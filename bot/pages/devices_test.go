package pages_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// The page of a change has a row for each kernel and device: what was found there, and what is missing.
func TestMatrixOfDevices(t *testing.T) {
	w := newWorld(t)
	s := change.New(change.ID{Kind: change.Pull, Repo: 1, Number: 31})
	f := change.Facts{Repo: "org/kernels", DefaultBranch: "main", Title: "On each", Author: "ada", Open: true, Head: strings.Repeat("ab", 20), Base: "main"}
	w.write(s, change.Seen{Facts: f})
	plan := change.Plan{Key: f.PlanKey(), Head: f.Head, Check: "kernelgate", PolicyFile: ".github/kernelgate.yaml", Policy: policyText}
	for _, device := range []string{"box1", "box2", "box3"} {
		plan.Kernels = append(plan.Kernels, change.Kernel{KernelSpec: change.KernelSpec{
			Name: "sdpa on " + device, Folder: "kernels/sdpa", Device: device, Informs: device == "box2", Rule: "default", Labels: []string{device}, Sources: "s", Bundle: "b"}})
	}
	w.write(s, change.Planned{Plan: plan})
	lines := map[string]string{}
	for device, name := range map[string]string{"box1": "stage1", "box2": "stage3a"} {
		run, ok := s.ByKey(change.KernelKey{Folder: "kernels/sdpa", Device: device})
		if !ok {
			t.Fatalf("no run on %s", device)
		}
		_, v := recorded(t, name)
		v.Kernel, v.Provenance.Label = "sdpa", device
		if run.Informs {
			v.Enforce = policy.EnforceInform
		}
		data, err := json.Marshal(v)
		w.no(err)
		result := change.NewResult(v)
		result.Verdict = "verdict-" + run.Job
		w.blobs[result.Verdict] = data
		w.write(s, change.Started{Job: run.Job, Token: 1, Runner: "gpu-" + device})
		w.write(s, change.Finished{Job: run.Job, Token: 1, Runner: "gpu-" + device, Result: result})
		lines[device] = report.OneLine(v)
	}
	w.settle()
	site := w.site(pages.Everybody{}).URL
	answer, page := w.get(site + "/changes/pr-1-31")
	if answer.StatusCode != 200 {
		t.Fatalf("%s: %s", answer.Status, page)
	}
	_, matrix, _ := strings.Cut(oneLine(htmlText(page)), "Devices")
	matrix, _, _ = strings.Cut(matrix, "Commit")
	for _, want := range []string{"box1", "PASS", "box2 informs", "DEFER", "box3", "queued", "no runner with the label box3 is connected", "32.06"} {
		if !strings.Contains(matrix, want) {
			t.Errorf("the matrix does not say %q: %s", want, matrix)
		}
	}
	for device, line := range lines {
		_, figure, _ := strings.Cut(line, " sdpa on "+device+": ")
		if !strings.Contains(matrix, oneLine(figure)) {
			t.Errorf("the matrix does not have what was found on %s: %s\n%s", device, figure, matrix)
		}
	}
	_, text := w.get(site + "/api/v1/changes/pr-1-31")
	var model struct{ Devices []pages.DeviceRun }
	w.no(json.Unmarshal([]byte(text), &model))
	if d := model.Devices; len(d) != 3 || d[0].Device != "box1" || d[0].Result == nil || d[0].Result.Label != "box1" || d[0].Result.Outcome != gates.Pass || !d[1].Informs || d[1].Result.Blocks || d[2].Result != nil {
		t.Errorf("programs read %+v", d)
	}
	for _, d := range model.Devices {
		_, text := w.get(site + "/api/v1/runs/" + d.Job)
		var run struct {
			Label    string `json:"device_label"`
			Attempts []struct {
				Job string `json:"job"`
			} `json:"attempts"`
		}
		w.no(json.Unmarshal([]byte(text), &run))
		if run.Label != d.Device || len(run.Attempts) != 1 || run.Attempts[0].Job != d.Job {
			t.Errorf("the run on %s says %+v", d.Device, run)
		}
	}
	if _, other := w.get(site + "/changes/pr-1-7"); strings.Contains(other, "<h2>Devices") {
		t.Error("a change on one device has a matrix")
	}
}
