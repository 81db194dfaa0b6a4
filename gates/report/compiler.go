package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

const (
	errorsShown      = 3
	diagnosticsShown = 20
	diagnosticRunes  = 300 // a template's error can be a book
)

// stoppedBuild is the first errors of a build, which its author wants to see at once.
func stoppedBuild(v *gates.Verdict) []block {
	var blocks []block
	for i, b := range v.Builds {
		if first, _ := diagnostics(b); len(first) > 0 {
			blocks = append(blocks, paragraph{cell("What the compiler said about the " + side(v, i) + ":")}, listing{strings.Join(first, "\n")})
		}
	}
	return blocks
}

// builds is how the sides were built, with the remaining output of the compiler.
func builds(v *gates.Verdict) []block {
	var blocks []block
	for i, b := range v.Builds {
		if _, rest := diagnostics(b); len(rest) > 0 {
			shown := rest[:min(len(rest), diagnosticsShown)]
			if more := len(rest) - len(shown); more > 0 {
				shown = append(slices.Clone(shown), fmt.Sprintf("… and %d more", more))
			}
			blocks = append(blocks, paragraph{cell("What else the compiler said about the " + side(v, i) + ":")}, listing{strings.Join(shown, "\n")})
		}
	}
	if rows := buildRows(v); rows != nil {
		blocks = append(blocks, sidesTable(rows))
	}
	return blocks
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

// diagnostics is what the compiler said of a build that failed: the first errors, or
// warnings where there is no error, and the rest. Warnings must not crowd errors out.
func diagnostics(b gates.Build) (first, rest []string) {
	if b.OK {
		return nil, nil
	}
	var errors, others []string
	for _, d := range b.Diagnostics {
		if strings.Contains(strings.ToLower(d.Severity), "error") {
			errors = append(errors, diagnostic(d))
		} else {
			others = append(others, diagnostic(d))
		}
	}
	all, n := append(errors, others...), min(cmp.Or(len(errors), len(others)), errorsShown)
	return all[:n], all[n:]
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
	return Clip(Plain(b.String()), diagnosticRunes)
}

// Clip ends a text that is too long with an ellipsis, after a word where one
// ends nearby.
func Clip(s string, runes int) string {
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
