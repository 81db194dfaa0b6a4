package pages

import (
	"html/template"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/why"
)

func TestWhyViews(t *testing.T) {
	side := func(blocks, shared float64) why.Side {
		return why.Side{
			Limiter: &why.Limiter{Name: "DRAM", Share: 71}, Blocks: new(blocks), LimitedBy: "shared memory", Registers: new(40.0), SharedBytes: new(shared), Threads: new(128.0),
		}
	}
	v := &gates.Verdict{
		Device: gates.Device{Arch: "sm_90"}, Builds: []gates.Build{{}, {}},
		Why: []gates.Why{{
			Shape: "mission", Sentence: "DRAM 45 → 71 %",
			Explanation: why.Explanation{Baseline: side(1, 207<<10), Candidate: side(2, 90<<10), Stalls: []why.Stall{{Words: "a barrier", Baseline: 40, Candidate: 3}}},
			Roofline:    &gates.Roofline{Peak: 1979, Bandwidth: 4800, Baseline: gates.RooflinePoint{TFLOPs: 100, Intensity: 80}, Candidate: gates.RooflinePoint{TFLOPs: 300, Intensity: 200}},
		}, {Shape: "small"}, {Shape: "silent", Explanation: why.Explanation{Static: true}}},
	}
	v.Why[0].Stalled = []gates.StalledSide{{Side: "candidate", Kernel: "k", Samples: 9, Lines: []gates.StalledLine{{File: "k.cu", Line: 9, Samples: 7, Reason: "barrier"}}}}
	all := whyViews(v)
	if len(all) != 2 {
		t.Fatalf("%d views", len(all))
	}
	w := all[0]
	const want = "1 block, limited by shared memory (shared memory: 206 KiB → 1 block on a multiprocessor; at most 113 KiB would let 2 share it)"
	if got := strings.ReplaceAll(w.Sides[0].Occupancy, "\u00a0", " "); got != want {
		t.Errorf("occupancy %q, want %q", got, want)
	}
	if !strings.Contains(string(w.Roof), `class="arrow"`) || !strings.Contains(string(w.Stalls), "a barrier") || !strings.Contains(w.Sides[1].Limiter, "DRAM") {
		t.Errorf("roofline %.300s\nstalls %.300s", w.Roof, w.Stalls)
	}
	if l := w.Lines; len(l) != 1 || l[0].Side != "candidate" || l[0].Samples != 9 || l[0].Lines[0].Line != 9 || l[0].Build != 1 {
		t.Errorf("lines %+v", w.Lines)
	}
	if empty := all[1]; empty.Roof != "" || empty.Stalls != "" || empty.Lines != nil || empty.Sides != nil || !w.Blocks {
		t.Errorf("of nothing: %+v", empty)
	}
}

// The template shows everything that the view has.
func TestWhyIsRendered(t *testing.T) {
	s := &Server{}
	templates, err := template.New("").Funcs(s.functions()).ParseFS(files, "assets/*.html")
	if err != nil {
		t.Fatal(err)
	}
	page := &RunPage{Verdict: &gates.Verdict{Builds: []gates.Build{{}, {}}}}
	view := WhyView{
		Why:   gates.Why{Shape: "mission", Sentence: "DRAM 45 → 71 %", Unsampled: "ncu says <nothing> of the baseline", Explanation: why.Explanation{Rows: []why.Row{{Name: "DRAM", Unit: "%", Baseline: new(45.0), Moved: true}}}},
		Sides: []WhySide{{Name: "baseline", Limiter: "latency", Occupancy: "1 block"}}, Blocks: true,
		Lines: []WhyLines{{Build: 1, StalledSide: gates.StalledSide{Side: "candidate", Kernel: "k", Samples: 7, Lines: []gates.StalledLine{{File: "k.cu", Line: 9, Samples: 7, Reason: "barrier"}},
			Instructions: []gates.StalledInstruction{{Text: "LDG.E R1, [R2.64]", File: "k.cu", Line: 9, Samples: 5, Reason: "long_sb"}}}}},
	}
	var text strings.Builder
	if err := templates.ExecuteTemplate(&text, "why", whyPage{page, []WhyView{view}}); err != nil {
		t.Fatal(err)
	}
	var onCPU strings.Builder
	view.Sides, view.Blocks = []WhySide{{Name: "baseline", Limiter: "latency", Occupancy: "–"}}, false
	if err := templates.ExecuteTemplate(&onCPU, "why", whyPage{page, []WhyView{view}}); err != nil {
		t.Fatal(err)
	}
	if got := onCPU.String(); strings.Contains(got, "multiprocessor") || !strings.Contains(got, "latency") {
		t.Errorf("of a CPU: %s", got)
	}
	for _, want := range []string{"DRAM 45 → 71 %", "1 block", "latency", "7 of 7", "a barrier", "k.cu", "LDG.E R1", "5 of 7", "global or local memory", "not sampled: ncu says &lt;nothing&gt; of the baseline"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in %s", want, text.String())
		}
	}
}
