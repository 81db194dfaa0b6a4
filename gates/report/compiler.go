package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

const (
	diagnosticsShown = 20
	diagnosticRunes  = 400 // a template's error can be a book
)

// compiler shows what stopped a build.
func compiler(v *gates.Verdict) []block {
	var blocks []block
	for i, b := range v.Builds {
		if b.OK {
			continue
		}
		intro := line{mark(signFail), text(" The " + side(v, i) + " does not build")}
		if b.Variant != "" {
			intro = append(intro, text(" ("), mono(b.Variant), text(")"))
		}
		if b.Error != "" {
			intro = append(append(intro, text(": ")), prose(b.Error)...)
		} else {
			intro = append(intro, text("."))
		}
		blocks = append(blocks, paragraph{intro})
		if len(b.Diagnostics) > 0 {
			blocks = append(blocks, listing{diagnostics(b.Diagnostics)})
		}
	}
	if blocks == nil {
		return nil
	}
	return append([]block{subheading("Compiler")}, blocks...)
}

// side names a build by its place in the verdict.
func side(v *gates.Verdict, i int) string {
	switch {
	case len(v.Builds) != 2:
		return "kernel"
	case i == 0:
		return "baseline"
	}
	return "candidate"
}

// diagnostics puts errors first: warnings must not crowd them out.
func diagnostics(all []gates.Diagnostic) string {
	rank := func(d gates.Diagnostic) int {
		if strings.Contains(strings.ToLower(d.Severity), "error") {
			return 0
		}
		return 1
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b gates.Diagnostic) int { return rank(a) - rank(b) })
	var lines []string
	for _, d := range sorted[:min(len(sorted), diagnosticsShown)] {
		lines = append(lines, diagnostic(d))
	}
	if rest := len(sorted) - diagnosticsShown; rest > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", rest))
	}
	return strings.Join(lines, "\n")
}

func diagnostic(d gates.Diagnostic) string {
	var b strings.Builder
	if d.File != "" {
		b.WriteString(d.File)
		if d.Line > 0 {
			fmt.Fprintf(&b, ":%d", d.Line)
			if d.Column > 0 {
				fmt.Fprintf(&b, ":%d", d.Column)
			}
		}
		b.WriteString(": ")
	}
	if d.Severity != "" {
		b.WriteString(d.Severity + ": ")
	}
	b.WriteString(d.Message)
	return clip(strings.TrimSpace(clean(b.String())), diagnosticRunes)
}

// clip ends a text that is too long with an ellipsis, after a word where one
// ends nearby.
func clip(s string, runes int) string {
	r := []rune(s)
	if len(r) <= runes {
		return s
	}
	r = r[:max(runes-1, 0)]
	for i := len(r) - 1; i > 0 && i > len(r)-20; i-- {
		if r[i] == ' ' {
			r = r[:i]
			break
		}
	}
	return strings.TrimRight(string(r), " ,;:") + "…"
}
