package submission

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// A racing journal lets others write right after its claims were read.
type racing struct {
	*journal.Journal
	others []func()
	read   int // events
}

func (r *racing) ReplayRunAfter(ctx context.Context, name string, after uint64, do func(journal.Event) error) (uint64, error) {
	seq, err := r.Journal.ReplayRunAfter(ctx, name, after, func(e journal.Event) error { r.read++; return do(e) })
	if name == claimsOf(claimant("", "")) && len(r.others) > 0 {
		other := r.others[0]
		r.others = r.others[1:]
		other()
	}
	return seq, err
}

func claimant(token, handle string) *Submission {
	return &Submission{Handle: handle, Token: token, Kernel: "scale", Work: &work{Repo: 1, Name: "o/r", Folder: "kernels/scale"}}
}

// hostedForTest has a journal of its own, and measures nothing.
func hostedForTest(t *testing.T) (*Hosted, *racing) {
	t.Helper()
	opened, err := journal.Open(t.Context(), journal.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	j := &racing{Journal: opened}
	return NewHosted(HostedOptions{Journal: j, Now: func() time.Time { return noon }}), j
}

// begin counts a claim of a machine code.
func (h *Hosted) begin(t *testing.T, one *Submission, gate *policy.PerformanceGate, code string) *record {
	t.Helper()
	r := &record{s: h.Service, one: one, at: noon, job: runners.Job{Manifest: &manifest.Manifest{Name: "scale"}}, gate: gate}
	if _, err := r.Earlier(t.Context(), runners.Code{Baseline: "base", Candidate: code}); err != nil && !r.spent {
		t.Fatal(err)
	}
	return r
}

// A claim that was written after the claims were read is an error of its own, and adds nothing.
func TestClaimIsRefusedAfterANewerOne(t *testing.T) {
	h, _ := hostedForTest(t)
	one := claimant("ann", "1")
	before, err := h.claims(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.claim(t.Context(), one, before, claimOf(one, noon)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := h.claim(t.Context(), claimant("bob", "2"), before, claimOf(claimant("bob", "2"), noon)); err != errRaced {
			t.Errorf("a claim after a newer one: %v", err)
		}
	}
	if after, err := h.claims(t.Context(), one); err != nil || len(after.all) != 1 || after.all[0].Token != "ann" {
		t.Errorf("the claims are %+v, %v", after.all, err)
	}
}

// Claims that were written meanwhile, by another bot or by another runner of this one, count before this one.
func TestClaimsMeanwhile(t *testing.T) {
	gate := &policy.PerformanceGate{Interims: []int{6}}
	write := func(j *racing, one *Submission, code string) func() {
		return func() {
			h := NewHosted(HostedOptions{Journal: j.Journal, Now: func() time.Time { return noon }})
			list, err := h.claims(t.Context(), one)
			if err != nil {
				t.Fatal(err)
			}
			r := record{job: runners.Job{Manifest: &manifest.Manifest{Name: "scale"}}}
			c := claimOf(one, noon)
			c.Code = codeName(r.job, runners.Code{Baseline: "base", Candidate: code})
			if err := h.claim(t.Context(), one, list, c); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name    string
		others  func(j *racing) []func()
		attempt runners.Attempt
		claims  int
	}{
		{"nobody", func(*racing) []func() { return nil }, runners.Attempt{Number: 1, CodeNumber: 1}, 1},
		{"a different code", func(j *racing) []func() { return []func(){write(j, claimant("ann", "2"), "b")} }, runners.Attempt{Number: 1, CodeNumber: 2}, 2},
		{"two, one after the other", func(j *racing) []func() {
			return []func(){write(j, claimant("ann", "2"), "b"), write(j, claimant("ann", "3"), "c")}
		}, runners.Attempt{Number: 1, CodeNumber: 3}, 3},
		{"a different owner", func(j *racing) []func() { return []func(){write(j, claimant("bob", "2"), "b")} }, runners.Attempt{Number: 1, CodeNumber: 1}, 2},
		{"the same submission, at another runner", func(j *racing) []func() { return []func(){write(j, claimant("ann", "1"), "a")} }, runners.Attempt{Number: 1, CodeNumber: 1}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, j := hostedForTest(t)
			j.others = c.others(j)
			r := h.begin(t, claimant("ann", "1"), gate, "a")
			if got, err := r.Begin(t.Context(), runners.Code{}); err != nil || got != c.attempt {
				t.Errorf("the attempt is %+v, %v; want %+v", got, err, c.attempt)
			}
			if list, err := h.claims(t.Context(), claimant("ann", "1")); err != nil || len(list.all) != c.claims {
				t.Errorf("%d claims are counted (%v), want %d", len(list.all), err, c.claims)
			}
		})
	}
	t.Run("the last of the budget", func(t *testing.T) {
		t.Parallel()
		h, j := hostedForTest(t)
		most := gates.MostCodes(gate)
		for n := range most - 1 {
			write(j, claimant("ann", fmt.Sprint("n", n)), fmt.Sprint("n", n))()
		}
		j.others = []func(){write(j, claimant("ann", "2"), "b")}
		if r := h.begin(t, claimant("ann", "1"), gate, "a"); !r.spent || r.counted {
			t.Errorf("a claim after the last one of the budget is counted: %+v", r.attempt)
		}
		if list, err := h.claims(t.Context(), claimant("ann", "1")); err != nil || len(list.all) != most {
			t.Errorf("%d claims are counted (%v), want %d", len(list.all), err, most)
		}
	})
}

// Of a kernel with a long history of claims, only those are read that were written since the last time, by whichever bot.
func TestOnlyNewClaimsAreRead(t *testing.T) {
	h, j := hostedForTest(t)
	other := NewHosted(HostedOptions{Journal: j.Journal, Now: func() time.Time { return noon }})
	claims := func(h *Hosted) claimList {
		t.Helper()
		list, err := h.claims(t.Context(), claimant("ann", "1"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for n := range 20 {
		one := claimant("ann", fmt.Sprint(n))
		if err := other.claim(t.Context(), one, claims(other), claimOf(one, noon)); err != nil {
			t.Fatal(err)
		}
		before := j.read
		list := claims(h)
		if len(list.all) != n+1 || list.all[n].Handle != one.Handle || j.read != before+1 {
			t.Fatalf("after claim %d there are %d, and %d were read", n, len(list.all), j.read-before)
		}
		_ = append(list.all, claim{Handle: "of somebody who goes on with the list"})
	}
}
