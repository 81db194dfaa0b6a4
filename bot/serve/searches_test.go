package serve_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
	"github.com/kernelgate/kernelgate/runners/work/agent"
	"github.com/kernelgate/kernelgate/runners/work/search"
)

// runSearching runs a runner of the server until the test ends. Its search writes half of a recorded log,
// and writes the other half after the test says so.
func (w *world) runSearching(s *serve.Server, token string, log []byte, goOn <-chan struct{}) {
	half := bytes.LastIndexByte(log[:len(log)/2], '\n') + 1
	measure := func(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error) {
		if job.Search == nil {
			return scripted.Runner{}.Measure(ctx, job, scratch, p)
		}
		file := filepath.Join(scratch, search.LogFile)
		w.no(os.WriteFile(file, log[:half], 0o600))
		job.Share(file)
		select {
		case <-goOn:
		case <-ctx.Done():
			return runners.Measured{}, context.Cause(ctx)
		}
		w.no(os.WriteFile(file, log, 0o600))
		report := filepath.Join(scratch, search.ReportFile)
		w.no(os.WriteFile(report, []byte(`{"schema": "kernelgate/search/v1", "kind": "tune", "kernel": "scale", "device": "H200", "found": false, "headline": "Nothing is better.", "text": "", "seconds": 1}`), 0o600))
		return runners.Measured{Evidence: job.NoEvidence(), Artifacts: []string{report, file}}, nil
	}
	w.runAgent(agent.Config{
		Servers: []string{s.URL()}, Token: token, Name: "searcher", Labels: []string{"cpu"}, StateDir: w.TempDir(), Measure: measure,
		After: func(d time.Duration) <-chan time.Time { return time.After(d / 100) },
	})
}

// A tuning has a page while it runs, and the comment with its result links to the page.
func TestPageOfATuning(t *testing.T) {
	t.Parallel()
	log, err := os.ReadFile("../../runners/backend/cuda/testdata/h200/tune/matmul-search.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	o := w.options()
	o.Config.URL, o.Pages.Public = "https://gate.example/", []string{"Olga/Kernels"}
	o.Secrets.Runners = map[string]string{"searcher": "the searcher's token"}
	o.Config.Runners = []serve.RemoteRunner{{Name: "searcher", Labels: []string{"cpu"}}}
	s, _ := w.start(o)
	w.no(s.Ready(w.ctx))
	w.app.SetHook(s.URL()+"/webhook", secret)
	goOn := make(chan struct{})
	w.runSearching(s, "the searcher's token", log, goOn)
	two := strings.Replace(manifest, "source: scale.c\n", "variants: {plain: {source: scale.c}, other: {source: scale.c}}\ndefault_variant: plain\n", 1)
	_, err = w.repo.Push("main", map[string]string{"kernels/scale/kernel.yaml": two, ".github/kernelgate.yaml": strings.Replace(policy, "rules:", "  performance: {target: {shapes: [mission], speedup: \">= +10%\"}}\nrules:", 1)}, "Variants")
	w.no(err)
	pr := w.propose("kernels/scale/scale.c", "// speed 1.5\n")
	w.completed(pr.HeadSHA())
	_, err = pr.Comment("olga", "/tune")
	w.no(err)
	page := func(path string, want ...string) {
		t.Helper()
		for {
			status, body := w.get(s.URL() + path)
			if status == http.StatusOK && !slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(body, text) }) {
				return
			}
			select {
			case <-w.ctx.Done():
				t.Fatalf("%s answers %d %s", path, status, body)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	page("/searches", "matmul")
	page("/", "Search: matmul")
	_, list := w.get(s.URL() + "/searches")
	job := regexp.MustCompile(`/searches/(pr-[^"]+)`).FindStringSubmatch(list)
	if job == nil {
		t.Fatalf("no search in %s", list)
	}
	id, err := change.OfJob(job[1])
	w.no(err)
	page("/changes/"+id.String(), "<h2>Searches</h2>", "/tune", `<a href="`+job[0])
	page("/kernels/olga/kernels/kernels/scale", "<h2>Searches</h2>", "not ended")
	w.no(w.hub.WaitFor(w.ctx, func() bool {
		return slices.ContainsFunc(pr.Comments(), func(c embedded.Comment) bool {
			return strings.Contains(c.Body, "Searching the variants") && strings.Contains(c.Body, "[Follow the search](https://gate.example/searches/pr-")
		})
	}))
	close(goOn)
	address := ""
	w.no(w.hub.WaitFor(w.ctx, func() bool {
		return slices.ContainsFunc(pr.Comments(), func(c embedded.Comment) bool {
			_, after, ok := strings.Cut(c.Body, "course of the search](https://gate.example")
			address, _, _ = strings.Cut(after, ")")
			return ok
		})
	}))
	page(address, "Fastest in the race", "Verdicts of the gate")
	if status, _ := w.get(s.URL() + "/searches/none"); status != http.StatusNotFound {
		t.Errorf("a search that does not exist answers %d", status)
	}
}
