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
	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/gates/report"
)

// Limits of a kernel's page.
const (
	kernelPoints = 60
	kernelRuns   = 50
	kernelShapes = 12
)

// A KernelPage shows the history of a kernel's speed.
type KernelPage struct {
	Repo   string `json:"repository"`
	Kernel string `json:"kernel"` // the name to display
	Folder string `json:"folder"`
	// Branch means that the history shows the default branch; otherwise it shows every attempt.
	Branch   bool           `json:"default_branch"`
	Shapes   []History      `json:"history"`
	Gained   *Gained        `json:"gained,omitempty"`
	Trends   []Trend        `json:"-"`
	Best     []BestState    `json:"best,omitempty"`
	Variants []VariantTable `json:"by_device,omitempty"`
	Rivals   *RivalTable    `json:"rivals,omitempty"`
	Searches []TuningPage   `json:"searches,omitempty"`
	Runs     []Row          `json:"runs"`
	Pages
	Lost []Negative `json:"negative_results,omitempty"`
}

// A History holds one shape's times on one device, oldest first.
type History struct {
	Shape  string       `json:"shape"`
	Device string       `json:"device"`
	Points []Past       `json:"points"`
	Marks  []chart.Mark `json:"marks,omitempty"`
	// Factor is set for the default branch only. It is the product of the speedups of all points,
	// each measured within one run.
	Factor float64 `json:"factor,omitempty"`
}

// A Trend shows a shape's times on all devices.
type Trend struct {
	Shape string
	Lines []History
	Chart template.HTML
}

// A Past is the time of one commit.
type Past struct {
	Job     string        `json:"job"`
	Head    string        `json:"head"`
	P50     float64       `json:"p50_us"`
	Min     float64       `json:"min_us,omitempty"`
	P90     float64       `json:"p90_us,omitempty"`
	Outcome gates.Outcome `json:"outcome"`
	Variant string        `json:"variant,omitempty"`
	At      time.Time     `json:"at,omitzero"` // when it was measured
	row     Row
	place   int // index among the runs of the page
}

// A BestState is the high-water mark of one shape: the merged commit with the best cumulative
// speed.
type BestState struct {
	Shape      string    `json:"shape"`
	Device     string    `json:"device"`
	Commit     string    `json:"commit"`
	At         time.Time `json:"at,omitzero"`          // when it was measured
	Speedup    float64   `json:"speedup"`              // of the default branch relative to it: 0 or less
	Unmeasured int       `json:"unmeasured,omitempty"` // later merges that were not measured on the device
}

// bestStates returns the high-water marks of a kernel, one for each device and shape.
func (s *Server) bestStates(ctx context.Context, repo int64, folder string) ([]BestState, error) {
	history, err := s.Source.Merges(ctx, repo, folder)
	if err != nil {
		return nil, err
	}
	var list []BestState
	for _, d := range history.Devices() {
		for shape, p := range history.Marks(d) {
			list = append(list, BestState{Shape: shape.Name, Device: d.Name, Commit: p.Commit, At: p.At, Speedup: p.Level - 1, Unmeasured: p.Unmeasured})
		}
	}
	slices.SortFunc(list, func(a, b BestState) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Shape, b.Shape), cmp.Compare(a.Commit, b.Commit))
	})
	return list[:min(len(list), kernelShapes)], nil
}

func (s *Server) kernel(ctx context.Context, v *visit) (any, error) {
	id, repo, err := s.repoByName(ctx, v, v.PathValue("owner")+"/"+v.PathValue("repo"))
	if err != nil {
		return nil, err
	}
	p, err := s.kernelPage(ctx, id, repo, v.PathValue("kernel"))
	if err != nil {
		return nil, err
	}
	p.Runs, p.Pages, err = s.pageOfRuns(ctx, v, ledger.RunFilter{RepoID: id, Folder: p.Folder, Limit: kernelRuns}, repo)
	return p, err
}

func (s *Server) repoByName(ctx context.Context, v *visit, name string) (int64, string, error) {
	all, err := s.Source.RepoNames(ctx)
	if err != nil {
		return 0, "", err
	}
	mine := slices.DeleteFunc(all, func(r ledger.RepoName) bool { return !strings.EqualFold(r.Name, name) || !v.MayRead(ctx, r) })
	found, ok := ledger.Named(mine, name)
	if !ok {
		return 0, "", ErrNotFound
	}
	return found.ID, found.Name, nil
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
	p.Lost = s.negatives(ctx, latest, repo)
	main, err := s.Source.OnMain(ctx, id, folder, kernelPoints)
	if err != nil {
		return nil, err
	}
	if len(main) == 0 {
		p.Branch = false
		main = slices.DeleteFunc(slices.Clone(latest), func(r ledger.RunRow) bool { return r.Phase != change.Done || r.Extra })
	}
	if p.Best, err = s.bestStates(ctx, id, folder); err != nil {
		return nil, err
	}
	p.Rivals = s.rivals(ctx, main)
	p.Variants = s.variants(ctx, append(slices.Clone(latest), main...))
	slices.Reverse(main)
	p.Shapes = s.histories(ctx, main, p.Branch)
	if p.Searches, err = s.searchesOf(ctx, id, folder, p.Kernel); err != nil {
		return nil, err
	}
	p.Trends = s.trends(p.Shapes, p.Rivals)
	p.Gained = p.gained()
	return p, nil
}

