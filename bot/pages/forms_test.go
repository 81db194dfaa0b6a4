package pages_test

import (
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

// A truth holds the numbers of a verdict's shapes.
type truth map[string]map[kindOfFigure]float64

func truthOf(v *gates.Verdict) truth {
	all := truth{}
	for _, c := range v.Judged() {
		figures := map[kindOfFigure]float64{}
		if c.Baseline != nil {
			figures[before] = c.Baseline.P50
		}
		if c.Candidate != nil {
			figures[after], figures[median] = c.Candidate.P50, c.Candidate.P50
		}
		if gates.IsStep(c.Shape) {
			delete(figures, median) // a sum of times is no median
		}
		if c.Baseline != nil && c.Candidate != nil {
			figures[after] = c.Baseline.P50 / (1 + c.Speedup.Value)
			figures[speedup] = c.Speedup.Value
			if c.Speedup.Lower != nil && c.Speedup.Upper != nil {
				figures[lower], figures[upper] = *c.Speedup.Lower, *c.Speedup.Upper
			}
		}
		if len(figures) > 0 {
			all[c.Shape] = figures
		}
	}
	return all
}

func (all truth) names() []string { return slices.Sorted(maps.Keys(all)) }

// A tally counts comparisons, so that the test notices a form whose numbers are no longer found.
type tally struct {
	mu     sync.Mutex
	byForm map[string]int
}

// hold compares every number that a form shows, and requires those that it must show for each
// shape.
func (count *tally) hold(t *testing.T, form string, p piece, all truth, list []mention, must ...kindOfFigure) {
	t.Helper()
	seen := map[mention]bool{}
	for _, s := range list {
		want, known := all[s.shape][s.kind]
		got, half, ok := s.read()
		switch {
		case !ok || !known:
			t.Errorf("%s: %s shows %q for %s on %s", p.name, form, s.text, s.kind, s.shape)
		case math.Abs(got-want) > half+1e-9*math.Abs(want):
			t.Errorf("%s: %s shows %q for %s on %s, the verdict has %v", p.name, form, s.text, s.kind, s.shape, want)
		}
		seen[mention{s.shape, s.kind, ""}] = true
	}
	holdSigns(t, form, p, list)
	count.mu.Lock()
	count.byForm[form] += len(list)
	count.mu.Unlock()
	for _, name := range all.names() {
		for _, kind := range must {
			if _, known := all[name][kind]; known && !seen[mention{name, kind, ""}] {
				t.Errorf("%s: %s does not show %s on %s", p.name, form, kind, name)
			}
		}
	}
}

// holdSigns checks that times and speedup of a shape do not contradict each other, and that every
// speedup has the one notation.
func holdSigns(t *testing.T, form string, p piece, list []mention) {
	t.Helper()
	shown := map[string]map[kindOfFigure][]float64{}
	for _, s := range list {
		value, _, ok := s.read()
		if !ok {
			continue // hold says so
		}
		if s.kind == speedup && form != "the verdict" && !strings.HasPrefix(form, "the API") && !notation(s.text, value) {
			t.Errorf("%s: %s writes the speedup on %s as %q", p.name, form, s.shape, s.text)
		}
		if shown[s.shape] == nil {
			shown[s.shape] = map[kindOfFigure][]float64{}
		}
		shown[s.shape][s.kind] = append(shown[s.shape][s.kind], value)
	}
	for shape, figures := range shown {
		for _, from := range figures[before] {
			for _, to := range figures[after] {
				for _, gain := range figures[speedup] {
					if (from-to)*gain < 0 {
						t.Errorf("%s: %s shows %v → %v on %s, and a speedup of %v", p.name, form, from, to, shape, gain)
					}
				}
			}
		}
	}
}

// notation reports whether a speedup is written as package number says: in percent below 2×, as a
// factor from there, and a loss with its word.
func notation(text string, value float64) bool {
	switch percent := strings.HasSuffix(strings.TrimSuffix(text, " slower"), "%"); {
	case strings.HasSuffix(text, " slower") && percent:
		return !strings.HasPrefix(text, "−") && value > -0.335
	case strings.HasSuffix(text, " slower"):
		return value < -0.33
	case percent:
		return !strings.HasPrefix(text, "−") && value < 1.005
	}
	return value >= 0.995 && strings.HasSuffix(text, "×")
}

// holdSteps checks that a form names every shape that does not meet its goal among the steps to
// pass.
func holdSteps(t *testing.T, form string, p piece, text string) {
	t.Helper()
	v := p.verdict
	switch v.Reason {
	case gates.ReasonTooSlow, gates.ReasonRegression, gates.ReasonInconclusive:
	default:
		return
	}
	_, steps, found := strings.Cut(text, "To pass")
	for _, c := range v.Judged() {
		if (c.Status == gates.Failed || c.Status == gates.Open) && (!found || !strings.Contains(steps, c.Label())) {
			t.Errorf("%s: %s does not say how %s would pass", p.name, form, c.Label())
		}
	}
}

// A reader finds the numbers of some shapes in any form.
type reader struct {
	names    []string
	patterns []pattern
}

func readerOf(all truth) reader {
	names := all.names()
	return reader{names, patterns(names)}
}

func (r reader) tables(all []grid) []mention {
	var list []mention
	for _, g := range all {
		list = append(list, g.figures(r.names)...)
	}
	return list
}

func (r reader) text(text string) []mention { return sentences(oneLine(text), r.patterns) }

func (r reader) markdown(text string) []mention {
	return append(r.tables(markdownTables(text)), r.text(markdownText(text))...)
}

func (r reader) terminal(text string) []mention {
	return append(r.tables(terminalTables(text)), r.text(withoutTables(strings.ReplaceAll(text, "\u00a0", " ")))...)
}

func (r reader) page(text string) []mention {
	return append(r.tables(htmlTables(text)), r.text(htmlText(matrices.ReplaceAllString(text, "")))...)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// holdFolder checks the evidence of one folder, on a separate site.
func holdFolder(t *testing.T, count *tally, pieces []piece) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "all")
	for _, p := range pieces {
		writePiece(t, dir, p)
	}
	f, err := pages.OpenFolder(dir, nil, nil)
	if err != nil || f.Count() != len(pieces) {
		t.Fatalf("%d of %d results are read: %v", f.Count(), len(pieces), err)
	}
	source := &oneChange{Folder: f}
	site, err := (&pages.Server{Source: source, Access: pages.Everybody{}}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) (int, string) {
		answer := httptest.NewRecorder()
		site.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return answer.Code, answer.Body.String()
	}
	page := func(path string) string {
		t.Helper()
		status, body := get(path)
		if status != http.StatusOK {
			t.Fatalf("%s answers %d: %.300s", path, status, body)
		}
		return body
	}
	for i, p := range pieces {
		all := truthOf(p.verdict)
		r := readerOf(all)
		hold := func(form string, list []mention, must ...kindOfFigure) {
			t.Helper()
			count.hold(t, form, p, all, list, must...)
		}
		hold("the verdict", inJSON(t, marshalled(t, p.verdict), r.names), ofJSON...)
		whole := report.Markdown(p.verdict, report.Options{})
		hold("report.md", r.markdown(whole), allFigures...)
		holdSteps(t, "report.md", p, markdownText(whole))
		for _, width := range []int{80, 120} {
			hold("check in a terminal", r.terminal(report.Terminal(p.verdict, report.TerminalOptions{Width: width})))
		}
		hold("judge in a terminal", r.terminal(report.Terminal(p.verdict, report.TerminalOptions{Width: 120, More: "with --format markdown"})))
		hold("all details in a terminal", r.terminal(report.Terminal(p.verdict, report.TerminalOptions{Details: true})), allFigures...)
		view := viewOf(t, p)
		hold("the comment", r.markdown(present.Comment(view)), allFigures...)
		holdSteps(t, "the comment", p, markdownText(present.Comment(view)))
		both := viewOf(t, p, "box1", "box2")
		matrix := present.Comment(both)
		source.show(t, both)
		holdDevices(t, count, p, all, r, matrix, page("/changes/"+both.State.ID.String()), page("/api/v1/changes/"+both.State.ID.String()))
		if len(r.names) <= 8 { // a comment has no room for more, twice
			hold("the comment on two devices", r.markdown(matrix), allFigures...)
			holdSteps(t, "the comment on two devices", p, markdownText(matrix))
		}
		for _, c := range present.Checks(view) {
			hold("a check run", r.markdown(c.Title+"\n\n"+c.Summary+"\n\n"+c.Text))
		}
		hold("the run's page", r.page(page("/runs/"+p.name)), allFigures...)
		holdMatrix(t, count, p, page("/runs/"+p.name))
		holdSteps(t, "the run's page", p, htmlText(page("/runs/"+p.name)))
		// The picture is missing if there are no intervals.
		if status, picture := get("/runs/" + p.name + "/intervals.svg"); status == http.StatusOK {
			hold("the picture of the intervals", r.text(htmlText(picture)))
		}
		hold("the API", inJSON(t, page("/api/v1/runs/"+p.name), r.names), ofJSON...)
		hold("the badge", inBadge(t, page("/badge/results/all/"+p.name+".svg"), p.verdict))
		holdHistory(t, count, p, all, page("/kernels/results/all/"+p.name))
		holdPast(t, count, p, page("/kernels/results/all/"+p.name))
		if i > 0 {
			holdComparison(t, count, pieces[i-1], p, page)
		}
	}
}

