package runners

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// gathered is the evidence of a first run, and its verdict.
func gathered(t *testing.T, b scripted) *gates.Evidence {
	t.Helper()
	b.job = job(t)
	b.job.Provenance = gates.Provenance{Manifest: "m", Policy: "p"}
	e, err := Gather(t.Context(), b.job, &b, silent{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func attempts(e *gates.Evidence) string {
	var b strings.Builder
	if e.Performance != nil {
		for _, r := range e.Performance.Rounds {
			b.WriteByte('0' + byte(r.Attempt))
		}
	}
	return b.String()
}

// A rebench builds, keeps what it knows of correctness, and measures an attempt
// of its own, whatever the verdict was.
func TestRebench(t *testing.T) {
	const builds = "build baseline, build candidate"
	rounds := func(n int) string { return strings.Repeat(", round", n) }
	fast := scripted{compile: true, ratio: 2}
	for _, c := range []struct {
		name     string
		first    scripted
		alter    func(*gates.Evidence)
		again    scripted
		rounds   int
		asked    string
		attempts string
	}{
		{"a decided run measures on", fast, nil, fast, 2, builds + rounds(2), "11111122"},
		{"as many rounds as the last look asks", fast, nil, fast, 0, builds + rounds(12), "111111222222222222"},
		{"a third attempt", fast, func(e *gates.Evidence) { e.Performance.Rounds[5].Attempt = 2 }, fast, 1, builds + rounds(1), "1111123"},
		{"wrong code gains nothing from rounds", scripted{compile: true, ratio: 2, wrong: true}, nil, fast, 3, builds, ""},
		{"a crash while it was timed ends the measuring", fast, func(e *gates.Evidence) { e.Performance.Rounds[5].Failure = &gates.Failure{Kind: "crash"} }, fast, 3, builds, "111111"},
		{"a fault in the first attempt lets it go on to its looks", fast, func(e *gates.Evidence) {
			e.Fault, e.Performance.Rounds = "the disk is full", e.Performance.Rounds[:5]
		}, fast, 9, builds + rounds(1), "111111"},
		{"nothing timed yet", fast, func(e *gates.Evidence) { e.Performance = nil }, fast, 9, builds + rounds(6), "111111"},
		{"built now, not then", scripted{ratio: 2}, nil, fast, 9, builds + ", correctness" + rounds(6), "111111"},
		{"a fault of its own", fast, nil, scripted{compile: true, ratio: 2, fail: "round"}, 2, builds + rounds(1), "111111"},
	} {
		t.Run(c.name, func(t *testing.T) {
			earlier := gathered(t, c.first)
			if c.alter != nil {
				c.alter(earlier)
			}
			before := attempts(earlier)
			c.again.job = job(t)
			e, err := Rebench(t.Context(), c.again.job, &c.again, earlier, c.rounds, silent{})
			if err != nil {
				t.Fatal(err)
			}
			if asked := strings.Join(c.again.asked, ", "); asked != c.asked || attempts(e) != c.attempts {
				t.Errorf("asked %s; attempts %s\nwant  %s; attempts %s", asked, attempts(e), c.asked, c.attempts)
			}
			if (e.Fault != "") != (c.again.fail != "") {
				t.Errorf("fault %q", e.Fault)
			}
			if attempts(earlier) != before {
				t.Error("the earlier evidence was written to")
			}
		})
	}
}

// otherCode builds a candidate that is not the one of before.
type otherCode struct{ scripted }

func (o *otherCode) Build(_ context.Context, role Role, _ Side) (gates.Build, error) {
	return gates.Build{OK: true, Code: "other " + string(role)}, nil
}

func TestRebenchRefusesOtherEvidence(t *testing.T) {
	for _, c := range []struct {
		name    string
		alter   func(*gates.Evidence, *Job)
		backend Backend
		says    string
	}{
		{"other machine code", nil, &otherCode{}, "the baseline builds to other machine code than it did"},
		{"no longer builds", nil, &scripted{}, "the candidate no longer builds: no"},
		{"another kernel", func(e *gates.Evidence, _ *Job) { e.Kernel = "other" }, nil, `the kernel was "other" and is "k" now`},
		{"another device", func(e *gates.Evidence, _ *Job) { e.Device.Name = "NVIDIA L4" }, nil, `the device was "NVIDIA L4 " and is "scripted " now`},
		{"other shapes", func(e *gates.Evidence, _ *Job) { e.Shapes[0].Dims = "N=11" }, nil, "the manifest's shapes or their work have changed"},
		{"another manifest", func(_ *gates.Evidence, j *Job) { j.Provenance.Manifest = "n" }, nil, `the manifest's hash was "m" and is "n" now`},
		{"another policy", func(_ *gates.Evidence, j *Job) { j.Provenance.Policy = "q" }, nil, `the policy's hash was "p" and is "q" now`},
		{"a kernel that was new then", func(e *gates.Evidence, _ *Job) { e.Baseline = nil }, nil, "one of the two has a baseline"},
		{"imported figures", func(e *gates.Evidence, _ *Job) { e.Imported = "report.md" }, nil, "its figures come from the older report report.md"},
		{"a removed kernel", func(e *gates.Evidence, _ *Job) { e.Removed = true }, nil, "it says that the kernel was removed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			earlier, now := gathered(t, scripted{compile: true, ratio: 2}), job(t)
			if c.alter != nil {
				c.alter(earlier, &now)
			}
			if c.backend == nil {
				c.backend = &scripted{job: now, compile: true, ratio: 2}
			}
			_, err := Rebench(t.Context(), now, c.backend, earlier, 1, silent{})
			if !errors.Is(err, ErrOtherEvidence) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got  %v\nwant %s", err, c.says)
			}
		})
	}
}

// The time budget is each attempt's own: a spent one leaves room for a rebench.
func TestRebenchHasABudgetOfItsOwn(t *testing.T) {
	earlier, b := gathered(t, scripted{compile: true, ratio: 2}), &scripted{job: job(t), compile: true, ratio: 2}
	earlier.Performance.Seconds, earlier.Performance.Exhausted = 7200, true
	e, err := Rebench(t.Context(), b.job, b, earlier, 2, silent{})
	if err != nil {
		t.Fatal(err)
	}
	if e.Performance.Exhausted || attempts(e) != "11111122" {
		t.Errorf("exhausted %v, attempts %s", e.Performance.Exhausted, attempts(e))
	}
	for i := range b.job.Policy.Rules {
		b.job.Policy.Rules[i].Gates.Performance.Budget = 1
	}
	if e, err = Rebench(t.Context(), b.job, b, earlier, 5, silent{}); err != nil {
		t.Fatal(err)
	}
	if !e.Performance.Exhausted || attempts(e) != "11111122" {
		t.Errorf("with no time: exhausted %v, attempts %s", e.Performance.Exhausted, attempts(e))
	}
}
