package doctor

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// A Form says how to format the text for its destination.
type Form struct {
	Width  int  // columns
	Colour bool // colour the marks
}

var marks = map[Status]struct{ glyph, colour string }{OK: {"✓", "32"}, Warn: {"!", "33"}, Missing: {"✗", "31"}}

func (f Form) mark(s Status) string {
	m := marks[s]
	if !f.Colour {
		return m.glyph
	}
	return "\x1b[" + m.colour + "m" + m.glyph + "\x1b[39m"
}

// narrow is the width below which there is no room for a column of names.
const narrow = 60

// Text lists the findings for a terminal, with each remedy below its finding, and ends with what
// the host can do.
func Text(findings []Finding, form Form) string {
	names := 0
	for _, f := range findings {
		names = max(names, utf8.RuneCountInString(f.Name))
	}
	var b strings.Builder
	for _, f := range findings {
		lead, hang := fmt.Sprintf(" %s%s  ", f.Name, strings.Repeat(" ", names-utf8.RuneCountInString(f.Name))), names+4
		if form.Width < narrow {
			lead, hang = " "+f.Name+": ", 2
		}
		hanging(&b, form.mark(f.Status), lead, f.Detail, hang, form.Width)
		if f.Remedy != "" {
			hanging(&b, "", "    ", f.Remedy, 4, form.Width)
		}
	}
	b.WriteByte('\n')
	b.WriteString(form.mark(worst(findings)) + " " + Summary(findings) + "\n")
	return b.String()
}

// hanging writes text after a lead and wraps it between words. A word that is too long for its
// column stays whole, because people copy paths and digests. The mark is one column wide, whatever
// its colour.
func hanging(b *strings.Builder, mark, lead, text string, indent, width int) {
	b.WriteString(mark + lead)
	used := utf8.RuneCountInString(lead)
	if mark != "" {
		used++
	}
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+n > width:
			if used = indent; used+n > width { // a digest does not fit next to the names
				used = min(indent, 4)
			}
			b.WriteString("\n" + strings.Repeat(" ", used))
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += n
	}
	b.WriteByte('\n')
}

// Summary returns all findings in one line, which fits 80 columns.
func Summary(findings []Finding) string {
	count := map[Status]int{}
	for _, f := range findings {
		count[f.Status]++
	}
	return fmt.Sprintf("doctor: %d ok, %s, %s: %s", count[OK], plural(count[Warn], "warning"), plural(count[Missing], "failure"), ability(findings))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func worst(findings []Finding) Status {
	for _, s := range []Status{Missing, Warn} {
		if slices.ContainsFunc(findings, func(f Finding) bool { return f.Status == s }) {
			return s
		}
	}
	return OK
}

// The findings that decide which kernels the host can run.
const (
	gpuName    = "NVIDIA GPU"
	cudaName   = "CUDA compiler"
	tritonName = "Triton"
)

// ability says which kernels the host can run. Every mode needs the findings that precede the
// GPU's.
func ability(findings []Finding) string {
	gpu := slices.IndexFunc(findings, func(f Finding) bool { return f.Name == gpuName })
	if gpu < 0 || slices.ContainsFunc(findings[:gpu], func(f Finding) bool { return f.Status == Missing }) {
		return "cannot run kernels yet"
	}
	compiles := slices.ContainsFunc(findings, func(f Finding) bool {
		return f.Status == OK && (f.Name == cudaName || f.Name == tritonName)
	})
	host, device := runners.ModeOn(gates.DeviceCPU).Mode, runners.ModeOn(gates.DeviceGPU).Mode
	switch {
	case compiles && findings[gpu].Status == OK:
		return fmt.Sprintf("can run %s and %s kernels", host, device)
	case compiles:
		return fmt.Sprintf("can run %s and compile %s kernels", host, device)
	}
	return fmt.Sprintf("can run %s kernels", host)
}
