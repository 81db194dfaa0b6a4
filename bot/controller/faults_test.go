package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/internal/long"
)

// An expectation is how a pull request must look when all is done.
type expectation struct {
	pr         *embedded.PR
	conclusion string
	commands   []embedded.Comment // each is answered once
}

// right holds GitHub against what is expected: one sticky comment that says what
// the check says, one reply a command, one newest check of each name with the
// right conclusion, and nothing left in progress.
func (w *world) right(all []expectation) error {
	for _, e := range all {
		head := e.pr.HeadSHA()
		at := fmt.Sprintf("#%d at %.8s", e.pr.Number(), head)
		c, ok := w.repo.Check(head, "kernelgate")
		if !ok || c.Status != "completed" || c.Conclusion != e.conclusion {
			return fmt.Errorf("%s: the check is %s %s (%s), want %s", at, c.Status, c.Conclusion, c.Title, e.conclusion)
		}
		newest := map[string]embedded.Check{}
		for _, c := range w.repo.Checks(head) {
			newest[c.Name] = c
		}
		for name, c := range newest {
			if c.Status != "completed" {
				return fmt.Errorf("%s: %s was left %s", at, name, c.Status)
			}
		}
		sticky, replies := 0, map[string]int{}
		for _, c := range e.pr.Comments() {
			if !strings.HasPrefix(c.Author, "kernelgate") {
				continue
			}
			marker, _, _ := strings.Cut(c.Body, "\n")
			if strings.Contains(marker, "reply:") {
				replies[marker]++
				continue
			}
			sticky++
			word := map[string]string{"success": "PASS", "failure": "DEFER"}[e.conclusion]
			if !strings.Contains(strings.SplitN(c.Body, "\n", 3)[1], word) {
				return fmt.Errorf("%s: the comment says %q, want %s", at, strings.SplitN(c.Body, "\n", 3)[1], word)
			}
		}
		if sticky != 1 {
			return fmt.Errorf("%s: %d sticky comments", at, sticky)
		}
		for _, asked := range e.commands {
			marker := fmt.Sprintf("<!-- kernelgate:reply:comment-%d -->", asked.ID)
			if replies[marker] != 1 {
				return fmt.Errorf("%s: %d replies to %q", at, replies[marker], asked.Body)
			}
		}
		if len(replies) != len(e.commands) {
			return fmt.Errorf("%s: %d replies to %d commands", at, len(replies), len(e.commands))
		}
	}
	return nil
}

// rightInTheEnd waits until everything is as expected, and tells what is not.
func (w *world) rightInTheEnd(all []expectation) {
	w.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := w.right(all)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			w.Fatal(err)
		}
	}
}

// crowd opens pull requests of both kinds to a branch, pushes to some and comments on others.
func (w *world) crowd(n int, base string) []expectation {
	w.Helper()
	var all []expectation
	for i := range n {
		e := expectation{conclusion: "success"}
		branch := fmt.Sprintf("crowd-%d-%d", i, len(w.repo.PRs()))
		source := fmt.Sprintf("// speed 1.3%d\n// %s\n", i, branch) // each has a machine code of its own
		if i%3 == 1 {
			e.conclusion, source = "failure", fmt.Sprintf("// speed 1.0%d\n// %s\n", i, branch)
		}
		e.pr = w.propose(branch, source, embedded.PROptions{Title: branch, Base: base})
		switch i % 4 {
		case 1:
			_, err := w.repo.Push(branch, map[string]string{"kernels/scale/scale.c": source + "// again\n"}, "again")
			w.no(err)
		case 2:
			e.commands = append(e.commands, w.comment(e.pr, "rita", "/rebench"), w.comment(e.pr, "walt", "/explain"))
		case 3:
			e.commands = append(e.commands, w.comment(e.pr, "walt", "/rebench rounds=2"))
		}
		all = append(all, e)
	}
	return all
}

// With three calls in ten failing in every way that GitHub knows, the end is the
// same: nothing is lost and nothing is said twice.
func TestFaults(t *testing.T) {
	long.Test(t)
	w := newWorld(t, worldOptions{watchful: true})
	w.hub.SetFaults(embedded.Faults{Rate: 0.3, Seed: 11})
	all := w.crowd(6, "main")
	w.rightInTheEnd(all)
	w.hub.SetFaults(embedded.Faults{})
	w.settle()
	if err := w.right(all); err != nil {
		t.Error(err)
	}
}

// Webhooks that fail, vanish, come twice and out of order change nothing either:
// the bot asks for what failed and looks for what it was never told.
func TestUnrulyDeliveries(t *testing.T) {
	w := newWorld(t, worldOptions{watchful: true})
	w.hub.SetDelivery(embedded.Unruly{Fail: 0.2, Vanish: 0.1, Duplicate: 0.3, Shuffle: true})
	var all []expectation
	for _, e := range w.crowd(6, "main") {
		e.commands = nil // a comment whose webhook vanished is nobody's fault
		all = append(all, e)
	}
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for done := false; !done; {
		done = true
		for _, e := range all {
			c, _ := w.repo.Check(e.pr.HeadSHA(), "kernelgate")
			done = done && c.Conclusion == e.conclusion
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(w.right(all))
		}
	}
	for _, e := range all {
		sticky := 0
		for _, c := range e.pr.Comments() {
			if strings.HasPrefix(c.Author, "kernelgate") && !strings.Contains(c.Body[:40], "reply") {
				sticky++
			}
		}
		if sticky > 1 {
			t.Errorf("#%d has %d sticky comments", e.pr.Number(), sticky)
		}
	}
}
