package pages

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/gates/report"
)

// A ComparePage shows two runs side by side.
type ComparePage struct {
	A      *Row   `json:"a,omitempty"`
	B      *Row   `json:"b,omitempty"`
	AskedA string `json:"-"`
	AskedB string `json:"-"`
	WrongA string `json:"-"` // why AskedA names no run
	WrongB string `json:"-"`
	Only   string `json:"only,omitempty"`
	Shape  string `json:"shape,omitempty"`
	// Kernel is the chosen kernel, if the commits have runs of several.
	Kernel  string              `json:"kernel,omitempty"`
	Kernels []KernelName        `json:"-"` // the kernels to choose from
	Choices []Choice            `json:"-"`
	Notes   []string            `json:"notes,omitempty"`
	Untimed []string            `json:"untimed,omitempty"` // why a run has no times
	Rows    []report.Difference `json:"rows"`
	Hidden  int                 `json:"hidden,omitempty"` // rows hidden by the filters
}

// A TimeDifference is a shape that both runs timed, with its interval drawn against no difference.
type TimeDifference struct {
	report.Difference
	Margin template.HTML
}

// Times returns the shapes that both runs timed.
func (p *ComparePage) Times() []TimeDifference {
	var list []TimeDifference
	var intervals []chart.Interval
	for _, d := range p.of(true) {
		if d.A == nil || d.B == nil {
			continue
		}
		i := chart.Interval{Lower: d.Lower, Upper: d.Upper, Class: d.Class}
		if d.Ratio != nil {
			i.Value, i.Goal = *d.Ratio, new(0.0)
		}
		list, intervals = append(list, TimeDifference{Difference: d}), append(intervals, i)
	}
	for i, drawn := range chart.Margins(intervals) {
		list[i].Margin = picture(drawn)
	}
	return list
}

// Alone returns sentences about the shapes that only one of the runs timed.
func (p *ComparePage) Alone() []string {
	var a, b, said []string
	for _, d := range p.of(true) {
		switch {
		case d.A != nil && d.B == nil:
			a = append(a, d.Name)
		case d.A == nil && d.B != nil:
			b = append(b, d.Name)
		}
	}
	for _, side := range []struct {
		name   string
		shapes []string
	}{{"A", a}, {"B", b}} {
		if n := len(side.shapes); n > 0 {
			said = append(said, fmt.Sprintf("%s without a counterpart, timed only in %s: %s.", number.Plural(n, "shape"), side.name, strings.Join(side.shapes, ", ")))
		}
	}
	return said
}

// Counted returns the rows that are not about times.
func (p *ComparePage) Counted() []report.Difference { return p.of(false) }

// Unpaired returns how many of them only one of the runs has.
func (p *ComparePage) Unpaired() (n int) {
	for _, d := range p.Counted() {
		if d.A == nil || d.B == nil {
			n++
		}
	}
	return n
}

func (p *ComparePage) of(times bool) []report.Difference {
	var list []report.Difference
	for _, d := range p.Rows {
		if (d.Kind == "time") == times {
			list = append(list, d)
		}
	}
	return list
}

// status is 404 if one of the two runs was not found.
func (p *ComparePage) status() (int, string) {
	if p.WrongA == "" && p.WrongB == "" {
		return http.StatusOK, ""
	}
	return http.StatusNotFound, strings.TrimSpace(p.WrongA + " " + p.WrongB)
}

func (s *Server) compare(ctx context.Context, v *visit) (any, error) {
	q := v.URL.Query()
	p := &ComparePage{Only: q.Get("only"), Shape: q.Get("shape"), Kernel: q.Get("kernel"), AskedA: q.Get("a"), AskedB: q.Get("b")}
	var err error
	if p.Kernels, err = s.kernelNames(ctx, v); err != nil {
		return nil, err
	}
	kernel := kernelNamed(p.Kernels, p.Kernel)
	rows, err := s.pickBoth(ctx, v, p, kernel)
	if err != nil {
		return nil, err
	}
	if kernel == nil {
		for _, r := range rows {
			if r != nil && kernel == nil {
				kernel = kernelOf(p.Kernels, r)
			}
		}
	}
	if kernel != nil {
		p.Kernel = kernel.Value // the form selects it by this value, whatever the query called it
	}
	if p.Choices, err = s.choices(ctx, p.Kernels, kernel); err != nil {
		return nil, err
	}
	if rows[0] == nil || rows[1] == nil {
		return p, nil
	}
	s.differ(ctx, p, rows)
	return p, nil
}

