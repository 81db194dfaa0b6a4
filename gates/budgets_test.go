package gates

import (
	"strings"
	"testing"
)

// budgetPolicy asks for blocks per SM and no other resource.
const budgetPolicy = `version: 1
gates:
  ptxas: {blocks_per_sm: ">= 2"}
rules:
  - name: default
`

func TestBlocksPerSMNeedsFigures(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*Evidence)
		outcome Outcome
		reason  Reason
		says    string
	}{
		{"within", func(*Evidence) {}, Pass, "", ""},
		{"unknown architecture", func(e *Evidence) { e.Candidate.Arch = "sm_52" }, Defer, ReasonInconclusive, "blocks per SM (needs registers"},
		{"unknown block size", func(e *Evidence) { e.Candidate.Resources.BlockThreads = nil }, Defer, ReasonInconclusive, "blocks per SM (needs registers"},
		{"unknown registers", func(e *Evidence) { e.Candidate.Resources.Registers = nil }, Defer, ReasonInconclusive, "blocks per SM (needs registers"},
		{"static shared memory counts", func(e *Evidence) { e.Candidate.Resources.StaticShared = some(80 << 10) }, Defer, ReasonResources, "limited by shared memory"},
		{"dynamic shared memory counts", func(e *Evidence) {
			e.Candidate.Resources.StaticShared, e.Candidate.Resources.DynamicShared = nil, some(80<<10)
		}, Defer, ReasonResources, "limited by shared memory"},
		{"so does their sum", func(e *Evidence) {
			e.Candidate.Resources.StaticShared, e.Candidate.Resources.DynamicShared = some(40<<10), some(40<<10)
		}, Defer, ReasonResources, "limited by shared memory"},
		{"no shared memory at all", func(e *Evidence) { e.Candidate.Resources.StaticShared = nil }, Pass, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := passing()
			c.change(e)
			expect(t, Judge(parsePolicy(t, budgetPolicy), "test.yaml", e), c.outcome, c.reason, c.says)
		})
	}
}

// Each budget is judged at its limit and one beyond it.
func TestBudgetLimits(t *testing.T) {
	for _, c := range []struct {
		field, budget string
		set           func(r *Resources, n int)
		most          int
	}{
		{"registers", "<= 100", func(r *Resources, n int) { r.Registers = &n }, 100},
		{"registers", `{increase: "<= 8"}`, func(r *Resources, n int) { r.Registers = &n }, 88},
		{"registers", `{increase: "< 8"}`, func(r *Resources, n int) { r.Registers = &n }, 87},
		{"static_shared_memory", "<= 1KiB", func(r *Resources, n int) { r.StaticShared = &n }, 1 << 10},
		{"dynamic_shared_memory", "<= 1KiB", func(r *Resources, n int) { r.DynamicShared = &n }, 1 << 10},
		{"shared_memory", "<= 2KiB", func(r *Resources, n int) { r.StaticShared, r.DynamicShared = some(1<<10), some(n-1<<10) }, 2 << 10},
		{"spill_stores", "<= 0B", func(r *Resources, n int) { r.SpillStores = &n }, 0},
		{"spill_loads", "<= 4B", func(r *Resources, n int) { r.SpillLoads = &n }, 4},
		{"stack", "<= 4B", func(r *Resources, n int) { r.Stack = &n }, 4},
		{"code_size", "<= 4KiB", func(r *Resources, n int) { r.CodeSize = &n }, 4 << 10},
	} {
		t.Run(c.field+" "+c.budget, func(t *testing.T) {
			budget := c.budget
			if !strings.HasPrefix(budget, "{") {
				budget = `"` + budget + `"`
			}
			p := parsePolicy(t, strings.Replace(budgetPolicy, `blocks_per_sm: ">= 2"`, c.field+": "+budget, 1))
			for over, outcome := range []Outcome{Pass, Defer} {
				e := passing()
				c.set(e.Candidate.Resources, c.most+over)
				if v := Judge(p, "test.yaml", e); v.Outcome != outcome || over == 1 && v.Reason != ReasonResources {
					t.Errorf("%d: %s (%s): %s", c.most+over, v.Outcome, v.Reason, v.Summary)
				}
			}
		})
	}
}
