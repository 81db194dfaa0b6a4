package ledger

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/change"
	asked "github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/gates"
)

func sha(digit string) string { return strings.Repeat(digit, 40) }

// tell writes what happens to a change, in short.
type teller struct {
	*world
	*change.State
}

func (w *world) tell(id change.ID, head string) *teller {
	t := &teller{world: w, State: change.New(id)}
	w.changes = append(w.changes, t.State)
	title := fmt.Sprint("change ", id.Number)
	return t.seen(change.Facts{Repo: "o/r", Title: title, Author: "ann", Open: true, Head: head, Base: "main"})
}

func (t *teller) seen(f change.Facts) *teller {
	t.write(t.State, change.Seen{Facts: f})
	p := change.Plan{Key: f.PlanKey(), Head: f.Head}
	for _, k := range []string{"gemm", "softmax"} {
		p.Kernels = append(p.Kernels, change.Kernel{KernelSpec: change.KernelSpec{Name: k, Folder: "kernels/" + k, Rule: "faster", Labels: []string{"l4"}}})
	}
	t.write(t.State, change.Planned{Plan: p})
	return t
}

func (t *teller) push(head string) *teller {
	f := t.Facts
	f.Head = head
	return t.seen(f)
}

func (t *teller) close(merged bool) {
	f := t.Facts
	f.Open, f.Merged = false, merged
	t.write(t.State, change.Seen{Facts: f})
}

func (t *teller) finish(kernel string, o gates.Outcome, p50 float64) *teller {
	r, _ := t.ByFolder("kernels/" + kernel)
	t.write(t.State, change.Finished{Job: r.Job, Token: 1, Runner: "runner", Result: change.Result{
		Outcome: o, Line: fmt.Sprintf("%s of %s", o, kernel), Device: "L4", Evidence: "e", Verdict: "v",
		P50: map[string]float64{"s": p50}, Speedups: map[string]float64{"s": 0.1, "t": 0.2},
	}})
	return t
}

func (t *teller) command(id string, ok bool, e change.Effect) *teller {
	t.write(t.State, change.Asked{ID: id, By: "ann", Request: asked.Read("/" + id), Head: t.Facts.Head})
	t.write(t.State, change.Answered{ID: id, OK: ok, Answer: change.Answer{Kind: change.AnswerCannotServe, Quote: "re " + id}, Effect: e})
	return t
}

func (t *teller) rebench(kernel string) *teller {
	return t.command(fmt.Sprint("rebench", len(t.Commands)), true, change.Effect{Rebench: []change.Rerun{{Folder: "kernels/" + kernel}}})
}

func pull(n int) change.ID      { return change.ID{Kind: change.Pull, Repo: 1, Number: n} }
func pushed(s string) change.ID { return change.ID{Kind: change.Push, Repo: 1, SHA: sha(s)} }
func filled(t *testing.T, w *world) *Ledger {
	t.Helper()
	l, _ := openLedger(t, filepath.Join(t.TempDir(), "ledger.db"))
	catchUp(t, l, newMemory(w.events...))
	return l
}