// holdComparison compares the candidates of two verdicts in every form of a comparison. The true
// difference is computed once.
func holdComparison(t *testing.T, count *tally, a, b piece, page func(string) string) {
	t.Helper()
	left, right := report.Result{Verdict: a.verdict, Evidence: a.evidence}, report.Result{Verdict: b.verdict, Evidence: b.evidence}
	all := truth{}
	for _, d := range report.Differences(left, right) {
		if d.Kind != "time" || d.A == nil || d.B == nil {
			continue
		}
		all[d.Name] = map[kindOfFigure]float64{before: *d.A, after: *d.A / (1 + *d.Ratio), median: *d.B}
		if *d.A != a.verdict.ComparisonOf(d.Name).CandidateTime() || *d.B != b.verdict.ComparisonOf(d.Name).CandidateTime() {
			t.Errorf("%s and %s: the times on %s are not the verdicts'", a.name, b.name, d.Name)
		}
		for kind, value := range map[kindOfFigure]*float64{speedup: d.Ratio, lower: d.Lower, upper: d.Upper} {
			if value != nil {
				all[d.Name][kind] = *value
			}
		}
	}
	r := readerOf(all)
	count.hold(t, "compare in a terminal", b, all, r.terminal(report.CompareRuns(left, right, report.TerminalOptions{Width: 80})), before, after)
	query := "/compare?" + url.Values{"a": {a.name}, "b": {b.name}}.Encode()
	count.hold(t, "the compare page", b, all, r.page(page(query)), allFigures...)
	count.hold(t, "the API of compare", b, all, inJSON(t, page("/api/v1"+query), r.names), ofJSON...)
}

