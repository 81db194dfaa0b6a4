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
