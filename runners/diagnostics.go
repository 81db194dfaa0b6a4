package runners

import (
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/toolchain"
)

// Diagnostics is a compiler's messages as evidence.
func Diagnostics(from []toolchain.Diagnostic) []gates.Diagnostic {
	var to []gates.Diagnostic
	for _, d := range from {
		severity := d.Severity
		if severity == "fatal" {
			severity = "error"
		}
		to = append(to, gates.Diagnostic{File: d.File, Line: d.Line, Column: d.Column, Severity: severity, Message: d.Message})
	}
	return to
}
