package submission

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// The n-th distinct machine code of a token, a kernel and a day has the number n. The same code again
// is another attempt with its old number, and other tokens, kernels and days have their own lists.
func TestClaimsAreNumbered(t *testing.T) {
	c := claimFile{filepath.Join(t.TempDir(), "claims.jsonl")}
	for i, step := range []struct {
		token, kernel, code string
		at                  time.Time
		attempt, number     int
	}{
		{"ann", "scale", "a", noon, 1, 1},
		{"ann", "scale", "b", noon, 1, 2},
		{"ann", "scale", "a", noon, 2, 1},
		{"ann", "other", "c", noon, 1, 1},
		{"bob", "scale", "d", noon, 1, 1},
		{"ann", "scale", "e", noon.Add(24 * time.Hour), 1, 1},
		{"ann", "scale", "f", noon, 1, 3},
	} {
		if err := c.add(claim{Handle: string(rune('0' + i)), Token: step.token, Kernel: step.kernel, Day: dayOf(step.at), Code: step.code, At: step.at}); err != nil {
			t.Fatal(err)
		}
		all, err := c.read()
		if err != nil || len(all) != i+1 {
			t.Fatalf("%d claims: %v", len(all), err)
		}
		if got := attemptOf(all); got.Number != step.attempt || got.CodeNumber != step.number {
			t.Errorf("claim %d of %s: %+v, want attempt %d at code %d", i, step.code, got, step.attempt, step.number)
		}
	}
}

// All claims of a day together spend at most the error rate of the policy, and the budget ends where
// no number of the policy's rounds could prove anything.
func TestBudgetEnds(t *testing.T) {
	gate := &policy.PerformanceGate{Interims: []int{6, 10, 16}}
	list := claim{Token: "ann", Kernel: "scale", Day: dayOf(noon)}
	var all []claim
	share := 0.0
	for {
		b := budgetOf(all, list, gate)
		if b.Claimed != len(all) || b.Rounds > 16 && b.Left > 0 {
			t.Fatalf("after %d claims: %+v", len(all), b)
		}
		if b.Left == 0 {
			if b.Advice == "" {
				t.Error("a spent budget has no advice")
			}
			break
		}
		share += b.NextShare
		one := list
		one.Code = string(rune('a' + len(all)))
		all = append(all, one)
	}
	if len(all) != gates.MostCodes(gate) || len(all) < 20 || share > 1 {
		t.Errorf("%d claims spend %v of the error rate", len(all), share)
	}
	if b := budgetOf(nil, list, nil); b.Left != untimedClaims {
		t.Errorf("a kernel that is not timed has %d claims", b.Left)
	}
}

// A claim counts once, from before anything is compared. A program that was ended in between goes on
// with the same attempt, and a new machine code without budget is refused before it is measured.
func TestRecordCounts(t *testing.T) {
	l := &Local{claimFile: claimFile{filepath.Join(t.TempDir(), "claims.jsonl")}}
	l.Service = newService(l, time.Now, nil)
	job := runners.Job{Manifest: &manifest.Manifest{Name: "scale"}}
	gate := &policy.PerformanceGate{Interims: []int{6}}
	begin := func(handle, code string) (runners.Attempt, *record) {
		t.Helper()
		r := &record{s: l.Service, job: job, gate: gate, at: noon, one: &Submission{Handle: handle, Token: "ann", Kernel: "scale"}}
		if _, err := r.Earlier(t.Context(), runners.Code{Baseline: "base", Candidate: code}); err != nil && !r.spent {
			t.Fatal(err)
		}
		if r.spent {
			return runners.Attempt{}, r
		}
		a, err := r.Begin(t.Context(), runners.Code{})
		if err != nil {
			t.Fatal(err)
		}
		return a, r
	}
	for range 2 {
		if got, _ := begin("1", "a"); got != (runners.Attempt{Number: 1, CodeNumber: 1}) {
			t.Errorf("the first claim is %+v", got)
		}
	}
	most := gates.MostCodes(gate)
	for n := 2; n <= most; n++ {
		if got, _ := begin(fmt.Sprint(n), fmt.Sprint("code", n)); got.CodeNumber != n {
			t.Fatalf("claim %d is number %d", n, got.CodeNumber)
		}
	}
	if _, r := begin("late", "new"); !r.spent {
		t.Error("a claim without budget is measured")
	}
	if got, r := begin("again", "a"); r.spent || got.Number != 2 || got.CodeNumber != 1 {
		t.Errorf("a known code is attempt %+v", got)
	}
	r := &record{s: l.Service, job: job, at: noon, one: &Submission{Handle: "x", Token: "ann", Kernel: "scale"}}
	if _, err := r.Earlier(t.Context(), runners.Code{Baseline: "base", Candidate: "base"}); err != nil || r.counted {
		t.Error("the baseline's own machine code is counted")
	}
}
