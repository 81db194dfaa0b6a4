package pages_test

import (
	"encoding/json"
	"encoding/xml"
	"html"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

var (
	linkPattern   = regexp.MustCompile(`(?:href|src|action|data-live)="([^"]*)"`)
	scriptPattern = regexp.MustCompile(`<script[^>]*>`)
	regionPattern = regexp.MustCompile(`role="region" aria-label="([^"]*)"`)
	inlinePattern = regexp.MustCompile(`(?i)<[a-z](?:[^>"]|"[^"]*")*\s(?:style|on[a-z]+)=|<style|="javascript:`)
)

// crawl loads every page that is linked from another.
func crawl(w *world, root string, header ...string) map[string]string {
	w.Helper()
	seen, todo := map[string]string{}, []string{"/"}
	for len(todo) > 0 {
		path := todo[0]
		todo = todo[1:]
		if _, ok := seen[path]; ok {
			continue
		}
		if strings.HasSuffix(path, "/live") { // a stream; see TestLive
			continue
		}
		answer, body := w.get(root+path, header...)
		seen[path] = body
		if answer.StatusCode != http.StatusOK {
			w.Errorf("%s answers %s", path, answer.Status)
			continue
		}
		if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
			continue
		}
		if policy := answer.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			w.Errorf("%s: the policy is %q", path, policy)
		}
		for _, m := range linkPattern.FindAllStringSubmatch(body, -1) {
			target, err := url.Parse(html.UnescapeString(m[1]))
			w.no(err)
			if strings.HasPrefix(target.String(), "https://github.example/") {
				continue // see TestLinksToGitHub
			}
			if target.Host != "" || target.Scheme != "" {
				w.Errorf("%s leads to %s, which is elsewhere", path, m[1])
				continue
			}
			if target.Path != "" && target.Path != "/logout" {
				target.Fragment = ""
				todo = append(todo, target.String())
			}
		}
		if scripts := scriptPattern.FindAllString(body, -1); len(scripts) != 1 || !strings.Contains(scripts[0], `src="/assets/`) {
			w.Errorf("%s has the scripts %q", path, scripts)
		}
		labels := map[string]bool{}
		for _, m := range regionPattern.FindAllStringSubmatch(body, -1) {
			if labels[m[1]] {
				w.Errorf("%s has two tables with the label %q", path, m[1])
			}
			labels[m[1]] = true
		}
		if found := inlinePattern.FindString(body); found != "" {
			w.Errorf("%s has %q, which the policy forbids", path, found)
		}
	}
	return seen
}

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	seen := crawl(w, w.site(pages.Everybody{}).URL)
	for _, want := range []string{
		"/runs/" + jobs["first"], "/runs/" + jobs["broken"], "/runs/" + jobs["running"], "/runs/" + jobs["queued"], "/runs/" + jobs["stage1"],
		"/changes/pr-1-7", "/kernels/org/kernels/kernels/sdpa", "/compare", "/feed.atom", "/policy?change=pr-1-7&kernel=sdpa", "/runs/" + jobs["first"] + "/evidence.json",
	} {
		if _, ok := seen[want]; !ok {
			t.Errorf("nothing leads to %s", want)
		}
	}
	for path, wants := range map[string][]string{
		"/": {"FP8 everywhere", "gpu1", "Number 1 in the queue</strong>, starts in about 40 s, takes about 4 min then", "3 of 20 rounds", "measuring mission",
			"mission +16.0\u00a0% [+13.3\u00a0%, +18.7\u00a0%] so far", "about 30 s left", `class="chart funnel"`, `class="chart spark"`, `data-live="/live"`,
			"NVIDIA Hopper, driver 580.1 · SM 1755 of 1980 MHz, memory 3201 MHz · 61 °C · 312 W", "slowed down", "Slowed down: power cap", "memory errors that could not be repaired: 2", "Xid",
			"✓ no difference</span> +0.04 % <span class=\"note\">[−0.08 %, +0.16 %]</span>, 7.03\u00a0µs", "usually 7.02\u00a0µs", "two copies of one kernel differ by 4 %", "in quarantine", "not connected"},
		"/runs/" + jobs["first"]: {"PASS", "+21.2", "NVIDIA H200", "nvcc 13.0.88", `class="chart strip"`, `class="chart ecdf"`, `class="chart forest"`, `class="chart order"`,
			`class="chart margin"`, `class="chart fill"`, `class="chart roofline"`, "Correctness by kind of input", "Speedup by kind of input", "Geometric mean", "blocks per SM, limited by", "kernelgate check --baseline-variant", "racecheck", "/rebench", "it is late"},
		"/runs/" + jobs["broken"]:           {"DEFER", "correctness", `<td class="bad" title="max error 1.34, mean 0.0122; seed 0: norm error 43.7% (asked <= 2%)"`, "✗ 45.6\u00a0% (3 of 3)"},
		"/runs/" + jobs["running"]:          {"data-live=", "performance", "about 30 s left", `class="chart funnel"`, "12:00:00  build: compiling the baseline\n12:00:01  correctness: comparing", "12:00:05  performance: measuring, round 4 of 20"},
		"/runs/" + jobs["queued"]:           {"Number 1 in the queue", "starts in about 40 s"},
		"/changes/pr-1-7":                   {"FP8 everywhere", "let 0000", "it is late", "rule <a"},
		"/kernels/org/kernels/kernels/sdpa": {`class="chart line"`, `class="range first"`, "The default branch is 6.70× as fast on mission as before its first measured commit", "What did not work"},
		"/policy?change=pr-1-7&kernel=sdpa": {"Rule <strong>default</strong>", "refactoring does not: it is for labels refactoring", "<th scope=\"row\">correctness<td class=\"text\">all shapes", "defers"},
	} {
		for _, want := range wants {
			if !strings.Contains(html.UnescapeString(seen[path]), want) {
				t.Errorf("%s does not say %q", path, want)
			}
		}
	}
}

