package pages_test

import (
	"encoding/json"
	"html"
	"math"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies"
)

var (
	rowPattern = regexp.MustCompile(`(?s)<tr><th scope="row">(?:<strong>)?([^ <]+)(?:</strong>)? .*?<td class="figure" data-label="baseline">([^<]*)<td class="figure" data-label="candidate">([^<]*)<td class="figure"><strong>([^<]*)</strong><td class="figure">\[([^,<]*), ([^\]<]*)\]`)
	tagPattern = regexp.MustCompile(`(?s)<section><h2>Performance</h2>.*?</table>`)
)

// shownFigure reads a figure of a page back, with half of its last digit.
func shownFigure(t *testing.T, text string) (value, half float64) {
	t.Helper()
	number := strings.NewReplacer("−", "-", "+", "", "\u00a0µs", "", "\u00a0%", "", "×", "").Replace(text)
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		t.Fatalf("%q is no figure", text)
	}
	_, decimals, _ := strings.Cut(number, ".")
	half = 0.5000001 * math.Pow(10, -float64(len(decimals)))
	switch {
	case strings.HasSuffix(text, "%"):
		return value / 100, half / 100
	case strings.HasSuffix(text, "×"):
		return value - 1, half
	}
	return value, half
}

// The five figures of every shape, both times, the speedup and its bounds, are the verdict's on the run's page and in the API, for
// all evidence that is committed.
func TestFiguresOfEveryEvidence(t *testing.T) {
	text, err := policies.Shipped("h200")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := policies.Parse("h200.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "evidence")
	files, err := filepath.Glob(shippedEvidence + "*.json")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		copyFile(t, file, filepath.Join(dir, filepath.Base(file)))
	}
	f, err := pages.OpenFolder(dir, func(e *gates.Evidence) *gates.Verdict { return gates.Judge(policy, "h200.yaml", e) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	get, compared := siteOf(t, f), 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		var p struct{ Verdict *gates.Verdict }
		if _, body := get("/api/v1/runs/" + name); json.Unmarshal([]byte(body), &p) != nil || p.Verdict == nil {
			t.Fatalf("%s: %.200s", name, body)
		}
		status, page := get("/runs/" + name)
		if status != http.StatusOK {
			t.Fatalf("%s answers %d", name, status)
		}
		rows := map[string][]string{}
		for _, m := range rowPattern.FindAllStringSubmatch(html.UnescapeString(tagPattern.FindString(page)), -1) {
			rows[m[1]] = m[2:]
		}
		for _, c := range p.Verdict.Comparisons {
			if c.Baseline == nil || c.Candidate == nil || c.Speedup.Lower == nil {
				continue
			}
			row := rows[c.Shape]
			if row == nil {
				t.Errorf("%s: the page has no row of %s", name, c.Shape)
				continue
			}
			for i, want := range []float64{c.Baseline.P50, c.Candidate.P50, c.Speedup.Value, *c.Speedup.Lower, *c.Speedup.Upper} {
				if got, half := shownFigure(t, row[i]); math.Abs(got-want) > half {
					t.Errorf("%s on %s: the page says %s, the verdict %v", name, c.Shape, row[i], want)
				}
				compared++
			}
		}
	}
	if compared < 5*30 {
		t.Errorf("only %d figures were compared", compared)
	}
}
