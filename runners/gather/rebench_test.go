package gather

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// gathered returns the evidence of a first run.
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

// A memory is a record of one code, and of how often it was asked.
type memory struct {
	earlier  runners.Earlier
	attempts int
	asked    []string
	fail     string

	codeNumber int
}

func (m *memory) Earlier(_ context.Context, c runners.Code) (runners.Earlier, error) {
	m.asked = append(m.asked, "earlier "+c.Baseline+" "+c.Candidate+" on "+c.Device)
	if m.fail == "earlier" {
		return runners.Earlier{}, errors.New("the bot is away")
	}
	return m.earlier, nil
}

func (m *memory) Begin(context.Context, runners.Code) (runners.Attempt, error) {
	m.asked = append(m.asked, "begin")
	if m.fail == "begin" {
		return runners.Attempt{}, errors.New("the bot is away")
	}
	m.attempts++
	return runners.Attempt{Number: m.attempts, CodeNumber: m.codeNumber}, nil
}

// TestCodeNumberInRounds checks that every round has the number of the machine code, and that a
// later code is measured in as many rounds as it needs. The first number is not recorded.
func TestCodeNumberInRounds(t *testing.T) {
	for n, want := range map[int]struct{ rounds, number int }{1: {6, 0}, 7: {11, 7}} {
		now := scripted{compile: true, ratio: 2, job: job(t)}
		now.job.Record = &memory{codeNumber: n}
		e, err := Gather(t.Context(), now.job, &now, silent{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(e.Performance.Rounds); got != want.rounds {
			t.Errorf("machine code %d is measured in %d rounds, want %d", n, got, want.rounds)
		}
		for _, r := range e.Performance.Rounds {
			if r.CodeNumber != want.number {
				t.Errorf("a round of machine code %d says %d", n, r.CodeNumber)
			}
		}
	}
}

// TestRecall checks that earlier evidence about the machine code stands, or that a separate attempt
// is added to it, as requested.
func TestRecall(t *testing.T) {
	const builds = "build baseline, build candidate"
	rounds := func(n int) string { return strings.Repeat(", round", n) }
	fast := scripted{compile: true, ratio: 2}
	for _, c := range []struct {
		name     string
		first    scripted
		alter    func(*gates.Evidence)
		again    bool
		rounds   int
		now      scripted
		asked    string
		attempts string
		begun    int // attempts before this one
	}{
		{"a decided run stands", fast, nil, false, 2, fast, builds, "111111", 1},
		{"an undecided one too", scripted{compile: true, ratio: 1.1}, nil, false, 2, fast, builds, "111111111111", 1},
		{"wrong code stays wrong", scripted{compile: true, ratio: 2, wrong: true}, nil, false, 3, fast, builds, "", 0},
		{"what a rule asks beyond that is an attempt of its own", fast, func(e *gates.Evidence) { e.Performance.Rounds = e.Performance.Rounds[:5] }, false, 0, fast, builds + rounds(1), "111112", 1},
		{"nothing timed yet", fast, func(e *gates.Evidence) { e.Performance = nil }, false, 9, fast, builds + rounds(6), "111111", 0},
		{"nothing kept of two attempts", scripted{}, nil, false, 9, fast, builds + ", correctness" + rounds(6), "333333", 2},
		{"a rebench measures on", fast, nil, true, 2, fast, builds + rounds(2), "11111122", 1},
		{"as many rounds as the last interim asks", fast, nil, true, 0, fast, builds + rounds(12), "111111222222222222", 1},
		{"attempts that left nothing are counted", fast, nil, true, 1, fast, builds + rounds(1), "1111114", 3},
		{"a rebench of wrong code draws other cases, and it stays wrong", scripted{compile: true, ratio: 2, wrong: true}, nil, true, 3, fast, builds + ", correctness", "", 0},
		{"a launch that failed has a new chance", fast, func(e *gates.Evidence) {
			e.Performance, e.Correctness.Cases[0].Failure = nil, &gates.Failure{Kind: gates.FailureTimeout, Detail: "too long"}
		}, true, 3, fast, builds + ", correctness" + rounds(6), "111111", 0},
		{"a crash while it was timed ends the measuring", fast, func(e *gates.Evidence) { e.Performance.Rounds[5].Failure = &gates.Failure{Kind: gates.FailureCrash} }, true, 3, fast, builds, "111111", 1},
		{"a fault before the first round is no attempt", scripted{}, nil, false, 0, scripted{compile: true, ratio: 2, fail: "correctness"}, builds + ", correctness", "", 0},
		{"a fault of its own", fast, nil, true, 2, scripted{compile: true, ratio: 2, fail: "round"}, builds + rounds(1), "111111", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &memory{earlier: runners.Earlier{Evidence: gathered(t, c.first), Head: "0123456789abcdef", Again: c.again}, attempts: c.begun}
			if !c.first.compile {
				m.earlier.Evidence = nil
			} else if c.alter != nil {
				c.alter(m.earlier.Evidence)
			}
			before := ""
			if m.earlier.Evidence != nil {
				before = attempts(m.earlier.Evidence)
			}
			c.now.job = job(t)
			c.now.job.Record, c.now.job.Rounds = m, c.rounds
			e, err := Gather(t.Context(), c.now.job, &c.now, silent{})
			if err != nil {
				t.Fatal(err)
			}
			if asked := strings.Join(c.now.asked, ", "); asked != c.asked || attempts(e) != c.attempts {
				t.Errorf("asked %s; attempts %s\nwant  %s; attempts %s", asked, attempts(e), c.asked, c.attempts)
			}
			if (e.Fault != "") != (c.now.fail != "") {
				t.Errorf("fault %q", e.Fault)
			}
			want := "earlier baseline candidate on scripted"
			if strings.Contains(c.asked, "round") {
				want += ", begin"
			}
			if got := strings.Join(m.asked, ", "); got != want {
				t.Errorf("the record was asked %s, want %s", got, want)
			}
			if m.earlier.Evidence == nil {
				return
			}
			if attempts(m.earlier.Evidence) != before {
				t.Error("the earlier evidence was written to")
			}
			if note := strings.Join(e.Notes, " "); strings.HasPrefix(attempts(e), before) && before != "" && !strings.Contains(note, "measured at 0123456789ab: its evidence counts") {
				t.Errorf("nothing says where the evidence is from: %q", note)
			}
		})
	}
}

// TestNoRoundWithoutARecord checks that a record that does not answer ends the run before a round
// could be seen.
func TestNoRoundWithoutARecord(t *testing.T) {
	for _, step := range []string{"earlier", "begin"} {
		b := &scripted{job: job(t), compile: true, ratio: 2}
		b.job.Record = &memory{fail: step}
		e, err := Gather(t.Context(), b.job, b, silent{})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(e.Fault, "the bot is away") || strings.Contains(strings.Join(b.asked, ", "), "round") {
			t.Errorf("%s: fault %q after %v", step, e.Fault, b.asked)
		}
	}
}

func TestOtherEvidenceIsRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		alter func(*gates.Evidence, *runners.Job)
		says  string
	}{
		{"other machine code", func(e *gates.Evidence, _ *runners.Job) { e.Candidate.Code = "other" }, "both sides build to other machine code than they did"},
		{"another compiler", func(e *gates.Evidence, _ *runners.Job) { e.Baseline.Compiler = "gcc 4" }, "both sides build to other machine code than they did"},
		{"another kernel", func(e *gates.Evidence, _ *runners.Job) { e.Kernel = "other" }, `the kernel was "other" and is "k" now`},
		{"another device", func(e *gates.Evidence, _ *runners.Job) { e.Device.Name = "NVIDIA L4" }, `the device was "NVIDIA L4 " and is "scripted " now`},
		{"other shapes", func(e *gates.Evidence, _ *runners.Job) { e.Shapes[0].Dims = "N=11" }, "the manifest's shapes or their work have changed"},
		{"another manifest", func(_ *gates.Evidence, j *runners.Job) { j.Provenance.Manifest = "n" }, `the manifest's hash was "m" and is "n" now`},
		{"a kernel that was new then", func(e *gates.Evidence, _ *runners.Job) { e.Baseline = nil }, "both sides build to other machine code than they did"},
		{"a removed kernel", func(e *gates.Evidence, _ *runners.Job) { e.Removed = true }, "it says that the kernel was removed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			earlier, now := gathered(t, scripted{compile: true, ratio: 2}), job(t)
			c.alter(earlier, &now)
			now.Record = &memory{earlier: runners.Earlier{Evidence: earlier}}
			e, err := Gather(t.Context(), now, &scripted{job: now, compile: true, ratio: 2}, silent{})
			if err != nil || !strings.Contains(e.Fault, c.says) || !strings.Contains(e.Fault, errOtherEvidence.Error()) {
				t.Errorf("got  %q, %v\nwant %s", e.Fault, err, c.says)
			}
		})
	}
}

