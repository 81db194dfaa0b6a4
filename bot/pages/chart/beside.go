package chart

import "fmt"

// A Beside is one row of bars: a share of the baseline and of the candidate, in percent.
type Beside struct {
	Name                string
	Baseline, Candidate float64
}

// Bars draws the shares of both sides next to each other, one row below the other. All bars have one scale.
func Bars(title string, rows []Beside) string {
	most := 0.0
	for _, r := range rows {
		for _, v := range finite([]float64{r.Baseline, r.Candidate}) {
			most = max(most, v)
		}
	}
	if most <= 0 {
		return nothing("bars", title)
	}
	const left, bar, row = 150, 9, 26
	scale := axis{low: 0, high: most, from: left, to: width - 52}
	c := begin("bars", title, fmt.Sprintf("%d rows.", len(rows)), width, float64(len(rows)*row)+4)
	for i, r := range rows {
		y := float64(i*row) + 4
		c.text("label", "end", left-6, y+bar+4, r.Name, left-8)
		for k, side := range []struct {
			class string
			share float64
		}{{"baseline", r.Baseline}, {"candidate", r.Candidate}} {
			if len(finite([]float64{side.share})) == 0 {
				continue
			}
			top := y + float64(k*(bar+1))
			end := scale.at(max(0, side.share))
			c.rect(side.class, left, top, end-left, bar, fmt.Sprintf("%s, %s: %s %%", r.Name, side.class, plain(side.share)))
			c.text("tick", "start", end+4, top+bar-0.5, plain(side.share)+" %", width-end-4)
		}
	}
	return c.end()
}
