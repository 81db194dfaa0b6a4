package pages_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/pages"
)

// TestSearch checks that a search finds kernels, changes and commits by the names that people use.
func TestSearch(t *testing.T) {
	w := newWorld(t)
	story(w)
	w.open(change.ID{Kind: change.Pull, Repo: 1, Number: 70}, "org/kernels", "100 % faster_now", "sdpa")
	w.open(change.ID{Kind: change.Pull, Repo: 2, Number: 7}, "org/other", "Of another", "gemm")
	w.settle()
	site := w.site(pages.Everybody{}).URL
	for query, want := range map[string]string{
		"SDP": "kernels/sdpa", "org/other": "kernels/gemm", "#7": "pr-1-7 pr-2-7", "7": "pr-1-7 pr-2-7", "fp8 EVERY": "pr-1-7", "100 %": "pr-1-70", "r_n": "pr-1-70", "%": "pr-1-70",
		"1111": "1111111", "111": "", "gemm": "kernels/gemm", "": "", "no such thing": "",
	} {
		var p pages.SearchPage
		_, body := w.get(site + "/api/v1/search?q=" + strings.NewReplacer(" ", "+", "#", "%23", "%", "%25").Replace(query))
		w.no(json.Unmarshal([]byte(body), &p))
		var found []string
		for _, k := range p.Kernels {
			found = append(found, k.Folder)
		}
		for _, c := range p.Changes {
			found = append(found, c.ID)
		}
		for _, c := range p.Commits {
			found = append(found, c.Head[:7])
		}
		slices.Sort(found)
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%q finds %q, not %q", query, got, want)
		}
	}
	_, body := w.get(site + "/search?q=everywhere")
	if !strings.Contains(body, `<a href="/changes/pr-1-7">#7 FP8 everywhere</a>`) || !strings.Contains(body, `name="q" value="everywhere"`) {
		t.Error(body)
	}
}

// TestPaging checks that every run can be reached page by page, and that a page says if it does not
// show all.
func TestPaging(t *testing.T) {
	w := newWorld(t)
	const runs = 117
	for i := range runs {
		s := w.open(change.ID{Kind: change.Pull, Repo: 1, Number: i + 1}, "org/kernels", fmt.Sprint("Change ", i+1), "sdpa")
		w.write(s, change.Finished{Job: s.Runs[0].Job, Token: 1, Runner: "gpu1", Result: change.Result{Outcome: "PASS", Device: "NVIDIA H200"}})
	}
	w.settle()
	site := w.site(pages.Everybody{}).URL
	for _, path := range []string{"/kernels/org/kernels", "/kernels/org/kernels/kernels/sdpa"} {
		seen, next := map[string]bool{}, path
		for n := 0; next != ""; n++ {
			var p struct {
				Runs          []struct{ Change string }
				Older, Newest string
			}
			_, body := w.get(site + "/api/v1" + next)
			w.no(json.Unmarshal([]byte(body), &p))
			for _, r := range p.Runs {
				seen[r.Change] = true
			}
			_, page := w.get(site + next)
			if notice := strings.Contains(page, "These are not all."); notice != (p.Older != "") || (p.Newest != "") != (n > 0) {
				t.Errorf("%s: a notice is there: %v; older %q, newest %q", next, notice, p.Older, p.Newest)
			}
			if next = p.Older; n > 3 {
				t.Fatal("there is no end")
			}
			next, _, _ = strings.Cut(strings.TrimPrefix(next, "/api/v1"), "#")
		}
		if len(seen) != runs {
			t.Errorf("%s leads to %d of %d runs", path, len(seen), runs)
		}
	}
}

// TestLinksToGitHub checks that runs, changes, commits and files link to GitHub, and breadcrumbs to
// the repository.
func TestLinksToGitHub(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	site := w.site(pages.Everybody{}).URL
	head := func(job string) string {
		r, err := w.Run(t.Context(), job)
		w.no(err)
		return r.Head
	}
	const hub = "https://github.example/org/kernels"
	for path, wants := range map[string][]string{
		"/runs/" + jobs["first"]:                     {hub + "/pull/7", hub + "/commit/" + head(jobs["first"]), hub + "/tree/" + head(jobs["first"]) + "/kernels/sdpa", hub + "/blob/" + head(jobs["first"]) + "/kernels/sdpa/stage6_fp8.cu"},
		"/changes/pr-1-7":                            {hub + "/pull/7", hub + "/commit/" + head(jobs["first"])},
		"/changes/push-1-" + strings.Repeat("1", 40): {hub + "/commit/" + strings.Repeat("1", 40)},
		"/kernels/org/kernels/kernels/sdpa":          {hub + "/tree/HEAD/kernels/sdpa"},
		"/kernels/org/kernels":                       {hub},
	} {
		answer, body := w.get(site + path)
		body = html.UnescapeString(body)
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s answers %s", path, answer.Status)
		}
		for _, want := range wants {
			if !strings.Contains(body, `href="`+want+`"`) && !strings.Contains(body, `href="`+want+`#L`) {
				t.Errorf("%s does not lead to %s", path, want)
			}
		}
		if crumb := `aria-label="Breadcrumbs"><a href="/">Home</a> / `; !strings.Contains(body, crumb) || path != "/kernels/org/kernels" && !strings.Contains(body, crumb+`<a href="/kernels/org/kernels">`) {
			t.Errorf("%s has no breadcrumbs", path)
		}
	}
}
