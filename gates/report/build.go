package report

import "github.com/kernelgate/kernelgate/gates"

// build puts the verdict into words, once for all forms. What decides stands
// first: many read no further than three lines.
func build(v *gates.Verdict) document {
	var d document
	add := func(name string, keep int, blocks []block) {
		if len(blocks) > 0 {
			d.sections = append(d.sections, section{name, keep, blocks})
		}
	}
	add("title", 100, opening(v))
	add("headlines", 90, headlines(v))
	add("what would make it pass", 85, toPass(v))
	add("gates", 80, gateTable(v))
	add("performance", 70, performance(v))
	add("rivals", 50, rivals(v))
	add("all figures", 10, figures(v))
	add("resources", 60, resources(v))
	add("correctness", 55, correctness(v))
	add("sanitizers", 65, sanitizers(v))
	add("profile", 40, profile(v))
	add("compiler", 75, compiler(v))
	add("notes", 30, notes(v))
	add("gate details", 15, gateDetails(v))
	add("provenance", 20, provenance(v))
	return d
}
