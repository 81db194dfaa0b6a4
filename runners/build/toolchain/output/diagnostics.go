package output

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

// A diagnosticFormat is one way to print a complaint. Its groups are named after the fields of Diagnostic.
type diagnosticFormat struct {
	line   *regexp.Regexp
	groups []string
}

func newDiagnosticFormat(line string) diagnosticFormat {
	re := regexp.MustCompile(line)
	return diagnosticFormat{re, re.SubexpNames()}
}

// A file name never starts with a blank: lines that do are the source that compilers echo.
var diagnosticFormats = []diagnosticFormat{
	// k.cu(12): warning #177-D: variable "x" was declared but never referenced
	newDiagnosticFormat(`^(?P<file>\S[^()]*)\((?P<line>\d+)\): (?P<severity>catastrophic error|internal error|error|warning|remark|note)(?: (?P<code>#?\d+(?:-D)?))?: (?P<message>.*)$`),
	// f.c:3:5: warning: unused variable ‘x’ [-Wunused-variable]
	newDiagnosticFormat(`^(?P<file>\S[^:]*):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<severity>fatal error|error|warning|remark|note): (?P<message>.*?)(?: \[(?P<code>-[^\]]+)\])?$`),
	// /tmp/ccJpNamM.s:21: Error: no such instruction: `bogus %eax' (the assembler; its input has a name by chance)
	newDiagnosticFormat(`^\S[^:]*\.s:\d+: (?P<severity>Fatal error|Error|Warning): (?P<message>.*)$`),
	// /usr/bin/ld: kernel.o:(.text+0x8): undefined reference to `nothing'
	newDiagnosticFormat(`^\S.*: (?P<message>undefined reference to .*)$`),
	// ptxas /tmp/k.ptx, line 28; error   : Unknown symbol 'x'
	newDiagnosticFormat(`^(?P<tool>ptxas) (?P<file>\S.*), line (?P<line>\d+); (?P<severity>fatal|error|warning)\s*: (?P<message>.*)$`),
	// ptxas info    : (C7511) Potential Performance Loss: …
	newDiagnosticFormat(`^(?P<tool>ptxas) (?P<severity>info)\s*: \((?P<code>C\d+)\) (?P<message>.*)$`),
	// ptxas fatal   : Ptx assembly aborted due to errors
	newDiagnosticFormat(`^(?P<tool>ptxas|nvcc|nvlink|fatbinary|cudafe\+\+|cicc) (?P<severity>fatal|error|warning)\s*: (?:\((?P<code>C\d+)\) )?(?P<message>.*)$`),
	// gcc: error: unrecognized command-line option ‘-fx’
	newDiagnosticFormat(`^(?P<tool>[\w./+-]+): (?P<severity>fatal error|error|warning): (?P<message>.*?)(?: \[(?P<code>-[^\]]+)\])?$`),
}

// ParseDiagnostics finds the complaints of nvcc, ptxas, nvlink, gcc and clang in a build log, in their order. Of a complaint of
// several lines it keeps the first; the echoed source and "detected during" are left to the log itself. A log
// quotes the source, so what this returns is for people to read, not proof of anything.
func ParseDiagnostics(log string) []gates.Diagnostic {
	var found []gates.Diagnostic
	for line := range strings.Lines(log) {
		line = strings.TrimRight(line, "\r\n")
		for _, format := range diagnosticFormats {
			if d, ok := format.parse(line); ok {
				found = append(found, d)
				break
			}
		}
	}
	return found
}

func (f diagnosticFormat) parse(line string) (gates.Diagnostic, bool) {
	m := f.line.FindStringSubmatch(line)
	if m == nil {
		return gates.Diagnostic{}, false
	}
	d := gates.Diagnostic{Severity: "error"} // where a tool prints nothing else
	for i, group := range f.groups {
		var err error
		switch group {
		case "tool":
			d.Tool = m[i]
		case "file":
			d.File = m[i]
		case "line":
			d.Line, err = strconv.Atoi(m[i])
		case "column":
			if m[i] != "" {
				d.Column, err = strconv.Atoi(m[i])
			}
		case "severity":
			d.Severity = severity(m[i])
		case "message":
			d.Message = m[i]
		case "code":
			d.Code = m[i]
		}
		if err != nil {
			return gates.Diagnostic{}, false
		}
	}
	return d, true
}

// severity maps the tools' words to the four that a Diagnostic has.
func severity(printed string) string {
	switch printed = strings.ToLower(printed); printed {
	case "catastrophic error", "internal error", "fatal error", "fatal":
		return "error"
	case "info":
		return "remark"
	default:
		return printed
	}
}