// Gained is the one factor of a kernel's page: what all its steps gained together on the target shape.
type Gained struct {
	Factor float64 `json:"factor"`
	Shape  string  `json:"shape"`
	Device string  `json:"device"`
	// Of the default branch, Commits is the number of commits behind the factor. Otherwise it is that of Variant over From.
	Commits int    `json:"commits,omitempty"`
	Variant string `json:"variant,omitempty"`
	From    string `json:"from,omitempty"`
}

// Words returns the factor in a sentence that says what it is the product of.
func (g *Gained) Words() string {
	if g.Commits > 0 {
		return fmt.Sprintf("The default branch is %s as fast on %s as before its first measured commit: the product of the speedups of %s on %s.", number.Factor(g.Factor), g.Shape, number.Plural(g.Commits, "commit"), deviceName(g.Device))
	}
	return fmt.Sprintf("%s, the fastest variant that passed, is %s as fast on %s as %s: the product of the speedups of the steps between them on %s.", g.Variant, number.Factor(g.Factor), g.Shape, g.From, deviceName(g.Device))
}

// gained returns what the default branch has gained, or else the fastest variant that passed.
func (p *KernelPage) gained() *Gained {
	if p.Branch {
		if len(p.Shapes) == 0 || p.Shapes[0].Factor <= 0 || len(p.Shapes[0].Points) < 2 {
			return nil
		}
		h := p.Shapes[0]
		return &Gained{Factor: h.Factor, Shape: h.Shape, Device: h.Device, Commits: len(h.Points)}
	}
	var best *Gained
	for _, t := range p.Variants {
		for _, row := range t.Rows {
			passed := slices.ContainsFunc(row.Verdicts, func(w Word) bool { return w.Outcome == gates.Pass })
			if passed && row.Gain != nil && row.Factor > 0 && (best == nil || row.Factor > best.Factor) {
				best = &Gained{Factor: row.Factor, Shape: row.Shape, Device: t.Device, Variant: row.Variant, From: t.Rows[0].Variant}
			}
		}
	}
	return best
}

// histories returns one history for each shape and device, target shapes first, then those that were timed most often.
func (s *Server) histories(ctx context.Context, runs []ledger.RunRow, branch bool) []History {
	verdicts := make([]*digest, len(runs))
	for i, r := range runs {
		verdicts[i] = s.digest(ctx, r.Verdict)
	}
	names, targets, times := map[[2]string]bool{}, map[string]bool{}, map[string]int{}
	for _, r := range runs {
		for shape := range r.P50 {
			names[[2]string{shape, r.Device}] = true
			times[shape]++
		}
		for shape := range r.Speedups {
			targets[shape] = true
		}
	}
	keys := slices.SortedFunc(maps.Keys(names), func(a, b [2]string) int {
		if targets[a[0]] != targets[b[0]] {
			return map[bool]int{true: -1, false: 1}[targets[a[0]]]
		}
		return cmp.Or(cmp.Compare(times[b[0]], times[a[0]]), slices.Compare(a[:], b[:]))
	})
	var list []History
	for _, key := range keys[:min(len(keys), kernelShapes)] {
		h := History{Shape: key[0], Device: key[1]}
		var before *digest
		for i, r := range runs {
			p50, ok := r.P50[h.Shape]
			if !ok || r.Device != h.Device {
				continue
			}
			past := Past{Job: r.Job, Head: r.Head, P50: p50, Outcome: r.Outcome, At: r.Ended, row: rowOf(r, r.Repo), place: i}
			if d := verdicts[i]; d != nil {
				past.Variant = d.Provenance.Head.Variant
			}
			past.Min, past.P90 = verdicts[i].spread(h.Shape)
			if text := moved(before, verdicts[i]); text != "" {
				h.Marks = append(h.Marks, chart.Mark{Before: len(h.Points), Text: text, Class: "environment"})
			}
			if verdicts[i] != nil {
				before = verdicts[i]
			}
			h.Points = append(h.Points, past)
		}
		for _, at := range steps(h.Points) {
			text := fmt.Sprintf("%s: %s → %s", cmp.Or(h.Points[at].Variant, report.Short(h.Points[at].Head)), number.Time(h.Points[at-1].P50), number.Time(h.Points[at].P50))
			h.Marks = append(h.Marks, chart.Mark{Before: at, Text: text, Class: "step"})
		}
		if branch {
			h.Factor = gained(h, verdicts)
		}
		list = append(list, h)
	}
	return list
}

