//go:build !race

// To judge and show all evidence is one long calculation, five times as long under the race detector.

package pages_test

import "testing"

// TestFormsAgree judges all committed evidence and checks that every form of a verdict shows the
// same five numbers of a shape, in one notation: the time before and after, the speedup, and its
// bounds. No time contradicts the sign of a speedup, and the steps to pass name every shape that
// does not meet its goal.
func TestFormsAgree(t *testing.T) {
	count, verdicts := &tally{byForm: map[string]int{}}, 0
	t.Run("of", func(t *testing.T) { // ends after the last of its folders
		for folder, pieces := range committed(t) {
			verdicts += len(pieces)
			t.Run(folder, func(t *testing.T) {
				t.Parallel()
				holdFolder(t, count, pieces)
			})
		}
	})
	for form, least := range map[string]int{
		"the verdict": 1000, "report.md": 1000, "check in a terminal": 1000, "judge in a terminal": 500, "all details in a terminal": 1000, "the comment": 1000, "the comment on two devices": 1000, "a check run": 1000, "the run's page": 1000,
		"the picture of the intervals": 500, "the API": 1000, "the badge": 50, "HISTORY.md": 200, "history in a terminal": 200, "the kernel's page": 200,
		"compare in a terminal": 200, "the compare page": 200, "the API of compare": 200, "the matrix of kinds": 500, "the table of the history": 100, "the API of a change": 1000,
		"the comment on two devices, by device": 500, "the devices of a change, by device": 500, "the API of a change, by device": 500,
	} {
		if count.byForm[form] < least {
			t.Errorf("%s: only %d figures were found, want %d: its parser has lost sight of them", form, count.byForm[form], least)
		}
	}
	if verdicts < 100 {
		t.Errorf("only %d pieces of evidence were found", verdicts)
	}
	t.Logf("%d verdicts, figures compared: %v", verdicts, count.byForm)
}
