package bisect

import (
	"flag"
	"os"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The texts of every end of a search.
func TestReportText(t *testing.T) {
	commits := []checkout.Commit{
		{SHA: "700d1a923ffd0000000000000000000000000000", Subject: "Move a space"}, {SHA: "4f27f2fcb1120000000000000000000000000000", Subject: "Break the build"},
		{SHA: "5be1c02aa9100000000000000000000000000000", Subject: "Inline the reduction"}, {SHA: "f5766652915f0000000000000000000000000000", Subject: "Loop more often"},
	}
	same := Step{Commit: 0, State: Good, SameAs: ref(-1)}
	skipped := Step{Commit: 1, State: Skipped, Why: "scale.c:3: error: expected ')'"}
	fine := Step{Commit: 2, State: Good, Rounds: 12, Speed: 0.999, Lower: 0.994, Upper: 1.004}
	slow := Step{Commit: 3, State: Bad, Rounds: 8, Speed: 0.968, Lower: 0.963, Upper: 0.974}
	unsure := fine
	unsure.Unsure, unsure.Rounds = true, 60
	report := func(kind Kind, first, last int, steps ...Step) *Report {
		return &Report{Kernel: "scale", Good: checkout.Commit{Subject: "v1.2"}, Commits: commits, Shapes: []string{"mission", "small"}, Device: gates.Device{Name: "a device"},
			Result: &Result{Kind: kind, First: first, Last: last, Delta: 0.05, Steps: steps}}
	}
	text := ""
	for _, c := range []struct {
		name   string
		report *Report
		err    error
	}{
		{"a proven step", report(Slower, 3, 2, slow, skipped, same, fine), nil},
		{"a step that is not proven", report(Slower, 3, 2, slow, same, unsure), nil},
		{"commits that cannot be judged", report(Slower, 2, 0, Step{Commit: 2, State: Bad, SameAs: ref(3)}, slow, same, skipped), nil},
		{"wrong outputs", report(Wrong, 3, 2, Step{Commit: 3, State: Bad, Why: "the output is wrong in 3 of 9 cases"}, Step{Commit: 2, State: Good}), nil},
		{"equal machine code", report("", 3, -1, Step{Commit: 3, State: Good, SameAs: ref(-1)}), ErrNotWorse},
		{"not slower", report(Slower, 3, -1, Step{Commit: 3, State: Good, Unsure: true, Rounds: 60, Speed: 0.998, Lower: 0.99, Upper: 1.006}), ErrNotWorse},
	} {
		text += "== " + c.name + "\n" + c.report.Text(c.err) + "\n"
	}
	const golden = "testdata/reports.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || string(want) != text {
		t.Errorf("%s differs (run with -update, and read the diff): %v\n%s", golden, err, text)
	}
}
