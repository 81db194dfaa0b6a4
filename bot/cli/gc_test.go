package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/bot/retention"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/journal/natstest"
	"github.com/kernelgate/kernelgate/gates"
)

// golden compares a text with a file, or writes the file with -update.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != got {
		t.Errorf("%v; got\n%s", err, got)
	}
}

// judgedChange writes a pull request with one verdict, and its artifacts.
func judgedChange(t *testing.T, j *journal.Journal, number int, open bool, ended time.Time) {
	t.Helper()
	s := change.New(change.ID{Kind: change.Pull, Repo: 1, Number: number})
	head := strings.Repeat(fmt.Sprint(number), 40)
	write := func(e change.Event) {
		t.Helper()
		seq, err := j.AppendAt(t.Context(), ended, s.ID.String(), s.Seq, change.KindOf(e), e)
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(seq, ended, e)
	}
	facts := change.Facts{Repo: "olga/kernels", Title: "Faster", Author: "olga", Open: true, Head: head, Base: "main"}
	write(change.Seen{Facts: facts})
	write(change.Planned{Plan: change.Plan{Key: s.Facts.PlanKey(), Head: head, Check: "kernelgate", Kernels: []change.Kernel{
		{KernelSpec: change.KernelSpec{Name: "scale", Folder: "kernels/scale", Rule: "default", Labels: []string{"cpu"}, Bundle: "b1"}},
	}}})
	write(change.Started{Job: s.Runs[0].Job, Token: 1, Runner: "r"})
	result := change.Result{Outcome: gates.Pass, Line: "PASS", Verdict: fmt.Sprint("verdict-", number), Evidence: fmt.Sprint("evidence-", number)}
	for i, name := range []string{result.Evidence, result.Verdict} {
		if _, err := j.Artifacts.Put(t.Context(), name, bytes.NewReader(make([]byte, 500+number*(1-i)*1500))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := j.Artifacts.Put(t.Context(), fleet.ArtifactBlob(s.Runs[0].Job, 1, "log.txt"), strings.NewReader("of the run")); err != nil {
		t.Fatal(err)
	}
	write(change.Finished{Job: s.Runs[0].Job, Token: 1, Runner: "r", Result: result})
	if !open {
		facts.Open = false
		write(change.Seen{Facts: facts})
	}
}

// gc deletes the artifacts of changes that were closed long ago, and artifacts that no run refers to. With --dry-run it only
// lists them. The time is a parameter: the test writes the artifacts now, and runs the command 400 days later.
func TestGC(t *testing.T) {
	dir := t.TempDir()
	j, err := journal.Open(t.Context(), journal.Options{Dir: filepath.Join(dir, "journal")})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	written := time.Now()
	later := written.AddDate(0, 0, 400)
	judgedChange(t, j, 1, false, written)                  // closed
	judgedChange(t, j, 2, true, written)                   // open
	judgedChange(t, j, 3, false, later.AddDate(0, 0, -10)) // closed, and measured again ten days ago
	if _, err := j.Artifacts.Put(t.Context(), "pr-1-9-abc-1/1/log.txt", strings.NewReader("of a lease that was lost")); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, opt := range []gcOptions{{days: 500, dryRun: true}, {days: 365, dryRun: true}, {days: 365}, {days: 365}} {
		fmt.Fprintf(&out, "$ kernelgate gc --days %d --dry-run=%v\n", opt.days, opt.dryRun)
		if err := collect(t.Context(), j, opt, later, &out); err != nil {
			t.Fatal(err)
		}
	}
	got := regexp.MustCompile(`\d{4}-\d\d-\d\d`).ReplaceAllString(out.String(), "2026-01-02")
	golden(t, "bot/cli/testdata/gc.txt", got)
	left, err := j.Artifacts.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, b := range left {
		names[b.Name] = true
	}
	for _, keep := range []string{"evidence-2", "verdict-2", "evidence-3", "verdict-3"} {
		if !names[keep] {
			t.Errorf("%s was deleted", keep)
		}
	}
	if len(names) != 6 { // with two logs
		t.Errorf("left: %v", names)
	}
}

// A bot may store an old artifact again while gc runs, for example when a runner measures the same code again. gc does not
// delete such an artifact.
func TestGCLeavesWhatWasWrittenAgain(t *testing.T) {
	j, err := journal.Open(t.Context(), journal.Options{Dir: filepath.Join(t.TempDir(), "journal")})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, name := range []string{"again", "gone", "old"} {
		if _, err := j.Artifacts.Put(t.Context(), name, strings.NewReader("text")); err != nil {
			t.Fatal(err)
		}
	}
	plan, err := retention.Make(t.Context(), j, time.Now().AddDate(1, 0, 0))
	if err != nil || len(plan.Delete) != 3 {
		t.Fatalf("%+v, %v", plan, err)
	}
	_, errPut := j.Artifacts.Put(t.Context(), "again", strings.NewReader("text"))
	if err := errors.Join(errPut, j.Artifacts.Delete(t.Context(), "gone")); err != nil {
		t.Fatal(err)
	}
	deleted, err := plan.Apply(t.Context(), j)
	if err != nil || len(deleted) != 1 || deleted[0].Name != "old" {
		t.Errorf("deleted %+v, %v", deleted, err)
	}
	if _, err := j.Artifacts.Read(t.Context(), "again"); err != nil {
		t.Error(err)
	}
}

// With a NATS cluster, gc opens the journal that the configuration names, while bots run.
func TestGCOnNATS(t *testing.T) {
	ports := []string{freePort(t), freePort(t)}
	nats := natstest.New(t, ports)
	j, err := journal.Open(t.Context(), journal.Options{URL: nats.URLs})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	judgedChange(t, j, 1, false, time.Now())
	config := put(t, []byte(fmt.Sprintf("data: %s\ngithub: {app_id: 7, private_key_file: /k/key, webhook_secret_file: /k/hook}\nnats: %s\n", t.TempDir(), nats.URLs)), t.TempDir(), "kernelgate.yaml")
	var stdout, stderr bytes.Buffer
	if status := Run([]string{"gc", "--config", config, "--dry-run"}, &stdout, &stderr); status != 0 || !strings.Contains(stdout.String(), "Would delete 0 artifacts, 0 B. Nothing was deleted.") {
		t.Errorf("status %d\n%s%s", status, &stdout, &stderr)
	}
}

func TestGCMistakes(t *testing.T) {
	for want, args := range map[string][]string{
		"--days: 7 is less than 30":                                {"gc", "--days", "7"},
		"--config and --data name two journals":                    {"gc", "--config", "a.yaml", "--data", "b"},
		"is not the data folder of a bot with an embedded journal": {"gc", "--data", t.TempDir()},
	} {
		var stdout, stderr bytes.Buffer
		if status := Run(args, &stdout, &stderr); status != exitInput || !strings.Contains(stderr.String(), want) {
			t.Errorf("%v: status %d, %s", args, status, &stderr)
		}
	}
}