// holdHistory checks the histories that consist of this one step.
func holdHistory(t *testing.T, count *tally, p piece, all truth, kernelPage string) {
	t.Helper()
	steps := report.Steps([]*gates.Verdict{p.verdict})
	if len(steps) == 0 {
		return
	}
	target := ""
	if steps[0].Target != nil && len(all[steps[0].Target.Shape]) == len(allFigures) {
		target = steps[0].Target.Shape
	}
	names := slices.DeleteFunc(all.names(), func(name string) bool { // no shape is a row of its own: the step is none, a secret one changes
		c := p.verdict.ComparisonOf(name)
		return c == nil || c.Secret
	})
	for form, tables := range map[string][]grid{
		"HISTORY.md":            markdownTables(report.History(p.name, []*gates.Verdict{p.verdict}, nil)),
		"history in a terminal": terminalTables(report.TerminalHistory(p.name, []*gates.Verdict{p.verdict}, nil, report.TerminalOptions{})),
		"the kernel's page":     htmlTables(kernelPage),
	} {
		if form == "the kernel's page" && !comparesVariants(p.verdict) {
			continue // its table has a row for each variant
		}
		var list []mention
		for _, g := range tables {
			list = append(list, g.history(steps[0].Before, target, before, names)...)
			list = append(list, g.history(steps[0].After, target, after, names)...)
		}
		count.hold(t, form, p, all, list)
		if target != "" && len(list) < 2*len(names)+3 {
			t.Errorf("%s: %s shows only %v", p.name, form, list)
		}
	}
}

// comparesVariants tells verdicts about two variants from those about two commits of one variant.
func comparesVariants(v *gates.Verdict) bool {
	from, to := v.Provenance.Base.Variant, v.Provenance.Head.Variant
	if n := len(v.Builds); n > 1 && from == "" && to == "" {
		from, to = v.Builds[0].Variant, v.Builds[n-1].Variant
	}
	return from != to
}
