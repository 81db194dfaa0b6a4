package pages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"math"
	"regexp"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
)

// A ComparePage is two runs side by side.
type ComparePage struct {
	A      *Row          `json:"a,omitempty"`
	B      *Row          `json:"b,omitempty"`
	AskedA string        `json:"-"`
	AskedB string        `json:"-"`
	Only   string        `json:"only,omitempty"`
	Shape  string        `json:"shape,omitempty"`
	Kernel string        `json:"kernel,omitempty"` // of commits that have runs of several
	Notes  []string      `json:"notes,omitempty"`
	Rows   []Difference  `json:"rows"`
	Hidden int           `json:"hidden,omitempty"` // by the filters
	Chart  template.HTML `json:"-"`
}

// A Difference is one figure in both runs.
type Difference struct {
	Kind  string   `json:"kind"` // time, resource or error
	Name  string   `json:"name"`
	A     *float64 `json:"a"`
	B     *float64 `json:"b"`
	Unit  string   `json:"unit,omitempty"`
	Ratio *float64 `json:"ratio,omitempty"` // B over A, less 1
	Lower *float64 `json:"lower,omitempty"` // of the ratio, 95 %
	Upper *float64 `json:"upper,omitempty"`
	P     *float64 `json:"p,omitempty"` // of seeing this without a difference; nil where nothing varies, or too little is known
	Class string   `json:"class"`       // pass where B is faster for sure, fail where it is slower, open where it differs and has no better or worse
}

// Significant is where chance is ruled out at 5 %.
func (d Difference) Significant() bool { return d.Class != "none" }

