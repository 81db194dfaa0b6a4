package pages

import (
	"fmt"
	"html/template"

	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/gates/why"
)

// A WhyView is why the times of a shape differ, with its pictures.
type WhyView struct {
	gates.Why
	Roof   template.HTML // with an arrow from the baseline to the candidate
	Stalls template.HTML // what warps wait for, side by side
	Sides  []WhySide     // none if nothing is known of them
	Blocks bool          // whether it is known how many blocks share a multiprocessor
	Lines  []WhyLines
}

// A WhySide says what limits one side, and how many blocks share a multiprocessor.
type WhySide struct {
	Name      string
	Limiter   string
	Occupancy string // the blocks, what limits them, and what would lift them
}

// WhyLines is where the warps of one side's kernel were found.
type WhyLines struct {
	gates.StalledSide
	Build int // as sourceAt counts
}

// A whyPage is what the template of all explanations needs.
type whyPage struct {
	Page    *RunPage
	Reasons []WhyView
}

// whyViews draws the explanations of a verdict.
func whyViews(v *gates.Verdict) []WhyView {
	var list []WhyView
	for _, w := range v.Reasons() {
		view := WhyView{Why: w, Roof: arrowRoof(w), Stalls: stallBars(w)}
		for i, side := range []why.Side{w.Explanation.Baseline, w.Explanation.Candidate} {
			view.Sides = append(view.Sides, WhySide{[]string{"baseline", "candidate"}[i], limiterOf(side), occupancyOf(side, v.Device.Arch)})
			view.Blocks = view.Blocks || side.Blocks != nil
		}
		if !view.Blocks && w.Explanation.Baseline.Limiter == nil && w.Explanation.Candidate.Limiter == nil { // as of most kernels on a CPU
			view.Sides = nil
		}
		for _, of := range w.Stalled {
			build := 0
			if of.Side == "candidate" {
				build = len(v.Builds) - 1
			}
			view.Lines = append(view.Lines, WhyLines{of, build})
		}
		list = append(list, view)
	}
	return list
}

// arrowRoof is empty unless the place of both sides below the limits of the device is known.
func arrowRoof(w gates.Why) template.HTML {
	r := w.Roofline
	if r == nil || r.Baseline.Intensity <= 0 || r.Candidate.Intensity <= 0 {
		return ""
	}
	spot := func(name string, p gates.RooflinePoint, class string) chart.Spot {
		return chart.Spot{Name: name, Intensity: p.Intensity, FLOPs: p.TFLOPs * 1e12, Class: class, Label: name}
	}
	from, to := spot("baseline", r.Baseline, "baseline"), spot("candidate", r.Candidate, "candidate")
	to.From = &from
	return picture(chart.Roofline(w.Shape+": from baseline to candidate, by the bytes that moved to or from DRAM", r.Bandwidth*1e9,
		[]chart.Ceiling{{Name: "peak", FLOPs: r.Peak * 1e12}}, []chart.Spot{from, to}))
}

func stallBars(w gates.Why) template.HTML {
	if len(w.Stalls) == 0 {
		return ""
	}
	var rows []chart.Beside
	for _, s := range w.Stalls {
		rows = append(rows, chart.Beside{Name: s.Words, Baseline: s.Baseline, Candidate: s.Candidate})
	}
	return picture(chart.Bars(w.Shape+": what warps wait for, in percent of their time", rows))
}

func limiterOf(s why.Side) string {
	if s.Limiter == nil {
		return number.Dash
	}
	if s.Limiter.Share > 0 {
		return fmt.Sprintf("%s (%s)", s.Limiter.Name, number.Share(s.Limiter.Share/100))
	}
	return s.Limiter.Name
}

// occupancyOf is such as "1 block, limited by shared memory. Shared memory: 206 KiB → 1 block …".
func occupancyOf(s why.Side, arch string) string {
	if s.Blocks == nil {
		return number.Dash
	}
	text := number.Plural(int(*s.Blocks), "block")
	if s.LimitedBy != "" {
		text += ", limited by " + s.LimitedBy
	}
	if lift := gates.Lift(arch, s); lift != "" {
		text += " (" + lift + ")"
	}
	return text
}
