package present

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/gates"
)

// What matters least goes first, and the reader is told.
func TestShortening(t *testing.T) {
	pass, slow := judge(t, "stage1", nil), judge(t, "stage3a", nil)
	const (
		commands = "<details><summary>Commands ("
		attempts = "<details><summary>Earlier attempts ("
		side     = "<details><summary>Extra measurements ("
		passed   = "<details><summary>✅ kernel"
		deferred = "<details><summary>❌ kernel"
	)
	for _, c := range []struct {
		name           string
		passes, defers int
		there, gone    []string
		says           string
	}{
		{"all fits", 1, 1, []string{commands, attempts, side, passed, deferred}, nil, ""},
		{"the history goes", 4, 4, []string{passed, deferred}, []string{commands, attempts, "ℹ️ For information"}, "Left out, because the comment would be too long: the commands, the earlier attempts, reports for information"},
		{"reports of what passed go", 6, 4, []string{deferred}, []string{commands, side, passed + "5<"}, "reports of kernels that passed"},
		{"reports of what failed are shortened", 0, 9, []string{deferred, "Shortened: see `report.md`"}, nil, "the commands"},
		{"many share the room", 3, 20, []string{"<summary>Tried before", deferred + "22<"}, []string{passed}, "reports of kernels that passed"},
		{"the table is cut after a row", 0, 160, []string{"… and ", " more kernels."}, nil, "reports of 120 kernels"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tell(t).seen(nil)
			var names []string
			for i := range c.passes + c.defers {
				names = append(names, fmt.Sprintf("kernel%d", i))
			}
			s.planned(nil, names...).push(sha2).planned(nil, names...)
			for i, name := range names {
				v := pass
				if i >= c.passes {
					v = slow
				}
				s.finished(name, v)
			}
			s.commanded("comment-1", "ada", "/rebench vs=self", true, change.Effect{ExtraRuns: []change.ExtraRun{{Folder: "kernels/" + names[0], Rebench: grammar.Rebench{Versus: grammar.Self}}}})
			s.finishedJob(s.state.ExtraRuns[0].Job, names[0], pass)
			s.view.Tried["kernels/"+names[0]] = []change.Tried{{Number: 3, Title: "Once", Outcome: gates.Defer, Line: "slow", At: s.at}}
			text := Comment(s.view)
			if len(text) > maxComment || !strings.HasPrefix(text, Marker(s.state.ID)+"\n") || !strings.HasSuffix(text, "for all commands.\n") {
				t.Errorf("%d bytes, from %.40q to %.40q", len(text), text, text[len(text)-40:])
			}
			for _, there := range append(c.there, c.says) {
				if !strings.Contains(text, there) {
					t.Errorf("%q is left out", there)
				}
			}
			for _, gone := range c.gone {
				if strings.Contains(text, gone) {
					t.Errorf("%q is still there", gone)
				}
			}
			if (c.says != "") != strings.Contains(text, "Left out") {
				t.Error("it does not say the truth about what was left out")
			}
			checkInert(t, strings.TrimPrefix(text, Marker(s.state.ID)))
		})
	}
}

// Reports that fill their share even at the least go one by one, from the last.
func TestReportsGoLast(t *testing.T) {
	c := &composition{always: "top\n", tried: "tried\n", foot: "foot\n"}
	for i := range maxReports {
		c.reports = append(c.reports, &folded{title: fmt.Sprintf("report %d", i), text: func(limit int) string { return strings.Repeat("x", limit-1) + "\n" }, now: strings.Repeat("y", 5000)})
	}
	text := c.text()
	if len(text) > maxComment || len(text) < maxComment-2*leastReport {
		t.Errorf("%d bytes", len(text))
	}
	for part, there := range map[string]bool{"top": true, "tried": true, "report 0<": true, "report 39<": false, "foot": true, "reports of kernels that did not pass.": true, "yyy": false} {
		if strings.Contains(text, part) != there {
			t.Errorf("%q there: %v", part, !there)
		}
	}
}