// must fails the test where a query does.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func equal[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestTriedBefore(t *testing.T) {
	w := newWorld(0)
	w.tell(pull(1), sha("1")).finish("gemm", gates.Defer, 9).close(false)
	w.tell(pull(2), sha("2")).finish("gemm", gates.Defer, 9).push(sha("3")).finish("gemm", gates.Pass, 8).close(true) // passed later
	w.tell(pull(3), sha("4")).finish("gemm", gates.Pass, 9).push(sha("5")).finish("gemm", gates.Defer, 8)             // failed later
	w.tell(pull(4), sha("6")).finish("gemm", gates.Defer, 9).rebench("gemm").finish("gemm", gates.Defer, 9)           // twice
	w.tell(pull(5), sha("7")).finish("gemm", gates.Defer, 9).rebench("gemm").finish("gemm", gates.Error, 9)           // the runner's fault
	w.tell(pull(6), sha("8")).finish("softmax", gates.Defer, 9)                                                       // another kernel
	w.tell(pull(7), sha("9")).finish("gemm", gates.Defer, 9).push(sha("a"))                                           // nothing newer yet
	w.tell(pushed("b"), sha("b")).finish("gemm", gates.Defer, 9)                                                      // no pull request
	w.tell(change.ID{Kind: change.Pull, Repo: 2, Number: 8}, sha("c")).finish("gemm", gates.Defer, 9)                 // another repository
	extra := w.tell(pull(9), sha("d")).finish("gemm", gates.Pass, 9)                                                  // for information
	extra.command("extra", true, change.Effect{ExtraRuns: []change.ExtraRun{{Folder: "kernels/gemm"}}})
	extra.write(extra.State, change.Finished{Job: extra.ExtraRuns[0].Job, Result: change.Result{Outcome: gates.Defer}})
	w.tell(pull(10), sha("e")).finish("gemm", gates.Defer, 9) // who asks
	l := filled(t, w)

	tried := must[[]change.Tried](t)(l.TriedBefore(t.Context(), 1, "kernels/gemm", pull(10), 10))
	var got []string
	for _, x := range tried {
		got = append(got, fmt.Sprintf("#%d %s %s %s", x.Number, x.Title, x.Outcome, x.Line))
	}
	equal(t, "tried", []string{
		"#7 change 7 DEFER DEFER of gemm",
		"#5 change 5 DEFER DEFER of gemm",
		"#4 change 4 DEFER DEFER of gemm",
		"#3 change 3 DEFER DEFER of gemm",
		"#1 change 1 DEFER DEFER of gemm",
	}, got)
	if tried[0].At.IsZero() {
		t.Errorf("the newest is %+v", tried[0])
	}
	if few := must[[]change.Tried](t)(l.TriedBefore(t.Context(), 1, "kernels/gemm", pull(10), 2)); len(few) != 2 || few[0].Number != 7 {
		t.Errorf("the newest two are %+v", few)
	}
}

// A kernel is its folder, whatever it is called and however its name is shown.
func TestKernelsOfOneName(t *testing.T) {
	w := newWorld(0)
	for n, k := range []change.Kernel{{KernelSpec: change.KernelSpec{Name: "gemm", Folder: "kernels/gemm"}}, {KernelSpec: change.KernelSpec{Name: "gemm", Folder: "other/gemm"}}, {KernelSpec: change.KernelSpec{Name: "gemm (kernels/gemm)", Folder: "kernels/gemm"}}} {
		f := change.Facts{Repo: "o/r", Open: true, Head: sha(fmt.Sprint(n)), Base: "main"}
		c := &teller{world: w, State: change.New(pull(n + 1))}
		w.changes = append(w.changes, c.State)
		c.write(c.State, change.Seen{Facts: f})
		c.write(c.State, change.Planned{Plan: change.Plan{Key: f.PlanKey(), Head: f.Head, Kernels: []change.Kernel{k}}})
		c.write(c.State, change.Finished{Job: c.Runs[0].Job, Token: 1, Result: change.Result{Outcome: gates.Defer}})
	}
	l := filled(t, w)
	for folder, want := range map[string][]int{"kernels/gemm": {3, 1}, "other/gemm": {2}, "gemm": nil} {
		var tried, ran []int
		for _, x := range must[[]change.Tried](t)(l.TriedBefore(t.Context(), 1, folder, pull(9), 10)) {
			tried = append(tried, x.Number)
		}
		for _, r := range must[[]RunRow](t)(l.Runs(t.Context(), RunFilter{RepoID: 1, Folder: folder})) {
			ran = append(ran, r.Change.Number)
		}
		equal(t, "tried in "+folder, want, tried)
		equal(t, "runs of "+folder, want, ran)
	}
}