// TestCodeOf checks that a side that did not build has no code about which anything could be known.
func TestCodeOf(t *testing.T) {
	ok := func(code string) *gates.Build { return &gates.Build{OK: true, Code: code, Compiler: "cc 1"} }
	for _, c := range []struct {
		name                string
		baseline, candidate *gates.Build
		want                runners.Code
	}{
		{"both", ok("a"), ok("b"), runners.Code{Baseline: "a", Candidate: "b", Compiler: "cc 1", Device: "cpu", Arch: "x"}},
		{"a new kernel", nil, ok("b"), runners.Code{Candidate: "b", Compiler: "cc 1", Device: "cpu", Arch: "x"}},
		{"two compilers", &gates.Build{OK: true, Code: "a", Compiler: "cc 2"}, ok("b"), runners.Code{Baseline: "a", Candidate: "b", Compiler: "cc 1, cc 2", Device: "cpu", Arch: "x"}},
		{"not built", ok("a"), nil, runners.Code{}},
		{"refused", ok("a"), &gates.Build{Code: "b"}, runners.Code{}},
		{"no hash", ok("a"), ok(""), runners.Code{}},
		{"a baseline that does not build", &gates.Build{}, ok("b"), runners.Code{}},
	} {
		got, known := runners.CodeOf(&gates.Evidence{Device: gates.Device{Name: "cpu", Arch: "x"}, Baseline: c.baseline, Candidate: c.candidate})
		if got != c.want || known != (c.want != runners.Code{}) {
			t.Errorf("%s: %+v, %v, want %+v", c.name, got, known, c.want)
		}
	}
	if (runners.Code{Baseline: "a", Candidate: "b"}).Hash("x") == (runners.Code{Baseline: "b", Candidate: "a"}).Hash("x") || (runners.Code{}).Hash("x", "y") == (runners.Code{}).Hash("xy") {
		t.Error("different codes have one hash")
	}
}

