package chart

import "strings"

// aloneStyle is what the pages' style sheet says of a forest, for one that no page
// surrounds.
const aloneStyle = `<style>
svg { --page: #fff; --ink: #1f2328; --soft: #57606a; --rule: #d0d7de; --pass: #116329; --fail: #a40e26; --open: #7d4e00; font: 11px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { svg { --page: #0d1117; --ink: #e6edf3; --soft: #9aa4af; --rule: #30363d; --pass: #56d364; --fail: #ff7b72; --open: #e3b341; } }
rect.paper { fill: var(--page); } text { fill: var(--ink); } path { fill: none; }
.tick, .unit { fill: var(--soft); } .grid { stroke: var(--rule); stroke-width: .7; } .axis { stroke: var(--soft); } .zero { stroke: var(--soft); stroke-width: 1.2; }
.goal { stroke: var(--ink); stroke-width: 2; stroke-dasharray: 3 2; } .whisker { stroke: var(--soft); stroke-width: 2; } .dot { fill: var(--soft); }
.whisker.pass { stroke: var(--pass); } .whisker.fail { stroke: var(--fail); } .whisker.open { stroke: var(--open); }
.dot.pass { fill: var(--pass); } .dot.fail { fill: var(--fail); } .dot.open { fill: var(--open); }
</style><rect class="paper" width="100%" height="100%"/>`

// Alone gives a picture of this package, a forest, its own colours, so that it can be
// shown by itself.
func Alone(svg string) string {
	head, rest, ok := strings.Cut(svg, "</title>")
	if !ok {
		return svg
	}
	return strings.Replace(head, "<svg ", `<svg width="540" `, 1) + "</title>" + aloneStyle + rest
}
