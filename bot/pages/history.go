package pages

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/gates/report"
)

// mostPast limits the points of a page: a long history shows fewer shapes.
const mostPast = 720

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
	for _, key := range keys[:min(len(keys), kernelShapes, max(1, mostPast/max(1, len(runs))))] {
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
			h.aim(verdicts)
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
func (s *Server) trends(histories []History, rivals *RivalTable, branch bool) []Trend {
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
				labels[at] = labelOf(p, branch)
			}
		}
		what := "commits from the oldest to the newest"
		if !branch {
			what = "attempts from the oldest to the newest"
		}
		of := "launch"
		if gates.IsStep(t.Shape) {
			of = "step"
		}
		t.Chart = picture(chart.Trend(chart.History{
			Title: t.Shape, Unit: "µs per " + of + ", logarithmic scale; " + what, Labels: labels, Series: series, Marks: marks, Levels: rivals.fastest(t), Goal: t.goal(),
		}))
	}
	return list
}

// labelOf names a point on the axis: by its commit, or among attempts, which often have one commit, by its variant.
func labelOf(p Past, branch bool) string {
	commit := p.Head[:min(len(p.Head), 7)]
	if branch {
		return cmp.Or(commit, p.Job)
	}
	return cmp.Or(p.Variant, commit, p.Job)
}

// aim adds the goal of the last change: the next one is compared with the last point.
func (h *History) aim(verdicts []*digest) {
	last := h.Points[len(h.Points)-1]
	c := verdicts[last.place].comparison(h.Shape)
	if c == nil || c.Role != gates.RoleTarget {
		return
	}
	if goal := goalOf(*c); goal != nil && *goal > -1 {
		next := last.P50 / (1 + *goal)
		h.Next, h.Goal = &next, asked(c.Goal)
	}
}

// goal is what the next change must reach. Devices that share a chart have different goals, which would hide each other.
func (t *Trend) goal() *chart.Level {
	if len(t.Lines) != 1 || t.Lines[0].Next == nil {
		return nil
	}
	return &chart.Level{Name: "goal of the next change: " + t.Lines[0].Goal, Value: *t.Lines[0].Next}
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