// gained returns the product of a shape's speedups on the default branch. Each speedup comes from
// within one run, like the factor of a variant. Times of different runs are not divided, because
// their hosts and clocks differ. The first run of a kernel has no baseline. A later run without a
// baseline breaks the chain, and there is no factor.
func gained(h History, verdicts []*digest) float64 {
	factor := 1.0
	for i, p := range h.Points {
		switch c := verdicts[p.place].comparison(h.Shape); {
		case c != nil && c.Baseline != nil:
			factor *= 1 + c.Speedup.Value
		case i > 0:
			return 0
		}
	}
	return factor
}

// trends returns one chart for each shape, with a line for each device.
func (s *Server) trends(histories []History, rivals *RivalTable) []Trend {
	var devices []string
	var list []Trend
	for _, h := range histories {
		if !slices.Contains(devices, h.Device) {
			devices = append(devices, h.Device)
		}
		if n := len(list); n == 0 || list[n-1].Shape != h.Shape {
			list = append(list, Trend{Shape: h.Shape})
		}
		t := &list[len(list)-1]
		t.Lines = append(t.Lines, h)
	}
	for i := range list {
		t := &list[i]
		places := placesOf(t.Lines)
		var series []chart.Series
		var marks []chart.Mark
		for _, h := range t.Lines {
			line := chart.Series{Name: deviceName(h.Device), Class: deviceClass(slices.Index(devices, h.Device))}
			for _, p := range h.Points {
				point := s.pointOf(p)
				point.At, _ = slices.BinarySearch(places, p.place)
				line.Points = append(line.Points, point)
			}
			for _, m := range h.Marks {
				m.Before, _ = slices.BinarySearch(places, h.Points[min(m.Before, len(h.Points)-1)].place)
				marks = append(marks, m)
			}
			series = append(series, line)
		}
		labels := make([]string, len(places))
		for _, h := range t.Lines {
			for _, p := range h.Points {
				at, _ := slices.BinarySearch(places, p.place)
				labels[at] = cmp.Or(p.Head[:min(len(p.Head), 7)], p.Job)
			}
		}
		t.Chart = picture(chart.Trend(t.Shape, "µs per launch", labels, series, marks, rivals.fastest(t)))
	}
	return list
}

// placesOf returns the indices of the runs that timed a shape, in order.
func placesOf(lines []History) []int {
	var places []int
	for _, h := range lines {
		for _, p := range h.Points {
			places = append(places, p.place)
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// deviceClass returns the CSS class of a device's line. The style sheet has four colours.
func deviceClass(n int) string { return []string{"first", "second", "third", "fourth"}[n%4] }

// pointOf converts a run to a point with the card that is shown next to it.
func (s *Server) pointOf(p Past) chart.Point {
	hint := cmp.Or(report.Short(p.Head), p.Job) + ": " + number.Time(p.P50)
	card := []string{number.Time(p.P50) + " · " + outcomeOf(p.Outcome, p.row.Reason).Word}
	if p.Variant != "" {
		hint += ", variant " + p.Variant
		card = append(card, "variant "+p.Variant)
	}
	if p.Head != "" {
		card = append(card, "commit "+report.Short(p.Head))
	}
	change := p.row.Title
	if n := p.row.Pull(); n > 0 {
		change = strings.TrimSpace(fmt.Sprintf("#%d %s", n, change))
	}
	if change != "" {
		card = append(card, change)
	}
	if p.row.Author != "" {
		card = append(card, "by "+p.row.Author)
	}
	if !p.At.IsZero() {
		card = append(card, p.At.UTC().Format("2006-01-02 15:04 UTC"))
	}
	point := chart.Point{Value: p.P50, Class: outcomeOf(p.Outcome, p.row.Reason).Class, Hint: hint, Link: "/runs/" + p.Job, At: p.place, Card: strings.Join(card, "\n")}
	if p.Min > 0 && p.P90 >= p.Min {
		point.Lower, point.Upper = &p.Min, &p.P90
	}
	return point
}

// steps returns the points at which the times changed permanently. It compares up to three points
// before with up to three points from there on. Their medians must differ by at least 3 %, and
// every time before must lie on the same side of every time after.
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
		// The jump between these two points must itself be at least 3 %. Otherwise the step is at a
		// neighbouring point.
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
