package facts

import (
	"reflect"
	"slices"
	"testing"
)

// Reports find details by their kinds.
func TestKindsOfDetails(t *testing.T) {
	got := Details([]Fact{
		KindsApart{Shape: "mission", Kinds: []KindSpeed{{"normal", 0.1}, {"zero", 0.2}}},
		OfShape{"mission", SlowKind{Kind: "zero"}}, OfShape{"small", Capped{Kinds: []string{"zero"}}},
		Detectable{Shape: "long", Rounds: 6, Share: 0.01}, Quote("text"),
	})
	want := []struct{ kind, shape string }{{DetailKindsApart, "mission"}, {DetailSlowKind, "mission"}, {DetailCapped, "small"}, {"detectable", "long"}, {"quote", ""}}
	for i, w := range want {
		if got[i].Kind != w.kind || got[i].Shape != w.shape || got[i].Text == "" {
			t.Errorf("%+v, want %+v", got[i], w)
		}
	}
	if !slices.Equal([]string{got[0].Text, got[4].Text}, []string{"mission by inputs: normal +10.0\u00a0%, zero +20.0\u00a0%", "text"}) {
		t.Errorf("%+v", got)
	}
}

// Every type of fact has its own kind.
func TestEveryFactHasAKind(t *testing.T) {
	of := map[string]reflect.Type{}
	for _, f := range sampleFacts() {
		kind, is := kindOf(f), reflect.TypeOf(f)
		if other, ok := of[kind]; kind == "" || ok && other != is {
			t.Errorf("%v: kind %q, which is also of %v", is, kind, other)
		}
		of[kind] = is
	}
}
