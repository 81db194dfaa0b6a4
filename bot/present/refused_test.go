package present

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
)

// Whoever brings too much is told what it was, and not sent to mend the base branch.
func TestRefusedChange(t *testing.T) {
	at := refused(&change.Plan{Refused: true, Problems: []gates.Diagnostic{
		{File: "k/z`0`.h", Message: "up to here the folder has 33 files"}, {Message: "the change touches more than 50000 files"},
	}})
	if at.conclusion != failure || strings.Contains(at.lead, "base branch") || strings.Contains(at.lead, "mistake") {
		t.Errorf("%s: %s", at.title, at.lead)
	}
	for _, want := range []string{"k/z", "33 files", "- the change touches more than 50000 files"} {
		if !strings.Contains(at.lead, want) {
			t.Errorf("%q is not in\n%s", want, at.lead)
		}
	}
}