func TestPolicyAsked(t *testing.T) {
	w := newWorld(t)
	story(w)
	_, body := w.get(w.site(pages.Everybody{}).URL + "/policy?change=pr-1-7&ask=1&labels=refactoring&branch=main")
	if !strings.Contains(body, "Rule <strong>refactoring</strong>") || !strings.Contains(body, "and changes nothing") {
		t.Error(body)
	}
}

// hostile is a text that would execute if it were not escaped: in an element, in an attribute or in
// a script.
const hostile = `x"'><img src=x onerror=alert(1)></script><script>alert(2)</script>` + "`]]>&\u202e\x1b[31m"

// poison puts the text into every string of a value.
func poison(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			poison(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				poison(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i))
		}
	case reflect.Map:
		if v.Type().Key().Kind() == reflect.String && v.Type().Elem().Kind() == reflect.String && !v.IsNil() {
			v.SetMapIndex(reflect.ValueOf(hostile), reflect.ValueOf(hostile))
		}
	case reflect.String:
		v.SetString(v.String() + hostile)
	}
}

// TestHostileTextStaysText checks that texts from names, logs, compilers and people stay text on
// every page.
func TestHostileTextStaysText(t *testing.T) {
	w := newWorld(t)
	e, v := recorded(t, "stage6_fp8")
	broken, _ := recorded(t, "broken")
	e.Correctness.Cases = append(e.Correctness.Cases, broken.Correctness.Cases...)
	v.Rivals = []gates.Rival{{Name: "other", Failure: "none"}}
	v.Builds[0].Diagnostics = []gates.Diagnostic{{File: "a.cu", Line: 3, Severity: "error", Message: "bad"}}
	v.Builds[0].Error = "it broke"
	v.Sanitizers[0].Findings = []gates.Finding{{Text: "race", File: "a.cu", OtherFile: "b.cu"}}
	v.MachineCode = &gates.MachineCode{Tool: "nvdisasm", Skipped: "none", Changes: []gates.CodeChange{{Kernel: "k", Shapes: []string{"s"}, Baseline: &gates.Instructions{Tensor: 41}, Candidate: &gates.Instructions{Tensor: 42}, Diff: "-A"}}}
	v.ToPass, v.Notes = []string{"do"}, []string{"note"}
	outcome := v.Outcome
	poison(reflect.ValueOf(v).Elem())
	v.Outcome = outcome
	for i := range e.Shapes { // the names of shapes join evidence and verdict
		e.Shapes[i].Dims += hostile
	}
	for i := range v.Comparisons {
		v.Comparisons[i].Shape = strings.TrimSuffix(v.Comparisons[i].Shape, hostile)
	}
	e.Provenance.Host, e.Device.Name = hostile, hostile
	for i := range e.Correctness.Cases {
		e.Correctness.Cases[i].Dims += hostile
	}
	s := w.open(change.ID{Kind: change.Pull, Repo: 1, Number: 7}, "org/kernels", hostile, "sdpa ("+hostile+")")
	job := w.finish(s, e, v)
	w.write(s, change.Asked{ID: "comment-1", By: hostile, Head: s.Facts.Head})
	w.write(s, change.Answered{ID: "comment-1", OK: true, Answer: change.Answer{Kind: change.AnswerCannotServe, Quote: hostile}, Effect: change.Effect{Override: &change.Override{For: s.PostedScope(), By: hostile, Reason: hostile, At: hostile}}})
	running := w.open(change.ID{Kind: change.Pull, Repo: 1, Number: 8}, "org/kernels", hostile, "sdpa ("+hostile+")")
	w.write(running, change.Started{Job: running.Runs[0].Job, Token: 1, Runner: hostile})
	w.busy(running.Runs[0].Job, &runners.Event{Gate: hostile, Text: hostile, Detail: hostile, Done: 1, Total: 2, Unit: hostile})
	w.settle()
	site := w.site(pages.Everybody{}).URL
	seen := crawl(w, site)
	if len(seen) < 10 {
		t.Errorf("only %d pages were seen", len(seen))
	}
	for _, path := range []string{"/compare?a=" + job + "&b=" + job, "/policy?change=pr-1-7&ask=1&labels=" + url.QueryEscape(hostile) + "&title=" + url.QueryEscape(hostile)} {
		_, seen[path] = w.get(site + path)
	}
	_, seen["/runs/none"] = w.get(site + "/runs/" + url.PathEscape(hostile))
	if _, body := w.get(site + "/runs/" + job); !strings.Contains(body, "Machine code</h2>") || !strings.Contains(body, `baseline<td class="figure">41`) || !strings.Contains(body, `<tr class="gone"><td>A`) {
		t.Error("the run's page does not show its machine code")
	}
	showed := 0
	for path, body := range seen {
		if strings.HasSuffix(path, ".json") || strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/assets/") {
			continue // of a different type, which browsers do not render
		}
		if strings.Contains(body, "<img") || strings.Contains(body, "<script>") || strings.Contains(body, `x"'>`) {
			at := strings.Index(body, "<img")
			t.Errorf("%s has live markup: %.300s", path, body[max(0, at-150):])
		}
		if strings.Contains(body, "&lt;img") {
			showed++
		}
	}
	if showed < 5 {
		t.Errorf("only %d pages show the text at all", showed)
	}
}

