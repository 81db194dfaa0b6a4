package controller_test

import (
	"strings"
	"testing"

	past "github.com/kernelgate/kernelgate/bot/archive"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/hindsight"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// The runs of a bot that is stopped can be judged again, each by the policy that it was judged by.
func TestArchive(t *testing.T) {
	w := newWorld(t, worldOptions{})
	slow := w.propose("slower", "// speed 1.02\n", embedded.PROptions{Title: "Slower"})
	w.concluded(slow.HeadSHA(), "failure")
	_, err := past.Open(w.ctx, w.dir)
	if err == nil || !strings.Contains(err.Error(), "stop the bot, or copy its data folder while it is stopped") {
		t.Errorf("the folder of a bot that runs: %v", err)
	}
	_, err = w.repo.Push("main", map[string]string{policyFile: strings.Replace(policyYAML, "+10%", "+50%", 1)}, "Ask for more")
	w.no(err)
	fast := w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Faster", Author: "mara"}) // a second machine code of one author would have to prove more
	w.concluded(fast.HeadSHA(), "failure")
	w.settle()
	w.no(w.running.stop())
	defer w.start()
	bot, err := past.Open(w.ctx, w.dir)
	w.no(err)
	defer func() { w.no(bot.Close()) }()
	if _, err := bot.Runs(w.ctx, "olga/other", 10); err == nil || !strings.Contains(err.Error(), `there are no runs of "olga/other" (there are runs of olga/kernels)`) {
		t.Errorf("another repository: %v", err)
	}
	rows, err := bot.Runs(w.ctx, "", 10)
	w.no(err)
	if len(rows) != 2 || rows[0].Head == rows[1].Head {
		t.Fatalf("%d runs: %+v", len(rows), rows)
	}
	mild, err := policy.Parse("mild.yaml", []byte(strings.Replace(policyYAML, "+10%", "+20%", 1)))
	w.no(err)
	for _, row := range rows {
		e, err := bot.Evidence(w.ctx, row)
		w.no(err)
		file, text, err := bot.Policy(w.ctx, row)
		w.no(err)
		old, err := policy.Parse(file, []byte(text))
		w.no(err)
		is := hindsight.Judge(hindsight.Policy{Policy: old, File: file}, hindsight.Policy{Policy: mild, File: "mild.yaml"}, row.Job, e)
		if is.Old.Outcome != row.Outcome || is.Old.Reason != row.Reason {
			t.Errorf("%s was %s (%s), and is %s by its own policy", row.Job, row.Outcome, row.Reason, is.Old)
		}
		if row.Head == fast.HeadSHA() && (!strings.Contains(text, "+50%") || !is.Flips() || is.New.Outcome != gates.Pass) {
			t.Errorf("the fast change is %s by the mild policy: %s; it lacks %v", is.New, is.New.Summary, is.Lacks)
		}
	}
}
