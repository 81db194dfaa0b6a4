package pages_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/pages/browser"
	"github.com/kernelgate/kernelgate/gates"
)

// manyShapes serves the recorded run with 33 shapes and five kinds of input. With edit, its evidence is changed first.
func manyShapes(t *testing.T, edit func(*gates.Evidence)) *pages.Folder {
	t.Helper()
	text, err := os.ReadFile("../../kernels/sdpa_fp8/choose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules := parsed(t, "choose.yaml", string(text))
	dir := filepath.Join(t.TempDir(), "results")
	copyFile(t, shippedEvidence+"all/choose.json", filepath.Join(dir, "choose.json"))
	f, err := pages.OpenFolder(dir, func(e *gates.Evidence) *gates.Verdict {
		if edit != nil {
			edit(e)
		}
		return gates.Judge(rules, "choose.yaml", e)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestManyShapes checks that a run with many shapes stays small, shows all of them at once, and can be filtered.
func TestManyShapes(t *testing.T) {
	get := siteOf(t, manyShapes(t, nil))
	element := regexp.MustCompile(`<[a-z]`)
	for _, path := range []string{"/runs/choose", "/runs/choose?shape=vit", "/runs/choose?shapes=causal"} {
		status, body := get(path)
		if n := len(element.FindAllString(body, -1)); status != http.StatusOK || len(body) >= 100_000 || n >= 3000 {
			t.Errorf("%s answers %d with %d bytes and %d elements", path, status, len(body), n)
		}
		if n := strings.Count(body, "<details"); n > 8 {
			t.Errorf("%s has %d folds", path, n)
		}
	}
	_, body := get("/runs/choose")
	for _, want := range []string{"33 of 33 shapes meet their goals. Geometric mean", "tightest on few:", "Samples of few ", `<a href="?shape=vit#samples"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	rows := func(body, label string) int {
		_, table, _ := strings.Cut(body, `aria-label="`+label+`"`)
		table, _, _ = strings.Cut(table, "</table>")
		return strings.Count(table, `<th scope="row"`)
	}
	for _, label := range []string{"Times", "Speedup by kind of input", "Correctness by kind of input"} {
		if n := rows(body, label); n != 33 {
			t.Errorf("%s has %d rows", label, n)
		}
	}
	_, some := get("/runs/choose?shapes=D%3D128+causal%3D1")
	for _, label := range []string{"Times", "Speedup by kind of input", "Correctness by kind of input"} {
		if n := rows(some, label); n != 6 {
			t.Errorf("%s has %d rows of D=128 causal=1", label, n)
		}
	}
	if !strings.Contains(some, "27 hidden") || !strings.Contains(some, `href="?shape=wide_causal&amp;shapes=D%3D128&#43;causal%3D1#samples"`) {
		t.Error("the filter is not kept")
	}
	if _, none := get("/runs/choose?shapes=nothing"); !strings.Contains(none, "No shape has these words.") {
		t.Error("nothing is found, and the page does not say so")
	}
	if _, vit := get("/runs/choose?shape=vit"); !strings.Contains(vit, "Samples of vit ") {
		t.Error("the chosen shape is not shown")
	}
}

// TestManyShapesInBrowser inspects the page in a browser.
func TestManyShapesInBrowser(t *testing.T) {
	site := serverOf(t, manyShapes(t, nil))
	browser.Open(t).Everything(site + "/runs/choose")
}

// TestTimesThatWereNotJudged checks that a run with a wrong output shows the times that were measured, without a judgement, and that a
// comparison of two failed runs says why it has no times.
func TestTimesThatWereNotJudged(t *testing.T) {
	f := manyShapes(t, func(e *gates.Evidence) {
		e.Correctness.Cases[3].Errors.Norm, e.Correctness.Cases[3].Errors.Bad = 0.9, 1000
	})
	get := siteOf(t, f)
	_, body := get("/runs/choose")
	for _, want := range []string{"DEFER", "not judged", "Geometric mean", "Samples of ", `aria-label="Times"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(body, "✓</span> pass</span><td class=\"figure\" data-label=\"A/A\"") {
		t.Error("the page judges a time")
	}
	_, body = get("/compare?a=choose&b=choose")
	for _, want := range []string{"A has no times: they were measured, and not judged", "B has no times:"} {
		if !strings.Contains(body, want) {
			t.Errorf("the comparison does not say %q", want)
		}
	}
}
