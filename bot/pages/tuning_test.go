package pages_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/pages/browser"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/runners/work/tune"
)

// recordedSearch is the log of a search on an H200.
func recordedSearch(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../runners/backend/cuda/testdata/h200/tune/matmul-search.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// searchFolder creates a folder with a search that has ended, one that still runs, and a broken log.
func searchFolder(t *testing.T) (dir, growing string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "results")
	growing = filepath.Join(dir, "tune-growing", tune.LogFile)
	lines := strings.SplitAfter(recordedSearch(t), "\n")
	for file, text := range map[string]string{
		filepath.Join(dir, "tune-ended", tune.LogFile): strings.Join(lines, ""),
		growing: strings.Join(lines[:len(lines)/2], ""),
		filepath.Join(dir, "tune-broken", tune.LogFile): "no log\n",
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, growing
}

// TestSearchPages checks what the pages and the API say about searches.
func TestSearchPages(t *testing.T) {
	dir, _ := searchFolder(t)
	f, err := pages.OpenFolder(dir, nil, nil) // it has no evidence
	if err != nil {
		t.Fatal(err)
	}
	get := siteOf(t, f)
	for path, want := range map[string][]string{
		"/searches":              {"tune-ended", "tune-growing", "not ended", "ended without a winner", "tune-broken", "this is no log of kernelgate tune"},
		"/searches/tune-ended":   {"<h2>Fastest in the race</h2>", "default,TILE_M=64,TILE_N=64", "Nothing is proven better than the incumbent", "<h2>Verdicts of the gate</h2>", "DEFER", "<h2>Failed</h2>", "<svg", "What each toggle was worth"},
		"/searches/tune-growing": {"Not ended.", `data-live="/searches/tune-growing/live"`, "in the race"},
	} {
		status, text := get(path)
		for _, words := range want {
			if status != http.StatusOK || !strings.Contains(text, words) {
				t.Errorf("%s (%d) lacks %q:\n%s", path, status, words, text)
			}
		}
	}
	// A search that runs is among what goes on now, and every page leads to the searches.
	if _, home := get("/"); !strings.Contains(home, `<a href="/searches/tune-growing">Search: matmul</a>`) || strings.Contains(home, "tune-ended") || !strings.Contains(home, `<a href="/searches">Searches</a>`) {
		t.Errorf("the first page says %s", home)
	}
	for _, path := range []string{"/searches/none", "/searches/none/live", "/api/v1/searches/none"} {
		if status, _ := get(path); status != http.StatusNotFound {
			t.Errorf("%s answers %d", path, status)
		}
	}
	_, text := get("/api/v1/searches/tune-ended")
	var page pages.TuningPage
	if err := json.Unmarshal([]byte(text), &page); err != nil || !page.Ended || len(page.Elite) == 0 || page.Kernel != "matmul" || len(page.Raced) < 5 {
		t.Errorf("%v: %s", err, text)
	}
}

// TestSearchesDescribed checks that the API's description names every field of its answers.
func TestSearchesDescribed(t *testing.T) {
	dir, _ := searchFolder(t)
	f, err := pages.OpenFolder(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	get := siteOf(t, f)
	var api struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	if _, text := get("/api/v1/openapi.json"); json.Unmarshal([]byte(text), &api) != nil {
		t.Fatal(text)
	}
	for path, schema := range map[string]string{"/api/v1/searches": "pages.TuningsPage", "/api/v1/searches/tune-growing": "pages.TuningPage"} {
		var model map[string]any
		if _, text := get(path); json.Unmarshal([]byte(text), &model) != nil || len(model) == 0 {
			t.Fatal(text)
		}
		for name := range model {
			if _, ok := api.Components.Schemas[schema].Properties[name]; !ok {
				t.Errorf("%s: the description of %s has no %s", path, schema, name)
			}
		}
	}
}

// nobody is a viewer who may read no repository.
type nobody struct{ pages.Everybody }

func (nobody) Viewer(*http.Request) pages.Viewer {
	return pages.Viewer{MayRead: func(context.Context, ledger.RepoName) bool { return false }}
}

// TestSearchesNeedAccess checks that a viewer sees no search of a repository that they may not read.
func TestSearchesNeedAccess(t *testing.T) {
	dir, _ := searchFolder(t)
	f, err := pages.OpenFolder(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := (&pages.Server{Source: f, Access: nobody{}}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/searches": http.StatusOK, "/searches/tune-ended": http.StatusNotFound, "/searches/tune-ended/live": http.StatusNotFound, "/api/v1/searches/tune-ended": http.StatusNotFound} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want || strings.Contains(w.Body.String(), "matmul") || strings.Contains(w.Body.String(), "tune-growing") {
			t.Errorf("%s answers %d: %s", path, w.Code, w.Body.String())
		}
	}
}

// TestSearchPageGrows inspects the pages in a browser. It keeps one page open while the log of its search
// grows to the end.
func TestSearchPageGrows(t *testing.T) {
	dir, growing := searchFolder(t)
	f, err := pages.OpenFolder(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	h, err := (&pages.Server{Source: f, Access: pages.Everybody{}, Done: done}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(h)
	t.Cleanup(func() { close(done); site.Close() })
	b := browser.Open(t)
	for _, path := range []string{"/searches", "/searches/tune-ended", "/searches/tune-growing"} {
		if says := b.Everything(site.URL + path); len(says) < 100 {
			t.Errorf("%s says only %q", path, says)
		}
	}
	tab := b.Tab(browser.Look{Width: 1000, Height: 1400})
	tab.Go(site.URL + "/searches/tune-growing")
	before := tab.Text("main")
	lines := strings.SplitAfter(recordedSearch(t), "\n")
	write := func(n int) {
		t.Helper()
		if err := os.WriteFile(growing, []byte(strings.Join(lines[:n], "")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(3 * len(lines) / 4)
	tab.Until(`document.querySelector("main").innerText.includes("The gate") || document.querySelector("main").innerText !== ` + quoted(before))
	if says := tab.Text("main"); !strings.Contains(says, "Not ended.") || !strings.Contains(says, "Fastest in the race") {
		t.Errorf("the page says %q", says)
	}
	write(len(lines))
	tab.Until(`document.querySelector("main").innerText.includes("Nothing is proven better than the incumbent")`)
	if says := tab.Text("main"); strings.Contains(says, "Not ended.") {
		t.Errorf("the page says %q", says)
	}
	for _, c := range tab.Complaints() {
		t.Error(c)
	}
	if file := os.Getenv("KERNELGATE_PICTURE"); file != "" {
		if err := os.WriteFile(file, tab.Picture("main"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// quoted is a text for JavaScript.
func quoted(text string) string {
	out, _ := json.Marshal(text)
	return string(out)
}
