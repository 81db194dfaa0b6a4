package inspect

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

var (
	// ==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x… at pc …
	cHead = regexp.MustCompile(`^(?:==\d+==)?\s*(?:ERROR|WARNING): (Address|Thread|Memory|Leak)Sanitizer: (.+)$`)
	// READ of size 4 at 0x… thread T0;   Previous write of size 4 at 0x… by thread T1:
	cAccess = regexp.MustCompile(`^\s*(?i:(?:previous )?(?:atomic )?(read|write)) of size (\d+) at `)
	// #0 0x55… in sum /src/k.c:12:7;   #0 sum /src/k.c:12 (kernel+0x1234)
	cFrame = regexp.MustCompile(`^\s*#\d+ (?:0x[0-9a-f]+ in )?(.+?)(?: (\S+?):(\d+)(?::\d+)?)?(?: \([^()]*\))*$`)
	// k.c:7:15: runtime error: signed integer overflow: …
	cUndefined = regexp.MustCompile(`^(.+?):(\d+):(?:\d+:)? runtime error: (.+)$`)
	cFatal     = regexp.MustCompile(`^(?:==\d+==)?\s*(?:FATAL: \w+Sanitizer: .+|\w+Sanitizer (?:CHECK failed|failed to|can not).*|\w+Sanitizer: CHECK failed.*)$`)
	address    = regexp.MustCompile(`\b0x[0-9a-f]+\b ?`)
)

// ArgumentPrefix begins the name of the function that allocates the memory of an argument; the
// argument's name follows.
const ArgumentPrefix = "kernelgate_argument_"

// ParseC parses the output of the address, undefined-behaviour, thread and memory sanitizers of gcc
// and clang.
func ParseC(text string, files Files) Report {
	p := cParser{files: files}
	for line := range strings.Lines(text) {
		p.line(strings.TrimRight(line, "\r\n"))
	}
	p.end()
	return p.report
}

// A cParser holds the finding that is being read.
type cParser struct {
	files  Files
	report Report

	open     bool
	tool     string
	about    string // text of the first line
	size     string
	access   []string  // read or write: the access, and the other access of a race
	stacks   [][]frame // one for each access
	argument string    // the argument that the memory belongs to
	// reading means that frames belong to the last of stacks. Later frames say where the memory
	// came from.
	reading bool
}

func (p *cParser) line(line string) {
	if m := cHead.FindStringSubmatch(line); m != nil {
		p.end()
		p.open, p.tool, p.about = true, m[1], m[2]
		p.stacks, p.reading, p.access, p.size = [][]frame{nil}, true, nil, ""
		p.argument = ""
		return
	}
	if m := cUndefined.FindStringSubmatch(line); m != nil {
		p.end()
		p.undefined(m[1], m[2], m[3])
		return
	}
	if p.report.Trouble == "" && cFatal.MatchString(line) {
		p.report.Trouble = bounded(strings.TrimSpace(line))
	}
	if !p.open {
		return
	}
	if m := cAccess.FindStringSubmatch(line); m != nil {
		if p.access = append(p.access, strings.ToLower(m[1])); len(p.access) == 1 {
			p.size = m[2]
		} else {
			p.stacks, p.reading = append(p.stacks, nil), true
		}
		return
	}
	m := cFrame.FindStringSubmatch(line)
	switch {
	case m == nil && strings.TrimSpace(line) == "":
		p.reading = false
	case m != nil && !p.reading:
		if name, ok := strings.CutPrefix(m[1], ArgumentPrefix); ok && p.argument == "" {
			p.argument = name
		}
	case m != nil:
		last := len(p.stacks) - 1
		p.stacks[last] = append(p.stacks[last], frame{m[1], strings.TrimSpace(m[2]), number(m[3])})
	}
}

// end completes the finding that is being read.
func (p *cParser) end() {
	if !p.open {
		return
	}
	p.open = false
	where := p.files.blame(p.stacks[0])
	f := gates.Finding{File: where.file, Line: where.line, Kernel: where.function}
	f.Kind, f.Text = p.words()
	if f.Kind == gates.KindRace && len(p.stacks) > 1 {
		p.report.add(raceOf(access{p.access[0], where}, access{p.access[1], p.files.blame(p.stacks[1])}, ""))
		return
	}
	p.report.add(f)
}

