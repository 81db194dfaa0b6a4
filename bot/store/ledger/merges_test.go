package ledger

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/highwater"
	"github.com/kernelgate/kernelgate/gates"
)

// The history of a kernel is what pushes brought, under every name that it had, and nothing that was tried elsewhere.
func TestMerges(t *testing.T) {
	w := newWorld(1)
	commit := func(letter string) string { return strings.Repeat(letter, 40) }
	run := func(id change.ID, head, before, base string, k change.Kernel, r change.Result) {
		s := change.New(id)
		f := change.Facts{Repo: "org/repo", Open: true, Head: head, Base: "main", BaseSHA: before}
		w.write(s, change.Seen{Facts: f})
		k.Name, k.Rule, k.Result = "gemm", "default", &r
		w.write(s, change.Planned{Plan: change.Plan{Key: f.PlanKey(), Head: head, Base: base, Kernels: []change.Kernel{k}}})
	}
	measured := func(against string, ratio float64) change.Result {
		return change.Result{Outcome: gates.Pass, Device: "L4", Arch: "sm_89", Against: against, Ratios: map[string]change.Ratio{"small": {Value: ratio, Dims: "N=1"}}}
	}
	label := "l4" // the policy asks for several devices at first
	push := func(letter, before, base, folder, was string, r change.Result) {
		run(change.ID{Kind: change.Push, Repo: 1, SHA: commit(letter)}, commit(letter), commit(before), commit(base), change.Kernel{KernelSpec: change.KernelSpec{Folder: folder, Was: was, Device: label}}, r)
	}
	push("b", "a", "a", "kernels/gemm", "", measured(commit("a"), 0.9))
	label = ""
	run(change.ID{Kind: change.Pull, Repo: 1, Number: 1}, commit("f"), "", commit("b"), change.Kernel{KernelSpec: change.KernelSpec{Folder: "kernels/gemm"}}, measured(commit("b"), 3))
	run(change.ID{Kind: change.Pull, Repo: 1, Number: 2}, commit("e"), "", commit("b"), change.Kernel{KernelSpec: change.KernelSpec{Folder: "kernels/new", Device: "l4"}}, change.Result{Outcome: gates.Error, Against: commit("a"), Unbuildable: true})
	push("c", "9", "b", "kernels/gemm", "", measured(commit("b"), 0.8)) // forced: it left the branch at b
	push("d", "c", "c", "kernels/new", "kernels/gemm", change.Result{Outcome: gates.Pass, Device: "L4"})
	push("8", "d", "d", "kernels/gemm", "", measured(commit("d"), 0.1)) // another kernel, in the folder that is free
	l, _ := openLedger(t, filepath.Join(t.TempDir(), "ledger.db"))
	catchUp(t, l, newMemory(w.events...))
	got, err := l.Merges(t.Context(), 1, "kernels/new")
	if err != nil {
		t.Fatal(err)
	}
	for i := range got.Merges {
		got.Merges[i].At = epoch
	}
	l4 := highwater.Device{Name: "L4", Arch: "sm_89"}
	small := highwater.Shape{Name: "small", Dims: "N=1"}
	want := highwater.History{
		Merges: []highwater.Merge{
			{Commit: commit("b"), Folder: "kernels/gemm", Branch: "main", Against: commit("a"), Device: l4, Label: "l4", Outcome: gates.Pass, At: epoch, Ratios: map[highwater.Shape]float64{small: 0.9}},
			{Commit: commit("c"), Folder: "kernels/gemm", Branch: "main", Against: commit("b"), Device: l4, Outcome: gates.Pass, At: epoch, Ratios: map[highwater.Shape]float64{small: 0.8}},
			{Commit: commit("d"), Folder: "kernels/new", Branch: "main", Device: highwater.Device{Name: "L4"}, Outcome: gates.Pass, At: epoch},
		},
		Before:      map[string]string{commit("b"): commit("a"), commit("c"): commit("b"), commit("d"): commit("c"), commit("8"): commit("d")},
		Unbuildable: map[highwater.OnBranch]bool{{Commit: commit("a"), Branch: "main", Label: "l4"}: true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got): %s", d)
	}
}
