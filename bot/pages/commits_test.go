package pages_test

import (
	"encoding/json"
	"html"
	"net/http"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/pages"
)

// TestCompareCommits checks that commits can be compared like runs: the last run of each counts.
func TestCompareCommits(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	site := w.site(pages.Everybody{}).URL
	var p struct{ A, B struct{ Job string } }
	_, body := w.get(site + "/api/v1/compare?a=1111111&b=2222222222222222222222222222222222222222&kernel=sdpa")
	w.no(json.Unmarshal([]byte(body), &p))
	if p.A.Job != jobs["stage1"] || p.B.Job != jobs["stage2"] {
		t.Errorf("compared are %+v", p)
	}
	for _, query := range []string{"a=1111111&b=9999999", "a=111111&b=2222222", "a=1111111&b=%25"} {
		if answer, _ := w.get(site + "/compare?" + query); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %s", query, answer.Status)
		}
	}
}

// TestCompareForm checks that the form accepts the names that people use for a run, and reports an
// unknown name next to its field.
func TestCompareForm(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	site := w.site(pages.Everybody{}).URL
	for query, want := range map[string][2]string{
		"a=main&b=%237":                        {jobs["stage3b"], jobs["broken"]},
		"a=main&b=" + jobs["first"]:            {jobs["stage3b"], jobs["first"]},
		"a=1111111&b=MAIN&kernel=sdpa":         {jobs["stage1"], jobs["stage3b"]},
		"a=2222222&b=%237&kernel=kernels/sdpa": {jobs["stage2"], jobs["broken"]},
	} {
		var p struct{ A, B struct{ Job string } }
		_, body := w.get(site + "/api/v1/compare?" + query)
		w.no(json.Unmarshal([]byte(body), &p))
		if got := [2]string{p.A.Job, p.B.Job}; got != want {
			t.Errorf("%s compares %q", query, got)
		}
	}
	answer, body := w.get(site + "/compare?a=zzz&b=" + jobs["first"])
	body = html.UnescapeString(body)
	if answer.StatusCode != http.StatusNotFound {
		t.Errorf("a run that is not there answers %s", answer.Status)
	}
	for _, want := range []string{"There is no run of “zzz”", `value="zzz" list="choices"`, `aria-invalid="true" aria-describedby="wrong-a"`, `<option value="main" label="the default branch: PASS`,
		`<option value="#7" label="FP8 everywhere · DEFER correctness`, `<option value="` + jobs["first"] + `" label="#7, attempt 1`, `<option value="111111111111" label="commit`} {
		if !strings.Contains(body, want) {
			t.Errorf("the form does not have %q", want)
		}
	}
	if _, body := w.get(site + "/compare?a=main&b=main&kernel=sdpa"); !strings.Contains(body, `<option value="kernels/sdpa" selected>`) {
		t.Error("the kernel that was asked for is not selected")
	}
	if strings.Contains(body, `aria-describedby="wrong-b"`) {
		t.Error("the field that is right is marked as well")
	}
}

// TestCompareAsksForTheKernel checks that the form asks for the kernel if two kernels have a run
// with that name.
func TestCompareAsksForTheKernel(t *testing.T) {
	w := newWorld(t)
	story(w)
	w.finishAs(w.open(change.ID{Kind: change.Push, Repo: 1, SHA: strings.Repeat("4", 40)}, "org/kernels", "", "other"), recordOf(t, "stage1"))
	w.settle()
	site := w.site(pages.Everybody{}).URL
	if _, body := w.get(site + "/compare?a=main&b=main"); !strings.Contains(body, "choose the kernel as well") || !strings.Contains(body, `<option value="kernels/other">`) {
		t.Error(body)
	}
	// The commit has only one kernel.
	if answer, _ := w.get(site + "/compare?a=main&b=1111111"); answer.StatusCode != http.StatusOK {
		t.Error(answer.Status)
	}
}
