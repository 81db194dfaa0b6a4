package check

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// A check on one machine is about one device, and says which ones it says nothing about: in the terminal, and to programs.
func TestForDevice(t *testing.T) {
	for name, c := range map[string]struct {
		devices, labels, label, note, others string
	}{
		"one device of two": {"{all: [l4, h200]}", "cpu gpu h200", "h200",
			"This verdict holds for h200 only. The policy also asks for l4 (must pass), which this run on this machine (its labels: cpu, gpu, h200) cannot tell.", "l4 block"},
		"the others inform": {"{block: [h200], inform: [l4]}", "h200", "h200",
			"This verdict holds for h200 only. The policy also asks for l4 (informs), which this run on this machine (its labels: h200) cannot tell.", "l4 inform"},
		"none of them": {"{block: [l4, h200], inform: [a100]}", "cpu", "",
			"This verdict holds for none of the policy's devices: it asks for l4 (must pass), h200 (must pass), a100 (informs), and this machine is none of them (its labels: cpu).", "a100 inform, h200 block, l4 block"},
		"all of them":            {"{all: [l4]}", "l4", "l4", "", ""},
		"an order of preference": {"[l4, h200]", "cpu", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := policy.Parse("p.yaml", []byte("version: 1\ndevices: "+c.devices+"\ngates: {correctness: {norm_error: \"<= 1%\"}}\nrules: [{name: default}]\n"))
			if err != nil {
				t.Fatal(err)
			}
			job := runners.Job{Policy: p}
			forDevice(&job, strings.Fields(c.labels))
			if got := strings.Join(job.Notes, "\n"); got != c.note || job.Provenance.Label != c.label {
				t.Errorf("for %q: %s\nwant %q: %s", job.Provenance.Label, got, c.label, c.note)
			}
			e := &gates.Evidence{Schema: gates.EvidenceSchema, Kernel: "scale", Removed: true, Provenance: job.Provenance, Notes: job.Notes}
			r := Result{}
			r.Evidence, r.Verdict = e, gates.JudgeForTerminal(p, "p.yaml", e)
			if text := strings.Join(strings.Fields(report.Terminal(r.Verdict, report.TerminalOptions{Width: 100})), " "); !strings.Contains(text, c.note) {
				t.Errorf("the terminal does not say %q:\n%s", c.note, text)
			}
			var others []string
			for _, o := range r.ForPrograms().OtherDevices {
				others = append(others, o.Label+" "+string(o.Enforce))
			}
			if got := strings.Join(others, ", "); got != c.others {
				t.Errorf("programs read %q, want %q", got, c.others)
			}
		})
	}
}
