package pages

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

// Bounds of a kernel's page.
const (
	kernelPoints = 60
	kernelRuns   = 50
	kernelShapes = 12
)

// A KernelPage is how a kernel's speed went.
type KernelPage struct {
	Repo     string         `json:"repository"`
	Kernel   string         `json:"kernel"` // as it is shown
	Folder   string         `json:"folder"`
	Branch   bool           `json:"default_branch"` // the history is of the default branch; else of every attempt
	Shapes   []History      `json:"history"`
	Variants []VariantTable `json:"by_device,omitempty"`
	Rivals   *RivalTable    `json:"rivals,omitempty"`
	Runs     []Row          `json:"runs"`
	Lost     []Negative     `json:"negative_results,omitempty"`
}

// A History is one shape's times, oldest first.
type History struct {
	Shape  string        `json:"shape"`
	Device string        `json:"device"`
	Points []Past        `json:"points"`
	Marks  []chart.Mark  `json:"marks,omitempty"`
	Factor float64       `json:"factor,omitempty"` // the first over the last
	Chart  template.HTML `json:"-"`
}

// A Past is one commit's time.
type Past struct {
	Job     string        `json:"job"`
	Head    string        `json:"head"`
	P50     float64       `json:"p50_us"`
	Min     float64       `json:"min_us,omitempty"`
	P90     float64       `json:"p90_us,omitempty"`
	Outcome gates.Outcome `json:"outcome"`
	Variant string        `json:"variant,omitempty"`
	At      time.Time     `json:"at,omitzero"` // when it was measured
}

func (s *Server) kernel(ctx context.Context, v *visit) (any, error) {
	id, repo, err := s.repoByName(ctx, v, v.PathValue("owner")+"/"+v.PathValue("repo"))
	if err != nil {
		return nil, err
	}
	return s.kernelPage(ctx, id, repo, v.PathValue("kernel"))
}

func (s *Server) repoByName(ctx context.Context, v *visit, name string) (int64, string, error) {
	repos, err := s.repos(ctx, v)
	if err != nil {
		return 0, "", err
	}
	newest := int64(-1) // of several with one name, the one that was made last
	for id, its := range repos {
		if strings.EqualFold(its, name) {
			newest = max(newest, id)
		}
	}
	if newest < 0 {
		return 0, "", ErrNotFound
	}
	return newest, repos[newest], nil
}

func (s *Server) kernelPage(ctx context.Context, id int64, repo, folder string) (*KernelPage, error) {
	latest, err := s.Source.Latest(ctx, id, folder, kernelRuns)
	if err != nil {
		return nil, err
	}
	if len(latest) == 0 {
		return nil, ErrNotFound
	}
	p := &KernelPage{Repo: repo, Kernel: latest[0].Kernel, Folder: folder, Branch: true}
	for _, r := range latest {
		p.Runs = append(p.Runs, rowOf(r, repo))
	}
	p.Lost = s.negatives(ctx, latest, repo)
	main, err := s.Source.OnMain(ctx, id, folder, kernelPoints)
	if err != nil {
		return nil, err
	}
	if len(main) == 0 {
		p.Branch = false
		main = slices.DeleteFunc(slices.Clone(latest), func(r ledger.RunRow) bool { return r.Phase != change.Done || r.Extra })
	}
	p.Rivals = s.rivals(ctx, main)
	p.Variants = s.variants(ctx, append(slices.Clone(latest), main...))
	slices.Reverse(main)
	p.Shapes = s.histories(ctx, main)
	return p, nil
}

// histories is a line for each device and shape.
func (s *Server) histories(ctx context.Context, runs []ledger.RunRow) []History {
	verdicts := make([]*digest, len(runs))
	for i, r := range runs {
		verdicts[i] = s.digest(ctx, r.Verdict)
	}
	names := map[[2]string]bool{}
	for _, r := range runs {
		for shape := range r.P50 {
			names[[2]string{r.Device, shape}] = true
		}
	}
	keys := slices.SortedFunc(maps.Keys(names), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	var list []History
	for _, key := range keys[:min(len(keys), kernelShapes)] {
		h := History{Device: key[0], Shape: key[1]}
		var points []chart.Point
		var before *digest
		for i, r := range runs {
			p50, ok := r.P50[h.Shape]
			if !ok || r.Device != h.Device {
				continue
			}
			past := Past{Job: r.Job, Head: r.Head, P50: p50, Outcome: r.Outcome, At: r.Ended}
			point := chart.Point{Value: p50, Class: outcomeOf(r.Outcome, r.Reason).Class, Hint: report.Short(r.Head) + ": " + micros(p50), Link: "/runs/" + r.Job}
			if d := verdicts[i]; d != nil && d.Provenance.Head.Variant != "" {
				past.Variant = d.Provenance.Head.Variant
				point.Hint += ", variant " + past.Variant
			}
			if past.Min, past.P90 = verdicts[i].spread(h.Shape); past.Min > 0 && past.P90 >= past.Min {
				point.Lower, point.Upper = &past.Min, &past.P90
			}
			if text := moved(before, verdicts[i]); text != "" {
				h.Marks = append(h.Marks, chart.Mark{Before: len(points), Text: text, Class: "environment"})
			}
			if verdicts[i] != nil {
				before = verdicts[i]
			}
			h.Points, points = append(h.Points, past), append(points, point)
		}
		for _, at := range steps(h.Points) {
			text := fmt.Sprintf("%s: %s → %s", cmp.Or(h.Points[at].Variant, report.Short(h.Points[at].Head)), micros(h.Points[at-1].P50), micros(h.Points[at].P50))
			h.Marks = append(h.Marks, chart.Mark{Before: at, Text: text, Class: "step"})
		}
		if n := len(h.Points); n > 1 && h.Points[n-1].P50 > 0 {
			h.Factor = h.Points[0].P50 / h.Points[n-1].P50
		}
		h.Chart = picture(chart.Line(h.Shape+" on "+h.Device, "µs per launch", points, h.Marks))
		list = append(list, h)
	}
	return list
}

// steps is the points where the times moved for good: the larger part of what is
// before, up to three points, lies beyond all that is after by more than 3 %, and no
// range of samples reaches over.
func steps(points []Past) []int {
	const least, around = 0.03, 3
	var found []int
	for at := 1; at < len(points); at++ {
		before, after := points[max(0, at-around):at], points[at:min(len(points), at+around)]
		if n := len(found); n > 0 && at-found[n-1] < around {
			before = points[found[n-1]:at]
		}
		a, b := middle(before), middle(after)
		if a <= 0 || b <= 0 || max(a, b)/min(a, b) < 1+least {
			continue
		}
		apart := true
		for _, x := range before {
			for _, y := range after {
				apart = apart && (x.P50 < y.P50) == (a < b) && x.P50 != y.P50
			}
		}
		// The step is here, not one further on: the jump between these two is the largest around.
		if apart && max(points[at-1].P50, points[at].P50)/min(points[at-1].P50, points[at].P50) >= 1+least {
			found = append(found, at)
		}
	}
	return found
}

func middle(points []Past) float64 {
	var values []float64
	for _, p := range points {
		values = append(values, p.P50)
	}
	return chart.Median(values)
}
