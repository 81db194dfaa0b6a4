package change

import (
	"testing"
	"time"
)

func TestPlanKey(t *testing.T) {
	base := facts(headOne, "perf")
	for name, test := range map[string]struct {
		change func(*Facts)
		same   bool
	}{
		"head":   {func(f *Facts) { f.Head = headTwo }, false},
		"base":   {func(f *Facts) { f.Base = "next" }, false},
		"labels": {func(f *Facts) { f.Labels = nil }, false},
		"title":  {func(f *Facts) { f.Title = "[perf]" }, false},
		"draft":  {func(f *Facts) { f.Draft = true }, false},
		"rules":  {func(f *Facts) { f.Rules = "0123456789abcdef" }, false},
		"time":   {func(f *Facts) { f.Updated = time.Unix(9, 0) }, true},
		"author": {func(f *Facts) { f.Author = "ann" }, true},
	} {
		f := base
		test.change(&f)
		if same := f.PlanKey() == base.PlanKey(); same != test.same {
			t.Errorf("%s: same key %v", name, same)
		}
	}
	none, empty := facts(headOne), facts(headOne)
	none.Labels, empty.Labels = nil, []string{}
	if none.PlanKey() != empty.PlanKey() {
		t.Error("no labels and no labels have different keys")
	}
}

// Commands that were the first word of a change are about the head that GitHub tells of then. What is seen later changes no command.
func TestCommandsBeforeTheFirstFacts(t *testing.T) {
	t.Parallel()
	s := New(ID{Kind: Pull, Repo: 7, Number: 1})
	at := time.Unix(1e9, 0)
	apply := func(e Event) { s.Apply(s.Seq+1, at, e) }
	apply(Asked{ID: "early"})
	apply(Asked{ID: "known", Head: "b"})
	apply(Seen{Facts: Facts{Head: "a", Open: true}})
	apply(Asked{ID: "late"})
	apply(Seen{Facts: Facts{Head: "c", Open: true}})
	for i, want := range []string{"a", "b", ""} {
		if got := s.Commands[i].Head; got != want {
			t.Errorf("%s is about %q, want %q", s.Commands[i].ID, got, want)
		}
	}
}