func TestRuns(t *testing.T) {
	w := newWorld(0)
	w.tell(pull(1), sha("1")).finish("gemm", gates.Defer, 9).rebench("gemm").finish("gemm", gates.Pass, 8)
	w.tell(change.ID{Kind: change.Pull, Repo: 2, Number: 3}, sha("2")).finish("softmax", gates.Error, 7).push(sha("3"))
	l := filled(t, w)
	for name, test := range map[string]struct {
		filter RunFilter
		want   []string
	}{
		"all": {RunFilter{}, []string{
			"7 softmax 3 #1 queued", "6 gemm 3 #1 queued", "5 softmax 2 #1 done ERROR", "4 gemm 2 #1 abandoned",
			"3 gemm 1 #2 done PASS", "2 softmax 1 #1 queued", "1 gemm 1 #1 done DEFER"}},
		"repo":    {RunFilter{RepoID: 1}, []string{"3 gemm 1 #2 done PASS", "2 softmax 1 #1 queued", "1 gemm 1 #1 done DEFER"}},
		"change":  {RunFilter{Change: pull(1), Folder: "kernels/gemm"}, []string{"3 gemm 1 #2 done PASS", "1 gemm 1 #1 done DEFER"}},
		"outcome": {RunFilter{Outcome: gates.Error}, []string{"5 softmax 2 #1 done ERROR"}},
		"phase":   {RunFilter{Phase: change.Abandoned}, []string{"4 gemm 2 #1 abandoned"}},
		"page":    {RunFilter{Before: 5, Limit: 2}, []string{"4 gemm 2 #1 abandoned", "3 gemm 1 #2 done PASS"}},
		"none":    {RunFilter{RepoID: 9}, nil},
	} {
		var got []string
		for _, r := range must[[]RunRow](t)(l.Runs(t.Context(), test.filter)) {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%d %s %.1s #%d %s %s", r.N, r.Kernel, r.Head, r.Attempt, r.Phase, r.Outcome)))
		}
		equal(t, name, test.want, got)
	}
	r := must[[]RunRow](t)(l.Runs(t.Context(), RunFilter{Outcome: gates.Pass}))[0]
	equal(t, "figures", [2]map[string]float64{{"s": 8}, {"s": 0.1, "t": 0.2}}, [2]map[string]float64{r.P50, r.Speedups})
	if r.Repo != "o/r" || r.Title != "change 1" || r.Change != pull(1) || r.Runner != "runner" || r.Evidence != "e" || r.Asked.IsZero() || !r.Begun.IsZero() || r.Ended.Before(r.Asked) {
		t.Errorf("the run is %+v", r)
	}
}

// Runs that a state forgets, or that change again after their result, are kept as
// they ended.
func TestRunsOutliveTheirState(t *testing.T) {
	w := newWorld(0)
	one := w.tell(pull(1), sha("1")).finish("gemm", gates.Pass, 8)
	one.command("extra", true, change.Effect{ExtraRuns: []change.ExtraRun{{Folder: "kernels/gemm"}}})
	labelled := one.Facts
	labelled.Labels = []string{"perf"}
	w.write(one.State, change.Seen{Facts: labelled})
	w.write(one.State, change.Planned{Plan: change.Plan{
		Key: labelled.PlanKey(), Head: labelled.Head, Kernels: []change.Kernel{{KernelSpec: change.KernelSpec{Name: "gemm", Folder: "kernels/gemm", Bundle: "new"}, Reused: true}},
	}})
	one.push(sha("2"))
	l := filled(t, w)
	var got []string
	for _, r := range must[[]RunRow](t)(l.Runs(t.Context(), RunFilter{})) {
		got = append(got, fmt.Sprintf("%s %.1s extra=%v %s %v ended=%v", r.Kernel, r.Head, r.Extra, r.Phase, r.P50, !r.Ended.IsZero()))
	}
	equal(t, "runs", []string{
		"softmax 2 extra=false queued map[] ended=false",
		"gemm 2 extra=false queued map[] ended=false",
		"gemm 1 extra=true abandoned map[] ended=true",
		"softmax 1 extra=false abandoned map[] ended=true",
		"gemm 1 extra=false done map[s:8] ended=true",
	}, got)
}