func TestJSON(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	site := w.site(pages.Everybody{}).URL
	var api struct {
		Paths      map[string]any
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	_, text := w.get(site + "/api/v1/openapi.json")
	w.no(json.Unmarshal([]byte(text), &api))
	for path, want := range map[string]struct{ schema, field string }{
		"": {"pages.HomePage", "kernels"}, "/runs/" + jobs["first"]: {"pages.RunPage", "verdict"}, "/changes/pr-1-7": {"pages.ChangePage", "commits"},
		"/kernels/org/kernels/kernels/sdpa": {"pages.KernelPage", "history"}, "/compare?a=" + jobs["stage1"] + "&b=" + jobs["stage2"]: {"pages.ComparePage", "rows"},
		"/policy?change=pr-1-7": {"pages.PolicyPage", "kernels"}, "/kernels/org/kernels": {"pages.RepositoryPage", "runs"}, "/search?q=sdpa": {"pages.SearchPage", "kernels"},
	} {
		answer, text := w.get(site + "/api/v1" + path)
		var model map[string]any
		if err := json.Unmarshal([]byte(text), &model); err != nil || answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v, %s", path, err, answer.Status)
		}
		if model[want.field] == nil {
			t.Errorf("%s has no %s: %.200s", path, want.field, text)
		}
		for name := range model { // the description must name every field
			if _, ok := api.Components.Schemas[want.schema].Properties[name]; !ok {
				t.Errorf("%s: the description of %s has no %s", path, want.schema, name)
			}
		}
	}
	if answer, text := w.get(site + "/api/v1/runs/none"); answer.StatusCode != http.StatusNotFound || !strings.Contains(text, `"error"`) {
		t.Errorf("%s %s", answer.Status, text)
	}
}

