package inspect

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

// computePrefix begins every line of compute-sanitizer, for every tool.
const computePrefix = "========="

var (
	invalidAccess = regexp.MustCompile(`^Invalid __(\w+)__ (\w+) of size ([\d,]+)`)
	uninitialised = regexp.MustCompile(`^Uninitialized (?:__(\w+)__ )?memory read of size ([\d,]+)`)
	raceReported  = regexp.MustCompile(`^(?:(\w+): )?Race reported between (.*)$`)
	// With --racecheck-report hazard or all; the default groups them.
	hazardDetected = regexp.MustCompile(`^(?:(\w+): )?Potential \w+ hazard detected`)
	hazardThread   = regexp.MustCompile(`^(\w+) Thread \([\d,]+\) at (.+)$`)
	barrierError   = regexp.MustCompile(`^Barrier error detected\. (.+)$`)
	leaked         = regexp.MustCompile(`^Leaked ([\d,]+) bytes`)
	programHit     = regexp.MustCompile(`^Program hit (.+)$`)

	errorSummary = regexp.MustCompile(`^ERROR SUMMARY: ([\d,]+) errors?\b(.*)$`)
	raceSummary  = regexp.MustCompile(`^RACECHECK SUMMARY: ([\d,]+) hazards? displayed \(([\d,]+) errors?, ([\d,]+) warnings?\)`)

	// The tool could not work. "Error:" before a race is a severity, not such a failure.
	toolTrouble = regexp.MustCompile(`^(?:Internal Sanitizer Error: .+|(?:Error|Fatal): .+|Target application .+|.*[Dd]evice not supported.*|.*[Nn]o attachable process.*)$`)

	// sum(int *)+0x60 in race.cu:28;   0x170 in ./race.cu:4:sum(int*);   sum+0xb0
	placeNew = regexp.MustCompile(`^(.+?)(?:\+0x[0-9a-f]+)?(?: in (\S.*):(\d+))?$`)
	placeOld = regexp.MustCompile(`^0x[0-9a-f]+ in (?:(\S+?):(\d+):)?(.+)$`)
	// and Read access at sum(int *)+0x100 in race.cu:33 [508 hazards]
	accessAt = regexp.MustCompile(`\b(Read|Write|Atomic|Async[\w ]*|[A-Z]\w+) access at `)
	hazards  = regexp.MustCompile(`\s*\[([\d,]+) hazards?\]\s*$`)
)

// parseCompute parses the log of one tool of compute-sanitizer.
func parseCompute(text string, files Files) Report {
	p := computeParser{files: files}
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), computePrefix)
		if ok {
			p.line(strings.TrimSpace(rest))
		}
	}
	p.end()
	p.settle()
	return p.report
}

// A computeParser collects the lines of one record until the next begins.
type computeParser struct {
	files  Files
	report Report
	head   string   // the record's first line; empty between records
	body   []string // the lines after it
	total  int      // errors according to the summary
}

// continuation matches lines that belong to the preceding record.
var continuation = regexp.MustCompile(`^(?:at |and |by |Access |Address |Device Frame|Saved |Host Frame|\w+ Thread \(|Current Value|Incoming Value|\[|0x)`)

func (p *computeParser) line(line string) {
	if line == "" {
		p.end()
		return
	}
	if p.head != "" && (continuation.MatchString(line) || strings.HasSuffix(p.head, " at") || len(p.body) > 0 && strings.HasSuffix(p.body[len(p.body)-1], " at")) {
		if len(p.body) < 1000 {
			p.body = append(p.body, line)
		}
		return
	}
	p.end()
	if m := raceSummary.FindStringSubmatch(line); m != nil {
		p.report.Finished = true
		p.total += number(m[2]) + number(m[3])
		return
	}
	if m := errorSummary.FindStringSubmatch(line); m != nil {
		// A second line with this name says how many errors were not printed.
		if !strings.Contains(m[2], "not printed") {
			p.report.Finished = true
			p.total += number(m[1])
		}
		return
	}
	p.head = line
}

// end turns the record that is being read into a finding.
func (p *computeParser) end() {
	head, body := p.head, p.body
	p.head, p.body = "", nil
	switch {
	case head == "":
	case invalidAccess.MatchString(head):
		m := invalidAccess.FindStringSubmatch(head)
		kind, what := gates.KindOutOfBounds, "an out-of-bounds "
		if strings.Contains(strings.Join(body, " "), "misaligned") {
			kind, what = gates.KindMisaligned, "a misaligned "
		}
		p.add(kind, what+fmt.Sprintf("%s of %s of %s memory", strings.ToLower(m[2]), sizeWords(m[3]), m[1]), body)
	case uninitialised.MatchString(head):
		m := uninitialised.FindStringSubmatch(head)
		p.add(gates.KindUninitialised, fmt.Sprintf("a read of %s of %s memory that nobody wrote", sizeWords(m[2]), cmp.Or(m[1], "global")), body)
	case raceReported.MatchString(head):
		m := raceReported.FindStringSubmatch(head)
		p.race(strings.ToLower(m[1]), strings.Join(append([]string{m[2]}, body...), " "))
	case barrierError.MatchString(head):
		p.add(gates.KindBarrier, barrierWords(barrierError.FindStringSubmatch(head)[1]), body)
	case leaked.MatchString(head):
		p.add(gates.KindLeak, leaked.FindStringSubmatch(head)[1]+" bytes that are never freed", nil)
	case hazardDetected.MatchString(head):
		p.hazard(strings.ToLower(hazardDetected.FindStringSubmatch(head)[1]), body)
	// This is an echo of an earlier finding, or a fault of the host program.
	case programHit.MatchString(head):
		p.total--
	case toolTrouble.MatchString(head):
		if p.report.Trouble == "" {
			p.report.Trouble = bounded(head)
		}
	case len(body) > 0 && strings.HasPrefix(body[0], "at "): // a fault of the device, by any name
		p.add(gates.KindOther, head, body)
	}
}