// TestPicksAreKeyed checks that rounds are pooled only if the tuner picked the same configurations on
// both sides, whatever their times were.
func TestPicksAreKeyed(t *testing.T) {
	build := func(micros float64, picks ...string) *gates.Build {
		b := &gates.Build{OK: true, Code: "a", Variant: "v"}
		for i, configuration := range picks {
			if b.Tuning == nil {
				b.Tuning = &gates.Tuning{Offered: []string{"x", "y"}}
			}
			b.Tuning.Picks = append(b.Tuning.Picks, gates.TuningPick{Shape: fmt.Sprint("s", i), Configuration: configuration, Micros: micros})
		}
		return b
	}
	key := func(baseline, candidate *gates.Build) runners.Code {
		c, ok := runners.CodeOf(&gates.Evidence{Baseline: baseline, Candidate: candidate})
		if !ok {
			t.Fatal("there is no code")
		}
		return c
	}
	chosen := func(b *gates.Build) *gates.Build {
		return &gates.Build{OK: true, Code: "a", Parts: []gates.Part{{Build: *b}}}
	}
	first := key(build(1, "x", "y"), build(1, "x", "y"))
	if again := key(build(2, "x", "y"), build(3, "x", "y")); again != first || first.Picks == "" {
		t.Errorf("equal picks have the keys %+v and %+v", first, again)
	}
	if plain := key(build(1), build(1)); plain.Picks != "" {
		t.Errorf("without picks the key is %+v", plain)
	}
	seen := map[string]string{first.Hash(): "the first"}
	for name, c := range map[string]runners.Code{
		"another pick of the candidate": key(build(1, "x", "y"), build(1, "x", "x")),
		"another pick of the baseline":  key(build(1, "x", "x"), build(1, "x", "y")),
		"the sides exchanged":           key(build(1, "x", "x"), build(1, "y", "y")),
		"the sides back":                key(build(1, "y", "y"), build(1, "x", "x")),
		"a new kernel":                  key(nil, build(1, "x", "y")),
		"nothing picked":                key(build(1), build(1)),
		"another part of a choice":      key(chosen(build(1, "x", "y")), chosen(build(1, "y", "x"))),
	} {
		if other, ok := seen[c.Hash()]; ok {
			t.Errorf("%s has the key of %s", name, other)
		}
		seen[c.Hash()] = name
	}
	was := &gates.Evidence{Baseline: build(1, "x"), Candidate: build(1, "x")}
	if err := belongs(&gates.Evidence{Baseline: build(1, "x"), Candidate: build(1, "y")}, was); err == nil || !strings.Contains(err.Error(), "the tuner has picked other configurations of @triton.autotune") {
		t.Errorf("rounds of another pick are added to: %v", err)
	}
	if err := belongs(&gates.Evidence{Baseline: build(2, "x"), Candidate: build(2, "x")}, was); err != nil {
		t.Error(err)
	}
}

// TestRebenchHasABudgetOfItsOwn checks that each attempt has its own time budget: a spent one
// leaves room for a rebench.
func TestRebenchHasABudgetOfItsOwn(t *testing.T) {
	earlier, b := gathered(t, scripted{compile: true, ratio: 2}), &scripted{job: job(t), compile: true, ratio: 2}
	earlier.Performance.Seconds, earlier.Performance.Exhausted = 7200, true
	again := func(rounds int) *gates.Evidence {
		t.Helper()
		b.job.Record, b.job.Rounds = &memory{earlier: runners.Earlier{Evidence: earlier, Again: true}, attempts: 1}, rounds
		e, err := Gather(t.Context(), b.job, b, silent{})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if e := again(2); e.Performance.Exhausted || attempts(e) != "11111122" {
		t.Errorf("exhausted %v, attempts %s", e.Performance.Exhausted, attempts(e))
	}
	for i := range b.job.Policy.Rules {
		b.job.Policy.Rules[i].Gates.Performance.Budget = 1
	}
	if e := again(5); !e.Performance.Exhausted || attempts(e) != "11111122" {
		t.Errorf("with no time: exhausted %v, attempts %s", e.Performance.Exhausted, attempts(e))
	}
}
