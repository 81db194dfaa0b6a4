package pages_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// timesOnly requires only times, on every shape, so that evidence that the shipped policy rejects
// early is compared, too. No policy can omit correctness; the test removes it.
const timesOnly = `version: 1
gates:
  correctness: {shapes: all, norm_error: "<= 1%"}
  performance: {target: {shapes: all, speedup: ">= +10%"}, rounds: {min: 6, max: 40}, pairs: 6}
rules:
  - name: default
`

// A piece is evidence with one verdict on it, under a unique kernel name.
type piece struct {
	name     string
	evidence *gates.Evidence
	verdict  *gates.Verdict
}

// committed judges all evidence in the repository, by folder, with the shipped policy. If the
// verdict has no times, it uses timesOnly.
func committed(t *testing.T) map[string][]piece {
	t.Helper()
	shipped, err := policies.Shipped("h200")
	if err != nil {
		t.Fatal(err)
	}
	strict, times := parsed(t, "h200.yaml", string(shipped)), parsed(t, "times.yaml", timesOnly)
	times.Rules[0].Gates.Correctness = nil
	weighted := parsed(t, "weighted.yaml", strings.Replace(timesOnly, `{shapes: all, speedup: ">= +10%"}`, `{weighted: ">= +10%"}, guard: {speedup: ">= -50%"}`, 1))
	weighted.Rules[0].Gates.Correctness = nil
	all := map[string][]piece{}
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "results" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".."):
			return fs.SkipDir
		case filepath.Ext(path) != ".json":
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(data[:min(len(data), 200)]), gates.EvidenceSchema) {
			return err
		}
		e, err := gates.ParseEvidence(path, data)
		if err != nil {
			return err
		}
		v := gates.Judge(strict, "h200.yaml", e)
		if len(truthOf(v)) == 0 && e.Performance != nil {
			v = gates.Judge(times, "times.yaml", e)
		}
		name := strings.NewReplacer("../../", "", "/", "-", ".json", "").Replace(path)
		e.Kernel, v.Kernel = name, name
		all[filepath.Dir(path)] = append(all[filepath.Dir(path)], piece{name, e, v})
		isWarm := strings.HasSuffix(path, "h200/warm.json") // with launches from a warm cache
		if isWarm || strings.HasSuffix(filepath.Dir(path), "sdpa_fp8/evidence/all") && e.Performance != nil {
			own := *e
			own.Kernel, own.Weights = name+"-weighted", &gates.Weights{Launches: map[string]float64{}, Step: 5000}
			if isWarm {
				own.Weights.Warm = []string{"mission"}
			}
			for i, s := range e.Shapes {
				if !s.Secret && s.Context == "" {
					own.Weights.Launches[s.Name] = float64(1 + 35*(i%2))
				}
			}
			if v := gates.Judge(weighted, "weighted.yaml", &own); v.Weighted != nil && (v.WeightedWarm != nil) == isWarm {
				all[filepath.Dir(path)] = append(all[filepath.Dir(path)], piece{own.Kernel, &own, v})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(slices.Concat(slices.Collect(maps.Values(all))...), func(p piece) bool { return p.verdict.WeightedWarm != nil }) {
		t.Error("no evidence has sums of cold and of warm launches")
	}
	return all
}

func parsed(t *testing.T, file, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// writePiece writes evidence and verdict to disk as check does.
func writePiece(t *testing.T, dir string, p piece) {
	t.Helper()
	folder := filepath.Join(dir, p.name)
	err := os.MkdirAll(folder, 0o755)
	for name, value := range map[string]any{"evidence.json": p.evidence, "verdict.json": p.verdict} {
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), []byte(marshalled(t, value)), 0o644)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func marshalled(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// viewOf returns a pull request whose only kernel got the verdict: once, or on each device.
func viewOf(t *testing.T, p piece, devices ...string) present.View {
	t.Helper()
	head, at := strings.Repeat("a1", 20), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := change.New(change.ID{Kind: change.Pull, Repo: 1, Number: 12})
	do := func(e change.Event) { s.Apply(s.Seq+1, at, e) }
	do(change.Seen{Facts: change.Facts{Repo: "example/attention", DefaultBranch: "main", Title: "Faster", Author: "ada", Open: true, Head: head, Base: "main"}})
	plan := change.Plan{
		Key: s.Facts.PlanKey(), Head: head, Base: strings.Repeat("c3", 20), Check: "kernelgate", PolicyFile: ".github/kernelgate.yaml", Forks: "after-approval",
	}
	spec := change.KernelSpec{Name: p.name, Folder: "kernels/" + p.name, Rule: "default", Labels: []string{"h200"}, Sources: "s", Bundle: "b"}
	if len(devices) == 0 {
		devices = []string{""}
	}
	for _, device := range devices {
		spec.Name, spec.Device = gates.NameOn(p.name, device), device
		plan.Kernels = append(plan.Kernels, change.Kernel{KernelSpec: spec})
	}
	do(change.Planned{Plan: plan})
	view := present.View{State: s, Verdicts: map[string]*gates.Verdict{}, Now: at}
	for _, run := range s.Runs {
		v := *p.verdict
		v.Provenance.Label = run.Device
		do(change.Started{Job: run.Job, Token: s.Seq, Runner: "h200-1"})
		do(change.Finished{Job: run.Job, Token: s.Seq, Runner: "h200-1", Result: change.NewResult(&v)})
		view.Verdicts[run.Job] = &v
	}
	return view
}