// pickBoth finds the two runs, and notes in the form if one does not exist. A name that applies to
// every kernel, such as main, needs a kernel. If the visitor chose none, the kernel of the other
// run counts.
func (s *Server) pickBoth(ctx context.Context, v *visit, p *ComparePage, kernel *KernelName) (rows [2]*ledger.RunRow, err error) {
	asked, wrong := [2]string{p.AskedA, p.AskedB}, [2]*string{&p.WrongA, &p.WrongB}
	if kernel == nil && len(p.Kernels) == 1 {
		kernel = &p.Kernels[0]
	}
	// Try the first again: the second run may have determined the kernel.
	for _, i := range []int{0, 1, 0} {
		if asked[i] == "" || rows[i] != nil {
			continue
		}
		row, err := s.picked(ctx, v, asked[i], kernel)
		*wrong[i] = ""
		switch {
		case errors.Is(err, errWhichKernel):
			*wrong[i] = fmt.Sprintf("Every kernel has a run of “%s”: choose the kernel as well.", asked[i])
		case errors.Is(err, ErrNotFound):
			*wrong[i] = fmt.Sprintf("There is no run of “%s” that you may read. Choose one from the list, or write a commit, a pull request such as #7, or main.", asked[i])
		case err != nil:
			return rows, err
		default:
			rows[i] = &row
			if kernel == nil {
				kernel = kernelOf(p.Kernels, &row)
			}
		}
	}
	return rows, nil
}

func kernelOf(names []KernelName, row *ledger.RunRow) *KernelName {
	for i, k := range names {
		if k.repo == row.Change.Repo && k.Folder == row.Folder {
			return &names[i]
		}
	}
	return nil
}

// differ adds the differences between the two runs.
func (s *Server) differ(ctx context.Context, p *ComparePage, rows [2]*ledger.RunRow) {
	var measured [2]report.Result
	for i, row := range rows {
		drawn := s.drawn(ctx, *row)
		measured[i] = report.Result{Verdict: drawn.Verdict, Evidence: drawn.Evidence}
	}
	a, b := rowOf(*rows[0], rows[0].Repo), rowOf(*rows[1], rows[1].Repo)
	p.A, p.B = &a, &b
	for i, side := range []string{"A", "B"} {
		if why := untimed(measured[i]); why != "" {
			p.Untimed = append(p.Untimed, side+" has no times: "+why)
		}
	}
	p.Notes = caveats(a, b, s.digest(ctx, a.Verdict), s.digest(ctx, b.Verdict))
	for _, d := range report.Differences(measured[0], measured[1]) {
		if p.Only == "significant" && !d.Significant() || p.Shape != "" && !strings.HasPrefix(d.Name, p.Shape) {
			p.Hidden++
			continue
		}
		p.Rows = append(p.Rows, d)
	}
}

// untimed says why a run has no times to compare, or returns an empty string.
func untimed(r report.Result) string {
	switch v := r.Verdict; {
	case v == nil:
		return "its verdict is not stored."
	case slices.ContainsFunc(v.Comparisons, func(c gates.Comparison) bool { return c.Candidate != nil }):
		return ""
	case r.Evidence != nil && r.Evidence.Performance != nil && len(r.Evidence.Performance.Rounds) > 0:
		return "they were measured, and not judged, because an earlier gate failed. " + report.InNotation(v.Summary)
	default:
		return report.InNotation(v.Summary)
	}
}

// caveats returns the reasons why the two runs may not be comparable.
func caveats(a, b Row, x, y *digest) []string {
	var notes []string
	if a.Kernel != b.Kernel {
		notes = append(notes, fmt.Sprintf("These are different kernels: %s and %s.", a.Kernel, b.Kernel))
	}
	if a.Device != b.Device {
		notes = append(notes, fmt.Sprintf("They ran on different devices: %s and %s.", a.Device, b.Device))
	}
	if text := moved(x, y); text != "" {
		notes = append(notes, "Changed between them: "+text+".")
	}
	return append(notes, report.NotSideBySide)
}