// words returns a finding's kind, and a description in our words that includes the tool's name for
// it.
func (p *cParser) words() (kind gates.FindingKind, text string) {
	name, _, _ := strings.Cut(p.about, " ")
	access := "an access"
	if len(p.access) > 0 {
		access = fmt.Sprintf("a %s of %s", p.access[0], sizeWords(p.size))
	}
	switch {
	case p.tool == "Thread" && strings.HasPrefix(p.about, "data race"):
		return gates.KindRace, "a race"
	case p.tool == "Memory":
		return gates.KindUninitialised, "a use of memory that nobody wrote"
	case p.tool == "Leak":
		return gates.KindLeak, "memory that is never freed"
	case strings.HasSuffix(name, "-overflow") && name != "stack-overflow", strings.HasSuffix(name, "-underflow"):
		if p.argument != "" {
			return gates.KindOutOfBounds, access + " outside the argument " + p.argument
		}
		places := map[string]string{"heap": "an array on the heap", "stack": "an array on the stack", "global": "a global array", "dynamic": "an array on the stack"}
		first, _, _ := strings.Cut(name, "-")
		if place := places[first]; place != "" {
			return gates.KindOutOfBounds, access + " outside " + place
		}
		return gates.KindOutOfBounds, access + " outside an array (" + name + ")"
	case strings.Contains(name, "use-after"):
		return gates.KindUseAfterFree, access + " of memory that is gone (" + name + ")"
	case strings.HasPrefix(p.about, "SEGV") || strings.HasPrefix(p.about, "BUS"):
		return gates.KindOutOfBounds, "an access to an address that is not there (" + name + ")"
	}
	return gates.KindOther, cmp.Or(strings.TrimSpace(address.ReplaceAllString(p.about, "")), "a fault without a name")
}

func sizeWords(size string) string {
	if size == "1" {
		return "1 byte"
	}
	return size + " bytes"
}

// undefined handles one line of the undefined-behaviour sanitizer.
func (p *cParser) undefined(file, line, message string) {
	where := p.files.blame([]frame{{file: file, line: number(line)}})
	kind := gates.KindUndefined
	switch {
	case strings.Contains(message, "misaligned address"):
		kind = gates.KindMisaligned
	case strings.Contains(message, "out of bounds") || strings.Contains(message, "insufficient space"):
		kind = gates.KindOutOfBounds
	}
	p.report.add(gates.Finding{Kind: kind, Text: cmp.Or(strings.TrimSpace(address.ReplaceAllString(message, "")), "a fault without a name"), File: where.file, Line: where.line})
}

// A C is a sanitizer of the C compiler, with its compiler flags and its runtime options.
type C struct {
	checks string // for -fsanitize
	flags  []string
	goesOn bool // continues after a finding, so that it reports all of them
}

const (
	stops  = "-fno-sanitize-recover=all"
	goesOn = "-fsanitize-recover=all"
)

// GoingOn returns a sanitizer that reports every finding and every access after it, instead of
// ending the process at the first.
func (c C) GoingOn() C {
	c.goesOn, c.flags = true, slices.Clone(c.flags)
	if i := slices.Index(c.flags, stops); i >= 0 {
		c.flags[i] = goesOn
	}
	return c
}

// GoesOn reports whether a process under the sanitizer runs to its end in spite of findings.
func (c C) GoesOn() bool { return c.goesOn }

// FoundExit is the exit status of a process in which a sanitizer found something.
const FoundExit = 86

// ForC returns the compiler's sanitizer for a tool's name. version is the first line of the
// compiler's --version. gcc has nothing for initcheck, and synccheck has nothing to look for in a
// kernel with one thread.
func ForC(tool policy.Sanitizer, version string) (C, bool) {
	clang := strings.Contains(version, "clang")
	switch tool {
	case policy.Memcheck:
		return C{checks: "address,undefined", flags: []string{stops}}, true
	case policy.Racecheck:
		return C{checks: "thread"}, true
	case policy.Initcheck:
		return C{checks: "memory", flags: []string{"-fsanitize-memory-track-origins", stops}}, clang
	}
	return C{}, false
}

// Flag returns the flag by which people know the sanitizer.
func (c C) Flag() string { return "-fsanitize=" + c.checks }

// Flags returns the flags, which follow the kernel's own so that they win. They remove the macros
// by which code detects a sanitizer, and the attributes by which a function opts out: a kernel must
// not behave differently here by accident. Code that means to deceive a sanitizer within its own
// process can do so; no other gate relies on this one.
func (c C) Flags() []string {
	flags := []string{c.Flag(), "-g", "-fno-omit-frame-pointer", "-U__SANITIZE_ADDRESS__", "-U__SANITIZE_THREAD__", "-Dno_sanitize(...)=unused"}
	for _, name := range []string{"address", "thread", "undefined", "memory"} {
		flags = append(flags, "-Dno_sanitize_"+name+"=unused")
	}
	return append(flags, c.flags...)
}

// Env returns the sanitizers' settings. Leak detection is off because it needs ptrace, which a
// sandbox forbids. Every finding ends the process with a distinct status. Wide red zones also
// detect an access far beyond an array.
func (c C) Env() []string {
	all := fmt.Sprintf("exitcode=%d:color=never:print_summary=0:handle_abort=1:symbolize=1:log_path=stderr:halt_on_error=1", FoundExit)
	if c.goesOn {
		all = strings.Replace(all, "halt_on_error=1", "halt_on_error=0:suppress_equal_pcs=0", 1)
	}
	return []string{
		"ASAN_OPTIONS=" + all + ":detect_leaks=0:redzone=2048:max_redzone=2048:detect_stack_use_after_return=1:strict_string_checks=1",
		"UBSAN_OPTIONS=" + all + ":print_stacktrace=0",
		"TSAN_OPTIONS=" + all,
		"MSAN_OPTIONS=" + all,
	}
}
