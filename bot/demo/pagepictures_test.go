package demo

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/pages/browser"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners/work/tune"
)

// TestPagePictures takes pictures of pages about committed evidence: many shapes, on a desktop and on a phone, a search, and the
// preview of a link. It is not a test, and it runs only if a folder is given.
func TestPagePictures(t *testing.T) {
	if *screenshots == "" {
		t.Skip("no folder given; see make screenshots")
	}
	dir := filepath.Join(t.TempDir(), "sdpa_fp8")
	for from, to := range map[string]string{
		"../../kernels/sdpa_fp8/evidence/all/choose.json":                   "choose.json",
		"../../runners/backend/cuda/testdata/h200/tune/matmul-search.jsonl": filepath.Join("search", tune.LogFile),
	} {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, to)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("../../kernels/sdpa_fp8/choose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.Parse("choose.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := pages.OpenFolder(dir, func(e *gates.Evidence) *gates.Verdict { return gates.Judge(rules, "choose.yaml", e) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := (&pages.Server{Source: folder, Access: pages.Everybody{}}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(handler)
	t.Cleanup(site.Close)
	write := func(name string, data []byte, err error) {
		t.Helper()
		if err == nil {
			data, err = smaller(data)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(*screenshots, name+".png"), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tab := browser.Open(t).Tab(browser.Look{})
	for name, c := range map[string]struct {
		path string
		look browser.Look
	}{
		"many":       {"/runs/choose", browser.Look{Width: 1280, Height: 1000}},
		"many-phone": {"/runs/choose?shapes=D%3D128+causal", browser.Look{Width: 375, Height: 1000, Scale: 1.5, Dark: true}},
		"search":     {"/searches/search", browser.Look{Width: 1000, Height: 900}},
	} {
		tab.Look(c.look)
		tab.Go(site.URL + c.path)
		write(name, tab.Picture(""), nil)
	}
	answer, err := http.Get(site.URL + "/runs/choose/preview.png")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	write("preview", data, err)
}