func TestChanges(t *testing.T) {
	w := newWorld(0)
	w.tell(pull(2), sha("1")).push(sha("2")).close(false)
	w.tell(pull(1), sha("2")).finish("gemm", gates.Pass, 1).finish("softmax", gates.Pass, 1)
	w.write(w.changes[1], change.Published{Complete: true})
	w.tell(pushed("2"), sha("2"))
	other := w.tell(change.ID{Kind: change.Pull, Repo: 2, Number: 3}, sha("2"))
	renamed := other.Facts
	renamed.Repo = "new/name"
	other.seen(renamed)
	l := filled(t, w)

	equal(t, "unsettled", []change.ID{pull(2), pushed("2"), other.ID}, must[[]change.ID](t)(l.Unsettled(t.Context())))
	equal(t, "by a head of old", []change.ID{pull(2)}, must[[]change.ID](t)(l.ByHead(t.Context(), 1, sha("1"))))
	equal(t, "by head", []change.ID{pull(1), pull(2), pushed("2")}, must[[]change.ID](t)(l.ByHead(t.Context(), 1, sha("2"))))
	equal(t, "by no head", nil, must[[]change.ID](t)(l.ByHead(t.Context(), 3, sha("2"))))

	pulls := must[[]PullRow](t)(l.OpenPulls(t.Context(), 1))
	if len(pulls) != 1 || pulls[0].ID != pull(1) || pulls[0].Base != "main" {
		t.Errorf("open pull requests: %+v", pulls)
	}
	for text, want := range map[string][]change.ID{"#2": {pull(2)}, "2": {pull(2)}, "3": nil, "": {pull(2), pull(1), pushed("2")}, "%": nil} {
		var ids []change.ID
		for _, c := range must[[]ChangeRow](t)(l.FindChanges(t.Context(), 1, text, 10)) {
			ids = append(ids, c.ID)
			if c.ID == pull(2) && (c.Open || c.Merged || c.Head != sha("2")) {
				t.Errorf("found %+v", c)
			}
		}
		slices.SortFunc(ids, func(a, b change.ID) int { return strings.Compare(a.String(), b.String()) })
		slices.SortFunc(want, func(a, b change.ID) int { return strings.Compare(a.String(), b.String()) })
		equal(t, "found by "+text, want, ids)
	}
	equal(t, "repositories", []RepoName{{ID: 1, Name: "o/r"}, {ID: 2, Name: "new/name"}}, must[[]RepoName](t)(l.RepoNames(t.Context())))
	if _, err := l.Change(t.Context(), pull(99)); !errors.Is(err, errNotFound) {
		t.Errorf("a change that is not there: %v", err)
	}
	counts := must[Counts](t)(l.Counts(t.Context()))
	equal(t, "counts", Counts{
		Changes: 4, Open: 3, Unsettled: 3, Outcomes: map[gates.Outcome]int{gates.Pass: 2},
		Phases: map[change.Phase]int{change.Done: 2, change.Queued: 4, change.Abandoned: 6},
	}, counts)
}

func TestAudit(t *testing.T) {
	w := newWorld(0)
	one := w.tell(pull(1), sha("1"))
	one.command("override", true, change.Effect{Override: &change.Override{For: change.NewScope(sha("1"), "main", ""), By: "ann", Reason: "now", At: "noon"}})
	one.command("late", true, change.Effect{Override: &change.Override{For: change.NewScope(sha("9"), "main", ""), By: "ann"}}) // of no head: no effect
	one.command("nonsense", false, change.Effect{})
	two := w.tell(change.ID{Kind: change.Pull, Repo: 2, Number: 1}, sha("2"))
	two.write(two.State, change.Asked{ID: "waits", By: "bob", Request: asked.Read("/waits")})
	l := filled(t, w)
	texts := func(id change.ID, limit int) (out []string) {
		for _, e := range must[[]Entry](t)(l.Audit(t.Context(), id, limit)) {
			out = append(out, e.Text)
		}
		return out
	}
	equal(t, "one change", []string{"/nonsense", "/late", "/override"}, texts(one.ID, 0))
	equal(t, "another", []string{"/waits"}, texts(two.ID, 0))
	equal(t, "the last two", []string{"/nonsense", "/late"}, texts(one.ID, 2))
	entries := must[[]Entry](t)(l.Audit(t.Context(), one.ID, 0))
	if entries[0].Override != nil || entries[1].Override != nil {
		t.Errorf("commands that let nothing pass: %+v", entries[:2])
	}
	entries = entries[2:]
	equal(t, "overrides", []Entry{{
		By: "ann", Text: "/override", Head: sha("1"), At: entries[0].At, OK: true, Answer: change.Answer{Kind: change.AnswerCannotServe, Quote: "re override"},
		Override: &change.Override{For: change.NewScope(sha("1"), "main", ""), By: "ann", Reason: "now", At: "noon"},
	}}, entries)
	i := slices.IndexFunc(w.events, func(e journal.Event) bool { return e.Kind == "asked" })
	if !entries[0].At.Equal(w.events[i].At) {
		t.Errorf("asked at %v", entries[0].At)
	}
}