func barrierWords(words string) string {
	words = strings.TrimRight(strings.TrimSpace(words), ".")
	if where, ok := strings.CutPrefix(words, "Divergent thread(s) in "); ok {
		return "a barrier that not all threads of the " + where + " reach"
	}
	return "a wrong use of a barrier: " + words
}

// add adds a finding at the place that the record's body names: the innermost frame in the kernel's
// files.
func (p *computeParser) add(kind gates.FindingKind, text string, body []string) {
	var frames []frame
	for _, line := range body {
		place, ok := strings.CutPrefix(line, "at ")
		if !ok {
			place, ok = strings.CutPrefix(line, "Device Frame:")
		}
		if ok {
			frames = append(frames, parsePlace(place))
		}
	}
	where := p.files.blame(frames)
	p.report.add(gates.Finding{Kind: kind, Text: text, Kernel: functionName(where.function), File: where.file, Line: where.line})
}

// severityOf translates the tool's severity. An error has none.
func severityOf(word string) string {
	switch word {
	case "warn", "warning":
		return "warning"
	case "info":
		return "info"
	}
	return ""
}

// hazard handles one pair of accesses to one byte.
func (p *computeParser) hazard(severity string, body []string) {
	var both []access
	for _, line := range body {
		if m := hazardThread.FindStringSubmatch(line); m != nil {
			both = append(both, access{strings.ToLower(m[1]), p.files.blame([]frame{parsePlace(m[2])})})
		}
	}
	f := gates.Finding{Kind: gates.KindRace, Text: "a race of accesses to shared memory"}
	if len(both) > 1 {
		f = raceOf(both[0], both[1], " of shared memory")
	}
	f.Kernel, f.Severity = functionName(f.Kernel), severityOf(severity)
	p.report.add(f)
}

// race handles one access and those that it conflicts with.
func (p *computeParser) race(severity, text string) {
	severity = severityOf(severity)
	marks := accessAt.FindAllStringSubmatchIndex(text, -1)
	var all []access
	var counts []int
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		place := strings.TrimSuffix(strings.TrimSpace(text[m[1]:end]), " and")
		count := 1
		if h := hazards.FindStringSubmatch(place); h != nil {
			count, place = number(h[1]), place[:len(place)-len(h[0])]
		}
		all = append(all, access{strings.ToLower(text[m[2]:m[3]]), p.files.blame([]frame{parsePlace(place)})})
		counts = append(counts, count)
	}
	if len(all) == 0 {
		p.report.add(gates.Finding{Kind: gates.KindRace, Text: "a race of accesses to shared memory", Severity: severity})
		return
	}
	first := all[0]
	if len(all) == 1 {
		all, counts = append(all, first), append(counts, counts[0])
	}
	for i := range all[1:] {
		f := raceOf(first, all[i+1], " of shared memory")
		f.Kernel, f.Severity, f.Count = functionName(f.Kernel), severity, counts[i+1]
		p.report.add(f)
	}
}

// settle compares the findings with the tool's own count. Errors that the tool counted but did not
// print, or that this parser did not understand, are findings too.
func (p *computeParser) settle() {
	p.total = max(p.total, 0)
	p.report.Errors = p.total
	printed, races := 0, false
	for _, f := range p.report.Findings {
		printed += f.Count
		races = races || f.Kind == gates.KindRace // races are counted in hazards
	}
	switch {
	case p.total == 0 || races:
	case len(p.report.Findings) == 0:
		p.report.add(gates.Finding{Kind: gates.KindOther, Text: "faults that the tool counted and did not describe", Count: p.total})
	case len(p.report.Findings) == 1:
		p.report.Findings[0].Count = max(printed, p.total)
	default:
		// It is unknown which findings were not printed, or whether there are different ones.
		p.report.Hidden += max(p.total-printed, 0)
	}
}

func parsePlace(text string) frame {
	text = strings.TrimSpace(text)
	if m := placeOld.FindStringSubmatch(text); m != nil {
		return frame{m[3], m[1], number(m[2])}
	}
	if m := placeNew.FindStringSubmatch(text); m != nil {
		return frame{m[1], m[2], number(m[3])}
	}
	return frame{function: text}
}

// functionName removes parameters: sum(int *, int *) becomes sum.
func functionName(text string) string {
	name, _, _ := strings.Cut(text, "(")
	if strings.TrimSpace(name) == "" {
		return text
	}
	return strings.TrimSpace(name)
}

// number parses 6144 and 6,144. It returns 0 for text that is not a number, and caps implausibly
// large ones.
func number(text string) int {
	n, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	if err != nil || n < 0 {
		return 0
	}
	return min(n, 1<<40)
}
