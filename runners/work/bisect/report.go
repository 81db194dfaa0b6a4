package bisect

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// A Report is the result of a search in a repository.
type Report struct {
	Kernel  string            `json:"kernel"`
	Good    checkout.Commit   `json:"good"`
	Commits []checkout.Commit `json:"commits"` // after the good one, oldest first; the last is the bad one
	Shapes  []string          `json:"shapes"`  // the timed shapes
	Device  gates.Device      `json:"device"`
	Result  *Result           `json:"result"`
	Seconds float64           `json:"seconds"` // of measuring
}

// Text is the report for a terminal.
func (r *Report) Text(err error) string {
	var b strings.Builder
	name := func(i int) string {
		if i < 0 {
			return r.Good.Subject
		}
		return fmt.Sprintf("%.12s %s", r.Commits[i].SHA, r.Commits[i].Subject)
	}
	switch last := r.Result.Steps[len(r.Result.Steps)-1]; {
	case err != nil && last.SameAs != nil:
		fmt.Fprintf(&b, "Nothing to find: %s has the same machine code at both ends.\n", r.Kernel)
	case err != nil:
		fmt.Fprintf(&b, "Nothing to find: %s is not proven to be slower than at %s: %s.\n", r.Kernel, r.Good.Subject, speed(last))
	case len(r.Result.Between()) > 0:
		fmt.Fprintf(&b, "%s became %s after %s and not later than %s. The commits between the two cannot be judged.\n", r.Kernel, r.Result.Kind, name(r.Result.Last), name(r.Result.First))
	default:
		fmt.Fprintf(&b, "%s became %s with %s\n", r.Kernel, r.Result.Kind, name(r.Result.First))
	}
	if err == nil {
		r.certainty(&b)
	}
	b.WriteString("\n")
	r.table(&b)
	return b.String()
}

// certainty says how sure the answer is.
func (r *Report) certainty(b *strings.Builder) {
	switch {
	case r.Result.Kind == Wrong:
		fmt.Fprintf(b, "All commits ran the same cases. An error that appears in few cases may be older than this commit.\n")
	case r.Result.Unsure():
		fmt.Fprintf(b, "This is not proven: the rounds of a commit marked with ? prove neither good nor bad. More rounds may prove it.\n")
	default:
		fmt.Fprintf(b, "Probability that this is wrong: at most %.3g %%. Timed on %s: %s.\n", 100*r.Result.Delta, r.Device.Name, strings.Join(r.Shapes, ", "))
	}
}

// table lists the commits that were looked at, oldest first.
func (r *Report) table(b *strings.Builder) {
	steps := sorted(r.Result.Steps)
	rows := [][]string{{"commit", "state", "speedup", "rounds", "subject"}}
	for _, s := range steps {
		c := r.Commits[s.Commit]
		state, rounds := string(s.State), ""
		if s.Unsure {
			state += " ?"
		}
		if s.Rounds > 0 {
			rounds = fmt.Sprint(s.Rounds)
		}
		rows = append(rows, []string{fmt.Sprintf("%.12s", c.SHA), state, r.speedOf(s), rounds, c.Subject})
	}
	for _, line := range report.Aligned(rows) {
		b.WriteString(line + "\n")
	}
	for _, s := range steps {
		if s.Why != "" {
			fmt.Fprintf(b, "%.12s: %s\n", r.Commits[s.Commit].SHA, s.Why)
		}
	}
}

func (r *Report) speedOf(s Step) string {
	switch {
	case s.Rounds > 0:
		return speed(s)
	case s.SameAs != nil && *s.SameAs < 0:
		return "code of " + r.Good.Subject
	case s.SameAs != nil:
		return fmt.Sprintf("code of %.12s", r.Commits[*s.SameAs].SHA)
	}
	return ""
}
