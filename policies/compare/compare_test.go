package compare_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/compare"
)

func TestDirections(t *testing.T) {
	const tightens, loosens, changes = compare.Tightens, compare.Loosens, compare.Changes
	five, six := 5, 6
	for _, c := range []struct {
		name     string
		note     func(l *compare.List)
		old, new string
		is       compare.Direction // empty if there is no difference
	}{
		{"less of Less", func(l *compare.List) { compare.Less(l, "p", 6, 5) }, "6", "5", tightens},
		{"more of Less", func(l *compare.List) { compare.Less(l, "p", 5, 6) }, "5", "6", loosens},
		{"the same of Less", func(l *compare.List) { compare.Less(l, "p", 5, 5) }, "", "", ""},
		{"more of More", func(l *compare.List) { compare.More(l, "p", 5, 6) }, "5", "6", tightens},
		{"less of More", func(l *compare.List) { compare.More(l, "p", 6, 5) }, "6", "5", loosens},
		{"the same of More", func(l *compare.List) { compare.More(l, "p", 5, 5) }, "", "", ""},
		{"a limit that comes", func(l *compare.List) { compare.Limit(l, "p", nil, &five, changes) }, "none", "5", changes},
		{"a limit that goes", func(l *compare.List) { compare.Limit(l, "p", &five, nil, changes) }, "5", "none", loosens},
		{"a limit that falls", func(l *compare.List) { compare.Limit(l, "p", &six, &five, changes) }, "6", "5", tightens},
		{"a limit that rises", func(l *compare.List) { compare.Limit(l, "p", &five, &six, changes) }, "5", "6", loosens},
		{"no limit", func(l *compare.List) { compare.Limit[int](l, "p", nil, nil, changes) }, "", "", ""},
		{"asked", func(l *compare.List) { compare.Asked(l, "p", false, true) }, "false", "true", tightens},
		{"not asked any more", func(l *compare.List) { compare.Asked(l, "p", true, false) }, "true", "false", loosens},
		{"still asked", func(l *compare.List) { compare.Asked(l, "p", true, true) }, "", "", ""},
		{"one more", func(l *compare.List) { compare.Set(l, "p", []int{1}, []int{1, 2}) }, "1", "1, 2", tightens},
		{"one less", func(l *compare.List) { compare.Set(l, "p", []int{1, 2}, []int{2}) }, "1, 2", "2", loosens},
		{"all gone", func(l *compare.List) { compare.Set(l, "p", []int{1}, nil) }, "1", "none", loosens},
		{"the first ones", func(l *compare.List) { compare.Set(l, "p", nil, []int{1}) }, "none", "1", tightens},
		{"another one", func(l *compare.List) { compare.Set(l, "p", []int{1}, []int{2}) }, "1", "2", changes},
		{"another order", func(l *compare.List) { compare.Set(l, "p", []int{1, 2}, []int{2, 1}) }, "", "", ""},
		{"unknown", func(l *compare.List) { l.Unknown("p", 5, 6) }, "5", "6", changes},
		{"unknown, and the same", func(l *compare.List) { l.Unknown("p", []int{5}, []int{5}) }, "", "", ""},
		{"unknown, with the same text", func(l *compare.List) { l.Unknown("p", []string{"a, b"}, []string{"a", "b"}) }, `["a, b"]`, `["a" "b"]`, changes},
		{"at least as strict", func(l *compare.List) { l.Way("p", "a", "b", true, false) }, "a", "b", tightens},
		{"at most as strict", func(l *compare.List) { l.Way("p", "a", "b", false, true) }, "a", "b", loosens},
		{"neither", func(l *compare.List) { l.Way("p", "a", "b", false, false) }, "a", "b", changes},
		{"equally strict", func(l *compare.List) { l.Way("p", "a", "b", true, true) }, "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got, want compare.List
			c.note(&got)
			if c.is != "" {
				want = compare.List{{Path: "p", Old: c.old, New: c.new, Direction: c.is}}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if got.Loosens() != (c.is == loosens || c.is == changes) {
				t.Errorf("Loosens is %v of %+v", got.Loosens(), got)
			}
		})
	}
}

func TestBoth(t *testing.T) {
	var l compare.List
	five := 5
	for _, c := range []struct {
		old, new *int
		want     bool
	}{{nil, nil, false}, {&five, nil, false}, {nil, &five, false}, {&five, &five, true}} {
		if got := compare.Both(&l, "p", c.old, c.new, compare.Changes); got != c.want {
			t.Errorf("Both(%v, %v) is %v", c.old, c.new, got)
		}
	}
	if len(l) != 2 {
		t.Errorf("%+v, want what went and what came", l)
	}
}

func TestOneLooseningLoosensTheList(t *testing.T) {
	l := compare.List{{Direction: compare.Tightens}, {Direction: compare.Tightens}}
	if l.Loosens() {
		t.Error("two differences that tighten loosen")
	}
	if l = append(l, compare.Difference{Direction: compare.Changes}); !l.Loosens() {
		t.Error("a difference of unknown direction does not count")
	}
}

func TestClipped(t *testing.T) {
	d := compare.Difference{Path: "four", Old: "fiveé", New: "ééé", Direction: compare.Loosens}
	want := compare.Difference{Path: "four", Old: "five…", New: "éé…", Direction: compare.Loosens}
	if got := d.Clipped(4); got != want {
		t.Errorf("got %+v", got)
	}
	if got := d.Clipped(6); got.Old != "fiveé" || strings.Contains(got.New, "…") {
		t.Errorf("got %+v, though nothing is longer than 6 bytes", got)
	}
}
