package gates

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestAbilitiesDecide checks that the judge asks what the evidence says about its backend, and that a mode counts only if
// evidence says nothing.
func TestAbilitiesDecide(t *testing.T) {
	stated := Abilities{Clock: ClockHarness}
	e := &Evidence{Mode: "cpu", Abilities: &stated}
	if judgesSingle(e) || e.Can().onHost() || !e.Can().Equal(stated) {
		t.Errorf("the mode decided: %+v", e.Can())
	}
	for mode, want := range map[string]Clock{"cpu": ClockProcess, "cuda": ClockDevice, "command": ClockHarness, "": ""} {
		if got := (&Evidence{Mode: mode}).Can(); got.Clock != want || got.SingleLaunches == (mode == "command") {
			t.Errorf("mode %q without abilities: %+v", mode, got)
		}
	}
}

func TestAbilitiesEqual(t *testing.T) {
	all := unrecorded["cpu"]
	if !all.Equal(all) {
		t.Fatal("abilities differ from themselves")
	}
	for what, change := range map[string]func(*Abilities){
		"clock":           func(a *Abilities) { a.Clock = ClockDevice },
		"single launches": func(a *Abilities) { a.SingleLaunches = false },
		"own processes":   func(a *Abilities) { a.OwnProcesses = false },
		"sanitizers":      func(a *Abilities) { a.Sanitizers = nil },
		"disassembly":     func(a *Abilities) { a.Disassembly = false },
		"profiler":        func(a *Abilities) { a.Profiler = true },
	} {
		other := all
		if change(&other); all.Equal(other) {
			t.Errorf("%s: they count as equal", what)
		}
	}
}

// TestUnknownClock checks that evidence with a clock of a later version is refused: nobody knows how to judge its times.
func TestUnknownClock(t *testing.T) {
	data, err := json.Marshal(Evidence{Schema: EvidenceSchema, Kernel: "k", Abilities: &Abilities{Clock: "sundial"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseEvidence("e.json", data); err == nil || !strings.Contains(err.Error(), "abilities.clock") {
		t.Errorf("got %v", err)
	}
}
