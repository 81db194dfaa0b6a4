package pages_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/pages/browser"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// pastOfMain creates a default branch with n measured commits, and returns their runs, oldest first.
func pastOfMain(w *world, n int) (jobs []string) {
	w.Helper()
	for i := range n {
		s := w.open(change.ID{Kind: change.Push, Repo: 1, SHA: fmt.Sprintf("%08x%032x", 0xabc0000+i, i)}, "org/kernels", "", "sdpa")
		jobs = append(jobs, w.finishAs(s, recordOf(w, []string{"stage1", "stage2", "stage3b"}[i*3/n])))
	}
	w.settle()
	return jobs
}

// TestHistoryRange checks that the address of a kernel's page chooses a part of its history, and that links lead to other parts.
func TestHistoryRange(t *testing.T) {
	w := newWorld(t)
	jobs := pastOfMain(w, 70)
	site := w.site(pages.Everybody{}).URL + "/kernels/org/kernels/kernels/sdpa"
	shown := func(query url.Values) (first, last string, n int) {
		t.Helper()
		var p struct {
			Range   pages.Range
			History []struct{ Points []struct{ Job string } }
		}
		_, body := w.get(strings.Replace(site, "/kernels/", "/api/v1/kernels/", 1) + "?" + query.Encode())
		w.no(json.Unmarshal([]byte(body), &p))
		points := p.History[0].Points
		if p.Range.Shown != len(points) || p.Range.All != 70 || p.Range.From != points[0].Job || p.Range.To != points[len(points)-1].Job {
			t.Errorf("%v: the range is %+v, and %d points are shown", query, p.Range, len(points))
		}
		return p.Range.From, p.Range.To, len(points)
	}
	for name, c := range map[string]struct {
		from, to    string
		first, last int
	}{
		"none":         {"", "", 10, 69},
		"a part":       {jobs[3], jobs[5], 3, 5},
		"in reverse":   {jobs[5], jobs[3], 3, 5},
		"only a start": {jobs[66], "", 66, 69},
		"only an end":  {"", jobs[2], 0, 2},
		"one run":      {jobs[7], jobs[7], 7, 7},
		"a run gone":   {"gone", jobs[2], 0, 2},
		"both gone":    {"gone", "<b>", 10, 69},
		"everything":   {jobs[0], jobs[69], 0, 69},
	} {
		first, last, n := shown(url.Values{"from": {c.from}, "to": {c.to}})
		if first != jobs[c.first] || last != jobs[c.last] || n != c.last-c.first+1 {
			t.Errorf("%s: shown are %d runs from %d to %d", name, n, slices.Index(jobs, first), slices.Index(jobs, last))
		}
	}
	_, body := w.get(site)
	link := func(text string, first, last int) string {
		return fmt.Sprintf(`<a href="?from=%s&amp;to=%s#history">%s</a>`, jobs[first], jobs[last], text)
	}
	for _, want := range []string{"60 of 70 runs:", link("← earlier", 0, 9), link("last 10", 60, 69), "<strong>last 60</strong>", link("all 70", 0, 69), "goal of the next change: ≥ +10 %", "as before its first measured commit"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	_, body = w.get(site + "?" + url.Values{"from": {jobs[20]}, "to": {jobs[29]}}.Encode())
	for _, want := range []string{"10 of 70 runs:", link("← earlier", 10, 19), link("later →", 30, 39), "Over the 10 commits shown, the default branch became"} {
		if !strings.Contains(body, want) {
			t.Errorf("a part of the history has no %s", want)
		}
	}
}

// TestZoom checks that a reader can drag across a chart, and gets back.
func TestZoom(t *testing.T) {
	w := newWorld(t)
	jobs := pastOfMain(w, 12)
	site := w.site(pages.Everybody{}).URL
	b := browser.Open(t)
	b.Everything(site + "/kernels/org/kernels/kernels/sdpa")
	tab := b.Tab(browser.Look{Width: 1200, Height: 900})
	tab.Go(site + "/kernels/org/kernels/kernels/sdpa")
	tab.Drag("#history .trend svg", 0.25, 0.55)
	tab.Until(`location.search.includes("from=")`)
	tab.Until(`document.querySelector("#history .trend svg").querySelectorAll("a").length < 12`)
	query := browser.Eval[string](tab, "location.search")
	values, err := url.ParseQuery(strings.TrimPrefix(query, "?"))
	w.no(err)
	first, last := slices.Index(jobs, values.Get("from")), slices.Index(jobs, values.Get("to"))
	if n := browser.Eval[int](tab, `document.querySelector("#history .trend svg").querySelectorAll("a").length`); first < 1 || last <= first || last > 7 || n != last-first+1 {
		t.Errorf("the address is %s, and %d points are shown", query, n)
	}
	if says := tab.Text("#gained"); !strings.Contains(says, "commits shown") {
		t.Errorf("the page says %q", says)
	}
	browser.Eval[bool](tab, "history.back() ?? true")
	tab.Until(`document.querySelector("#history .trend svg").querySelectorAll("a").length === 12`)
	for _, c := range tab.Complaints() {
		t.Error(c)
	}
}

// TestHistoryOfSteps checks that a goal for all launches of a step has a chart of its own, before those of the shapes.
func TestHistoryOfSteps(t *testing.T) {
	w := newWorld(t)
	var last string
	for i, micros := range []float64{60, 50} {
		e, v := recorded(w, "stage2")
		for i := range v.Comparisons {
			v.Comparisons[i].Role = gates.RoleGuard
		}
		v.Weighted = &gates.WeightedSpeed{
			Role: gates.RoleTarget, Trace: "sha256:0", Shapes: []gates.WeightedShape{{Shape: "mission", Launches: 3, Share: 1}}, Goal: "weighted speedup >= +3%", Status: gates.Passed, Baseline: micros * 1.2, Candidate: micros, Speedup: gates.Estimate{Value: 0.2},
		}
		warm := *v.Weighted
		warm.Context, warm.Baseline, warm.Candidate = policy.Warm, micros*0.6, micros/2
		v.WeightedWarm = &warm
		s := w.open(change.ID{Kind: change.Push, Repo: 1, SHA: fmt.Sprintf("%08x%032x", 0xabc0000+i, i)}, "org/kernels", "", "sdpa")
		last = w.finish(s, e, v)
	}
	w.settle()
	site := w.site(pages.Everybody{}).URL
	if _, body := w.get(site + "/runs/" + last); !strings.Contains(body, ">"+gates.WarmStepLabel+"<") || !strings.Contains(body, "Warm: 3 × mission (100.0\u00a0% of the time). From a trace, sha256:0. A launch in a program") {
		t.Errorf("the page of a run does not have both sums:\n%s", body)
	}
	var p struct{ History []pages.History }
	_, body := w.get(site + "/api/v1/kernels/org/kernels/kernels/sdpa")
	w.no(json.Unmarshal([]byte(body), &p))
	if h := p.History[1]; h.Shape != gates.WarmStepLabel || h.Points[1].P50 != 25 {
		t.Errorf("the second history is %+v", h)
	}
	if h := p.History[0]; h.Shape != gates.StepLabel || len(h.Points) != 2 || h.Points[1].P50 != 50 || h.Factor < 1.43 || h.Factor > 1.45 || h.Next == nil || *h.Next > 48.6 {
		t.Errorf("the first history is %+v", h)
	}
	if _, body := w.get(site + "/kernels/org/kernels/kernels/sdpa"); !strings.Contains(body, "µs per step") {
		t.Errorf("the page does not show it:\n%s", body)
	}
}