func (s *Server) compare(ctx context.Context, v *visit) (any, error) {
	q := v.URL.Query()
	p := &ComparePage{Only: q.Get("only"), Shape: q.Get("shape"), Kernel: q.Get("kernel"), AskedA: q.Get("a"), AskedB: q.Get("b")}
	if p.AskedA == "" || p.AskedB == "" {
		return p, nil
	}
	var rows [2]ledger.RunRow
	var measured [2]*measured
	for i, asked := range []string{p.AskedA, p.AskedB} {
		kernel := p.Kernel
		if i == 1 && kernel == "" {
			kernel = rows[0].Folder
		}
		var err error
		if rows[i], err = s.named(ctx, v, asked, kernel); err != nil {
			return nil, err
		}
		measured[i] = s.measured(ctx, rows[i])
	}
	a, b := rowOf(rows[0], rows[0].Repo), rowOf(rows[1], rows[1].Repo)
	p.A, p.B = &a, &b
	p.Notes = caveats(a, b, s.digest(ctx, rows[0].Verdict), s.digest(ctx, rows[1].Verdict))
	all := differences(measured[0], measured[1])
	slices.SortStableFunc(all, bySignificance)
	for _, d := range all {
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
		if !mine || r.Phase != change.Done || r.Side {
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

// measured is what a run left to compare.
type measured struct {
	verdict  *gates.Verdict
	evidence *gates.Evidence
}

func (s *Server) measured(ctx context.Context, r ledger.RunRow) *measured {
	p := s.drawn(ctx, r)
	return &measured{verdict: p.Verdict, evidence: p.Evidence}
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
	return append(notes, "Two runs were not taken side by side: what differs between their hosts, clocks and hours counts as noise only as far as their rounds show it. The gate compares within one run.")
}

// differences pairs up all figures that either run has.
func differences(a, b *measured) []Difference {
	var list []Difference
	ta, tb := times(a), times(b)
	var shapes []string
	for _, m := range []*measured{a, b} {
		if m.verdict != nil {
			for _, c := range m.verdict.Comparisons {
				if !slices.Contains(shapes, c.Shape) {
					shapes = append(shapes, c.Shape)
				}
			}
		}
	}
	for _, shape := range shapes {
		d := Difference{Kind: "time", Name: shape, Unit: "µs", Class: "none"}
		if c := comparisonOf(a.verdict, shape); c != nil && c.Candidate != nil {
			d.A = &c.Candidate.P50
		}
		if c := comparisonOf(b.verdict, shape); c != nil && c.Candidate != nil {
			d.B = &c.Candidate.P50
		}
		d.weigh(ta[shape], tb[shape])
		list = append(list, d)
	}
	return append(list, counted(a, b)...)
}

// times is the candidate's median of each round, by shape: a round is the unit of
// evidence, since samples within one have much in common.
func times(m *measured) map[string][]float64 {
	all := map[string][]float64{}
	if m.evidence == nil || m.evidence.Performance == nil {
		return all
	}
	for _, round := range m.evidence.Performance.Rounds {
		for _, series := range round.Series {
			groups, _, _ := samplesOf([]gates.Round{{Series: []gates.Series{series}}}, series.Shape)
			if values := groups[len(groups)-1].Values; len(values) > 0 {
				all[series.Shape] = append(all[series.Shape], chart.Median(values))
			}
		}
	}
	return all
}

// weigh compares logarithms of times by Welch's test, which does not ask that both
// runs were equally noisy.
func (d *Difference) weigh(a, b []float64) {
	if d.A != nil && d.B != nil && *d.A > 0 {
		ratio := *d.B / *d.A - 1
		d.Ratio = &ratio
	}
	if len(a) < 2 || len(b) < 2 {
		return
	}
	ma, va := logs(a)
	mb, vb := logs(b)
	na, nb := float64(len(a)), float64(len(b))
	variance := va/na + vb/nb
	if !(variance > 0) || math.IsInf(variance, 0) || math.IsNaN(ma+mb) {
		return
	}
	freedom := variance * variance / (va*va/(na*na*(na-1)) + vb*vb/(nb*nb*(nb-1)))
	t := distuv.StudentsT{Sigma: 1, Nu: max(1, min(freedom, 1000))}
	size := (mb - ma) / math.Sqrt(variance)
	p := 2 * t.CDF(-math.Abs(size))
	half := t.Quantile(0.975) * math.Sqrt(variance)
	ratio, lower, upper := math.Exp(mb-ma)-1, math.Exp(mb-ma-half)-1, math.Exp(mb-ma+half)-1
	d.Ratio, d.Lower, d.Upper, d.P = &ratio, &lower, &upper, &p
	if p < 0.05 {
		d.Class = map[bool]string{true: "pass", false: "fail"}[mb < ma]
	}
}

// logs is the mean and the variance of logarithms.
func logs(values []float64) (mean, variance float64) {
	for _, v := range values {
		mean += math.Log(v) / float64(len(values))
	}
	for _, v := range values {
		variance += (math.Log(v) - mean) * (math.Log(v) - mean) / float64(len(values)-1)
	}
	return mean, variance
}

// counted is what does not vary: a difference is one.
func counted(a, b *measured) []Difference {
	type key struct{ kind, name, unit string }
	var order []key
	values := map[key][2]*float64{}
	for i, m := range []*measured{a, b} {
		if m.verdict == nil {
			continue
		}
		put := func(k key, v *float64) {
			if _, ok := values[k]; !ok {
				order = append(order, k)
			}
			both := values[k]
			both[i] = v
			values[k] = both
		}
		for _, r := range m.verdict.Resources {
			put(key{"resource", r.Name, r.Unit}, r.Candidate)
		}
		for _, r := range m.verdict.Correctness {
			name := r.Shape + " · " + r.Distribution
			if r.Secret {
				continue // drawn anew for each run
			}
			put(key{"error", name, ""}, &r.Norm)
		}
	}
	var list []Difference
	for _, k := range order {
		v := values[k]
		d := Difference{Kind: k.kind, Name: k.name, Unit: k.unit, A: v[0], B: v[1], Class: "none"}
		if d.A != nil && d.B != nil {
			if *d.A != 0 {
				ratio := *d.B / *d.A - 1
				d.Ratio = &ratio
			}
			// More registers may be the faster choice, and an error within its tolerance is no fault.
			if k.kind == "resource" && *d.A != *d.B {
				d.Class = "open"
			}
		}
		list = append(list, d)
	}
	return list
}

// bySignificance puts first what is not by chance, times before what was counted, and
// of each the least likely, then the largest.
func bySignificance(a, b Difference) int {
	rank := func(d Difference) int {
		switch {
		case d.Significant() && d.Kind == "time":
			return 0
		case d.Significant():
			return 1
		case d.Ratio != nil && *d.Ratio != 0:
			return 2
		}
		return 3
	}
	chance := func(d Difference) float64 {
		if d.P == nil {
			return 1
		}
		return *d.P
	}
	size := func(d Difference) float64 {
		if d.Ratio == nil {
			return 0
		}
		return math.Abs(*d.Ratio)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(chance(a), chance(b)), cmp.Compare(size(b), size(a)))
}