func TestBadgeAndFeed(t *testing.T) {
	w := newWorld(t)
	story(w)
	site := w.site(pages.Everybody{}).URL
	answer, text := w.get(site + "/badge/org/kernels/kernels/sdpa.svg")
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "image/svg+xml" || !strings.Contains(text, "sdpa: PASS 8.49\u00a0µs") || xml.Unmarshal([]byte(text), new(any)) != nil {
		t.Errorf("%s %s", answer.Status, text)
	}
	// A proposed change turns no badge red, and none green either.
	w.finishAs(w.open(change.ID{Kind: change.Pull, Repo: 1, Number: 40}, "org/kernels", "New", "new"), recordOf(t, "stage1"))
	w.settle()
	if _, text := w.get(site + "/badge/org/kernels/kernels/new.svg"); !strings.Contains(text, "new: no verdict") {
		t.Errorf("the badge of a kernel that is not on main: %s", text)
	}
	for _, path := range []string{"/badge/org/kernels/kernels/sdpa", "/badge/org/other/kernels/sdpa.svg", "/badge/org/kernels/none.svg"} {
		if answer, _ := w.get(site + path); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %s", path, answer.Status)
		}
	}
	var feed struct {
		Entries []struct {
			Title string `xml:"title"`
			Link  struct {
				Href string `xml:"href,attr"`
			} `xml:"link"`
		} `xml:"entry"`
	}
	_, text = w.get(site + "/feed.atom")
	w.no(xml.Unmarshal([]byte(text), &feed))
	var titles []string
	for _, e := range feed.Entries {
		titles = append(titles, e.Title)
		if !strings.HasPrefix(e.Link.Href, "https://gate.example/runs/") {
			t.Errorf("the feed leads to %s", e.Link.Href)
		}
	}
	if !slices.Contains(titles, "DEFER sdpa of org/kernels: FP8 everywhere") || len(titles) != 6 {
		t.Errorf("%q", titles)
	}
}

// TestBlobsThatAreGone checks that missing evidence, or evidence from a later version, breaks no
// page.
func TestBlobsThatAreGone(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	delete(w.blobs, "evidence-"+jobs["first"])
	w.blobs["verdict-"+jobs["broken"]] = []byte("{")
	site := w.site(pages.Everybody{}).URL
	for job, want := range map[string]string{jobs["first"]: "evidence is no longer stored", jobs["broken"]: "full verdict is no longer stored"} {
		answer, body := w.get(site + "/runs/" + job)
		if answer.StatusCode != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %s", answer.Status, body)
		}
	}
	for _, path := range []string{"/compare?a=" + jobs["first"] + "&b=" + jobs["broken"], "/kernels/org/kernels/kernels/sdpa"} {
		if answer, _ := w.get(site + path); answer.StatusCode != http.StatusOK {
			t.Errorf("%s answers %s", path, answer.Status)
		}
	}
}

