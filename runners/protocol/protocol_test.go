package protocol

import (
	"encoding/json"
	"testing"

	"github.com/kernelgate/kernelgate/runners"
)

// Progress is sent as it is reported, with the time that is left in seconds.
func TestBeat(t *testing.T) {
	sent := Heartbeat{Token: 7, Progress: &runners.Event{Gate: "performance", Text: "mission", Done: 3, Total: 20, Unit: "rounds", Detail: "+1 %", Left: 12.5}}
	data, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"token":7,"progress":{"gate":"performance","text":"mission","done":3,"total":20,"unit":"rounds","detail":"+1 %","left_seconds":12.5}}`
	if string(data) != want {
		t.Errorf("sent %s, want %s", data, want)
	}
	var got Heartbeat
	if err := json.Unmarshal(data, &got); err != nil || got.Token != 7 || *got.Progress != *sent.Progress {
		t.Errorf("%+v, %v", got, err)
	}
}

// What may be part of a path or a subject means nothing but itself there.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"pr-7-12-1add4114deed-1", "a.cubin", "../x", "a/b", "", "a b", "*", ".hidden", "jobs.>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range s {
			plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
			if JobID(s) && !plain || ArtifactName(s) && !plain && r != '.' && r != '+' {
				t.Errorf("%q was taken", s)
			}
		}
		if ArtifactName(s) && (s == "" || s[0] == '.' || s[0] == '-') || JobID("") {
			t.Errorf("%q was taken", s)
		}
	})
}
