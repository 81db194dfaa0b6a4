package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// journalFigures is what the journal holds in the end.
type journalFigures struct {
	events, verdicts          int
	deliveries, failed, never int // webhooks: sent, not accepted, never accepted
}

// readJournal checks that the journal is complete and well formed: every webhook that was answered with 202 is there and was
// handled, every job was judged once, and no job is left.
func (s *soak) readJournal() (f journalFigures) {
	s.Helper()
	j, err := journal.Open(s.ctx, journal.Options{URL: s.nats.URLs})
	if err != nil {
		s.fail("the journal: %v", err)
		return f
	}
	defer j.Close()
	if at, err := j.Unhandled(s.ctx); err != nil || !at.IsZero() {
		s.fail("a webhook of %v was not handled: %v", at, err)
	}
	if dead, err := j.Dead(s.ctx); err != nil || len(dead) > 0 {
		s.fail("deliveries were given up: %+v, %v", dead, err)
	}
	delivered := map[string]bool{}
	all := s.app.Hook().Deliveries()
	for _, d := range all {
		f.deliveries++
		if d.StatusCode/100 != 2 {
			f.failed++
			continue
		}
		delivered[d.GUID] = true
		if d.Event != "pull_request" {
			continue
		}
		if has, err := j.Accepted(s.ctx, d.Event, d.GUID); err != nil || !has {
			s.fail("the webhook %s (%s %s) was answered with %d and is not in the journal: %v", d.GUID, d.Event, d.Action, d.StatusCode, err)
		}
	}
	for _, d := range all {
		if delivered[d.GUID] || d.Event != "pull_request" && (d.Event != "issue_comment" || d.Action != "created") {
			continue
		}
		delivered[d.GUID] = true // once is enough
		// If the answer came too late, the webhook is stored although GitHub calls it failed.
		if has, err := j.Accepted(s.ctx, d.Event, d.GUID); err != nil || !has {
			f.never++
			s.Logf("the webhook %s (%s %s) of %s never arrived: %v", d.GUID, d.Event, d.Action, d.At.Format(time.TimeOnly), err)
		}
	}
	judged, last := map[string]int{}, uint64(0)
	if _, err := j.Replay(s.ctx, 0, func(e journal.Event) error {
		f.events++
		if e.Seq != last+1 {
			s.fail("event %d follows event %d", e.Seq, last)
		}
		last = e.Seq
		if !json.Valid(e.Data) || e.Kind == "" || e.At.IsZero() {
			s.fail("event %d (%s of %s) is malformed: %q", e.Seq, e.Kind, e.Run, e.Data)
		}
		if !strings.HasPrefix(e.Run, "pr-") {
			return nil
		}
		fact, err := change.DecodeFrom(e.Writer, e.Kind, e.Data)
		if err != nil {
			s.fail("event %d (%s of %s): %v", e.Seq, e.Kind, e.Run, err)
			return nil
		}
		if done, ok := fact.(change.Finished); ok {
			judged[done.Job]++
		}
		return nil
	}); err != nil {
		s.fail("reading the events: %v", err)
	}
	for job, n := range judged {
		if n != 1 {
			s.fail("%s was judged %d times", job, n)
		}
	}
	f.verdicts = len(judged)
	left := 0
	if err := j.EachJob(s.ctx, func(journal.StoredJob) error { left++; return nil }); err != nil || left > 0 {
		s.fail("%d jobs are left in the journal: %v", left, err)
	}
	return f
}

// logFigures counts the lines of all logs by level and message.
func (s *soak) logFigures() (lines int, counts map[string]int) {
	counts = map[string]int{}
	files, _ := filepath.Glob(filepath.Join(s.dir, "*.log")) // the pattern is right
	for _, name := range files {
		if filepath.Base(name) == "faults.log" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			s.fail("%v", err)
			continue
		}
		sc := bufio.NewScanner(bytes.NewReader(text))
		sc.Buffer(nil, 1<<24)
		for sc.Scan() {
			lines++
			var l struct{ Level, Msg string }
			if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
				if regexp.MustCompile(`^(panic|fatal error|WARNING: DATA RACE|SIG[A-Z]+):?`).MatchString(sc.Text()) {
					s.fail("%s: %s", name, sc.Text())
				}
				counts["not JSON: "+firstWords(sc.Text(), 12)]++
				continue
			}
			if l.Level == "WARN" || l.Level == "ERROR" {
				counts[l.Level+" "+filepath.Base(strings.TrimRight(strings.TrimSuffix(name, ".log"), "0123456789"))+": "+firstWords(l.Msg, 12)]++
			}
		}
	}
	return lines, counts
}

func firstWords(text string, n int) string {
	words := strings.Fields(text)
	if len(words) <= n {
		return strings.Join(words, " ")
	}
	return strings.Join(words[:n], " ") + " …"
}

