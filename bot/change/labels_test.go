package change

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Events of before had one label, and the journal keeps them for good.
func TestLabelsOfBefore(t *testing.T) {
	for text, want := range map[string]Labels{
		`{"name":"a","label":"l4"}`:              {"l4"},
		`{"name":"a","label":""}`:                nil,
		`{"name":"a"}`:                           nil,
		`{"name":"a","label":null}`:              nil,
		`{"name":"a","label":["h200","l4"]}`:     {"h200", "l4"},
		`{"name":"a","label":["one"],"rule":""}`: {"one"},
	} {
		event, err := Decode("planned", []byte(`{"kernels":[`+text+`]}`))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := event.(Planned).Kernels[0]
		if diff := cmp.Diff(want, got.Labels); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var back Kernel
		if err := json.Unmarshal(again, &back); err != nil || !cmp.Equal(got.Labels, back.Labels) {
			t.Errorf("%s becomes %s and %v (%v)", text, again, back.Labels, err)
		}
	}
	if _, err := Decode("planned", []byte(`{"kernels":[{"name":"a","label":7}]}`)); err == nil {
		t.Error("a number was read as a label")
	}
}