// TestWhatStands checks that the time on the home page is the newest of the line next to it, even
// if the last run failed and has no time. Each change appears once among the negative results.
func TestWhatStands(t *testing.T) {
	w := newWorld(t)
	story(w)
	s := w.open(change.ID{Kind: change.Pull, Repo: 1, Number: 30}, "org/kernels", "Wrong twice", "sdpa")
	e, v := recorded(t, "broken")
	w.finish(s, e, v)
	w.ask(s, "/rebench", change.Effect{Rebench: []change.Rerun{{Folder: "kernels/sdpa", Bundle: "b2"}}})
	last := w.finish(s, e, v)
	w.settle()
	site := w.site(pages.Everybody{}).URL
	var home pages.HomePage
	_, text := w.get(site + "/api/v1")
	w.no(json.Unmarshal([]byte(text), &home))
	row := home.Kernels[0]
	if row.Main == nil || row.Main.Outcome != gates.Pass || row.Main.Head != strings.Repeat("3", 40) || len(row.Open) != 2 || row.Open[0].Change != "pr-1-30" || row.Open[1].Change != "pr-1-7" {
		t.Fatalf("main: %+v, open: %+v", row.Main, row.Open)
	}
	if row.Last.Job != last || len(row.Last.P50) != 0 || row.P50() != row.Values[len(row.Values)-1] || row.P50() <= 0 {
		t.Fatalf("%+v", row)
	}
	_, body := w.get(site + "/")
	if want := regexp.MustCompile(`<td class="figure">[0-9.]+\x{a0}[µm]s <span class="note">` + row.Shape); !want.MatchString(body) {
		t.Errorf("no time of %s in\n%s", row.Shape, body)
	}
	var kernel pages.KernelPage
	_, text = w.get(site + "/api/v1/kernels/org/kernels/kernels/sdpa")
	w.no(json.Unmarshal([]byte(text), &kernel))
	var lost []string
	for _, r := range kernel.Lost {
		lost = append(lost, r.Change)
	}
	if want := []string{"pr-1-30", "pr-1-7"}; !slices.Equal(lost, want) || kernel.Lost[0].Job != last {
		t.Errorf("what did not work: %q, not %q", lost, want)
	}
}

// TestBestMergedState checks that the kernel's page and the API name the best merged state of each
// shape, and the default branch's speed relative to it.
func TestBestMergedState(t *testing.T) {
	w := newWorld(t)
	for i, speed := range []float64{1.25, 0.8} {
		s := w.open(change.ID{Kind: change.Push, Repo: 1, SHA: strings.Repeat(strconv.Itoa(i+1), 40)}, "org/kernels", "", "sdpa")
		r := recordOf(t, "stage1")
		r.result.Against, r.result.Arch = strings.Repeat(strconv.Itoa(i), 40), "sm_90"
		r.result.Ratios = map[string]change.Ratio{"mission": {Value: speed, Dims: "S=512"}}
		w.finishAs(s, r)
	}
	w.settle()
	site := w.site(pages.Everybody{}).URL
	_, body := w.get(site + "/kernels/org/kernels/kernels/sdpa")
	if want := "11111</code></a>; the default branch is 20.0\u00a0%\u00a0slower"; !strings.Contains(body, want) {
		t.Errorf("the page does not say %q", want)
	}
	var kernel pages.KernelPage
	_, text := w.get(site + "/api/v1/kernels/org/kernels/kernels/sdpa")
	w.no(json.Unmarshal([]byte(text), &kernel))
	if len(kernel.Best) != 1 || kernel.Best[0].Commit != strings.Repeat("1", 40) || math.Abs(kernel.Best[0].Speedup+0.2) > 1e-9 || kernel.Best[0].At.IsZero() {
		t.Errorf("the API says %+v", kernel.Best)
	}
}

// TestRivals checks that the kernel's page shows competing implementations next to ours, from the
// newest run that timed them, and names the variant of each commit.
func TestRivals(t *testing.T) {
	w := newWorld(t)
	for i, name := range []string{"stage1", "stage2"} {
		e, v := recorded(t, name)
		if i == 0 {
			ours := v.Comparisons[0]
			twice := *ours.Candidate
			twice.P50 *= 2
			v.Rivals = []gates.Rival{{Name: "theirs", Shape: ours.Shape, Stats: twice}, {Name: "broken <b>", Failure: "no <i>such</i> library"}}
		}
		w.finish(w.open(change.ID{Kind: change.Push, Repo: 1, SHA: strings.Repeat(name[5:], 40)}, "org/kernels", "", "sdpa"), e, v)
	}
	w.settle()
	site := w.site(pages.Everybody{}).URL
	_, body := w.get(site + "/kernels/org/kernels/kernels/sdpa")
	for _, want := range []string{"theirs", "(2.00×)", "broken &lt;b&gt;", "no &lt;i&gt;such", "variant stage2", `<a href="/runs/push-1-1111`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