type figures struct {
	ended   time.Duration
	watch   *soakWatch
	faults  *soakFaults
	journal journalFigures
	memory  []int64
}

// report prints the figures, and writes them into a document if that is asked for.
func (s *soak) report(f figures) {
	s.Helper()
	kinds, conclusions := map[string]int{}, map[string]int{}
	for _, p := range s.pullsNow() {
		kinds[p.kind]++
		switch {
		case p.merged:
			conclusions["merged"]++
		case p.want == "":
			conclusions["closed"]++
		default:
			conclusions[p.want]++
		}
	}
	delays := s.heads.delays()
	at := func(share float64) time.Duration {
		if len(delays) == 0 {
			return 0
		}
		return delays[min(len(delays)-1, int(share*float64(len(delays))))].Round(100 * time.Millisecond)
	}
	faults, n := f.faults.counts()
	longest, about := time.Duration(0), "never"
	for _, u := range f.watch.lies {
		if u.longest > longest {
			longest, about = u.longest, fmt.Sprintf("%s: %q", u.what, u.worst)
		}
	}
	var memory []string
	for i, b := range f.memory {
		memory = append(memory, fmt.Sprintf("%d MB (at most %.0f MB)", b>>20, f.watch.memory[i]/(1<<20)))
	}
	exits := 0
	for _, b := range s.bots {
		exits += b.exits
	}
	for _, r := range s.runners {
		exits += r.exits
	}
	lines, log := s.logFigures()
	rows := [][2]string{
		{"time", fmt.Sprintf("%v with faults, %v until everything was right for 10 s; seed %d", s.duration, f.ended.Round(time.Second), s.seed)},
		{"machine", fmt.Sprintf("%d cores, %s; three bots, three NATS servers, two runners and GitHub on it", runtime.NumCPU(), runtime.GOARCH)},
		{"pull requests", fmt.Sprintf("%d in %d accounts: %s", len(s.pullsNow()), len(s.repos), counted(kinds))},
		{"what they show", counted(conclusions)},
		{"faults", fmt.Sprintf("%d: %s", n, counted(faults))},
		{"processes killed or ended", fmt.Sprintf("%d faults killed a process; %d processes ended without having been asked", f.faults.kills, exits)},
		{"lost, doubled or wrong", fmt.Sprint(len(s.wrong))},
		{"push to verdict", fmt.Sprintf("median %v, 99 %% within %v, slowest %v (%d heads)", at(0.5), at(0.99), at(1), len(delays))},
		{"readiness", fmt.Sprintf("%d answers compared with the truth; untrue for %v at most (%s)", f.watch.asked, longest.Round(100*time.Millisecond), about)},
		{"green checks", fmt.Sprintf("%d writes, each on a commit that was allowed to pass", s.heads.judged)},
		{"webhooks", fmt.Sprintf("%d sent, %d of them not accepted at first; %d never arrived", f.journal.deliveries, f.journal.failed, f.journal.never)},
		{"journal", fmt.Sprintf("%d events, %d verdicts, one for each job; no job left", f.journal.events, f.journal.verdicts)},
		{"memory of the bots at the end", strings.Join(memory, ", ")},
	}
	for _, row := range rows {
		result(s.T, "%s: %s", row[0], row[1])
	}
	result(s.T, "log lines: %d; warnings and errors:", lines)
	for i, text := range sortedByCount(log) {
		if i == 10 {
			break
		}
		result(s.T, "  %6d %s", log[text], text)
	}
	if s.record != "" && !s.Failed() {
		s.write(rows)
	}
}

func counted(count map[string]int) string {
	var all []string
	for _, name := range sortedByCount(count) {
		all = append(all, fmt.Sprintf("%d %s", count[name], name))
	}
	return strings.Join(all, "; ")
}

// sortedByCount returns the keys of a map, the largest count first.
func sortedByCount(count map[string]int) []string {
	return slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return strings.Compare(a, b)
	})
}

// The place in a document that the figures replace.
const (
	soakBegin = "<!-- The figures of the last soak: make soak RECORD=yes writes them. -->\n"
	soakEnd   = "<!-- End of the generated part. -->\n"
)

func (s *soak) write(rows [][2]string) {
	s.Helper()
	text := string(slurp(s.T, s.record))
	before, rest, found := strings.Cut(text, soakBegin)
	_, after, closed := strings.Cut(rest, soakEnd)
	if !found || !closed {
		s.Fatalf("%s has no place for the figures: %q … %q", s.record, soakBegin, soakEnd)
	}
	var table strings.Builder
	table.WriteString("\n| | |\n| --- | --- |\n")
	for _, row := range rows {
		fmt.Fprintf(&table, "| %s | %s |\n", row[0], row[1])
	}
	table.WriteString("\n")
	put(s.T, []byte(before+soakBegin+table.String()+soakEnd+after), s.record)
}
