package pages

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"regexp"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates/report"
)

// A ComparePage is two runs side by side.
type ComparePage struct {
	A      *Row                `json:"a,omitempty"`
	B      *Row                `json:"b,omitempty"`
	AskedA string              `json:"-"`
	AskedB string              `json:"-"`
	Only   string              `json:"only,omitempty"`
	Shape  string              `json:"shape,omitempty"`
	Kernel string              `json:"kernel,omitempty"` // of commits that have runs of several
	Notes  []string            `json:"notes,omitempty"`
	Rows   []report.Difference `json:"rows"`
	Hidden int                 `json:"hidden,omitempty"` // by the filters
	Chart  template.HTML       `json:"-"`
}

func (s *Server) compare(ctx context.Context, v *visit) (any, error) {
	q := v.URL.Query()
	p := &ComparePage{Only: q.Get("only"), Shape: q.Get("shape"), Kernel: q.Get("kernel"), AskedA: q.Get("a"), AskedB: q.Get("b")}
	if p.AskedA == "" || p.AskedB == "" {
		return p, nil
	}
	var rows [2]ledger.RunRow
	var measured [2]report.Result
	for i, asked := range []string{p.AskedA, p.AskedB} {
		kernel := p.Kernel
		if i == 1 && kernel == "" {
			kernel = rows[0].Folder
		}
		var err error
		if rows[i], err = s.named(ctx, v, asked, kernel); err != nil {
			return nil, err
		}
		drawn := s.drawn(ctx, rows[i])
		measured[i] = report.Result{Verdict: drawn.Verdict, Evidence: drawn.Evidence}
	}
	a, b := rowOf(rows[0], rows[0].Repo), rowOf(rows[1], rows[1].Repo)
	p.A, p.B = &a, &b
	p.Notes = caveats(a, b, s.digest(ctx, rows[0].Verdict), s.digest(ctx, rows[1].Verdict))
	for _, d := range report.Differences(measured[0], measured[1]) {
		if p.Only == "significant" && !d.Significant() || p.Shape != "" && !strings.HasPrefix(d.Name, p.Shape) {
			p.Hidden++
			continue
		}
		p.Rows = append(p.Rows, d)
	}
	var intervals []chart.Interval
	for _, d := range p.Rows {
		if d.Kind == "time" && d.Ratio != nil {
			intervals = append(intervals, chart.Interval{Label: d.Name, Value: *d.Ratio, Lower: d.Lower, Upper: d.Upper, Class: d.Class, Text: signed(*d.Ratio)})
		}
	}
	if intervals != nil {
		p.Chart = picture(chart.Forest("Time of B against A, shape by shape: left is faster", intervals))
	}
	return p, nil
}

// commitPattern is as much of a commit's id as git shows, or more.
var commitPattern = regexp.MustCompile(`^[0-9a-f]{7,40}$`)

// named is the run of that name or, of a commit, the last that decided something: of a
// kernel, where one is given and was measured.
func (s *Server) named(ctx context.Context, v *visit, text, kernel string) (ledger.RunRow, error) {
	text = strings.TrimSpace(text)
	row, err := s.runOf(ctx, v, text)
	if commit := strings.ToLower(text); errors.Is(err, ErrNotFound) && commitPattern.MatchString(commit) {
		return s.ofCommit(ctx, v, commit, kernel)
	}
	return row, err
}

func (s *Server) ofCommit(ctx context.Context, v *visit, commit, kernel string) (ledger.RunRow, error) {
	rows, err := s.Source.AtHead(ctx, commit, 200)
	if err != nil {
		return ledger.RunRow{}, err
	}
	repos, err := s.repos(ctx, v)
	if err != nil {
		return ledger.RunRow{}, err
	}
	var found *ledger.RunRow
	for _, r := range rows {
		name, mine := repos[r.Change.Repo]
		if !mine || r.Phase != change.Done || r.Extra {
			continue
		}
		r.Repo = name
		if right := kernel == "" || r.Folder == kernel || r.Kernel == kernel; right {
			return r, nil
		}
		if found == nil {
			found = &r
		}
	}
	if found == nil {
		return ledger.RunRow{}, ErrNotFound
	}
	return *found, nil
}

// caveats is why the two may not be comparable.
func caveats(a, b Row, x, y *digest) []string {
	var notes []string
	if a.Kernel != b.Kernel {
		notes = append(notes, fmt.Sprintf("These are different kernels: %s and %s.", a.Kernel, b.Kernel))
	}
	if a.Device != b.Device {
		notes = append(notes, fmt.Sprintf("They ran on different devices: %s and %s.", a.Device, b.Device))
	}
	if text := moved(x, y); text != "" {
		notes = append(notes, "Between them changed: "+text+".")
	}
	return append(notes, report.NotSideBySide)
}
