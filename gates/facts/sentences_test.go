package facts

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates/why"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// Every sentence and every step is in a golden file, by the type of its fact, so that a reviewer reads what a user will read.
// `go test ./gates/facts -update` rewrites the file.
func TestSentences(t *testing.T) {
	var lines []string
	seen := map[string]bool{}
	add := func(f any, text string) {
		name := reflect.TypeOf(f).Name()
		seen[name] = true
		lines = append(lines, fmt.Sprintf("%s: %s", name, text))
	}
	for _, f := range sampleFacts() {
		add(f, f.Sentence())
	}
	for _, a := range sampleAdvice() {
		add(a, a.Step(Reader{}))
		if here := a.Step(Reader{Terminal: true, Rounds: 20}); here != a.Step(Reader{}) {
			add(a, here)
		}
	}
	for _, name := range declared(t) {
		if !seen[name] {
			t.Errorf("%s has no sample in this test", name)
		}
	}
	slices.Sort(lines)
	got := strings.Join(lines, "\n") + "\n"
	file := filepath.Join("testdata", "sentences.golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	is, was := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(is), len(was)) {
		if is[i] != was[i] {
			t.Fatalf("%s:%d (-update rewrites it)\ngot  %s\nwant %s", file, i+1, is[i], was[i])
		}
	}
	if len(is) != len(was) {
		t.Fatalf("%d lines, want %d", len(is), len(was))
	}
}

// declared is the types that write a sentence or a step.
func declared(t *testing.T) []string {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "Sentence" && f.Name.Name != "Step" {
				continue
			}
			if name, ok := f.Recv.List[0].Type.(*ast.Ident); ok {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

func sampleFacts() []Fact {
	lower, upper := 0.158, 0.164
	estimate := Estimate{Value: 0.161, Lower: &lower, Upper: &upper}
	input := Input{Shape: "mission", Dims: "B=1 S=512", Seed: 3, Distribution: "normal"}
	secret := Input{Shape: "secret", Dims: "B=1 S=77", Seed: 99, Distribution: "zero", Secret: true}
	counted := EnergyReading{Source: "energy counter", Baseline: 1.25e-3, Candidate: 1.19e-3, Change: -0.048, Lower: -0.051, Upper: -0.0499}
	nan := ElementCount{Kind: NaN, N: 2, All: 1000}
	wrong := WrongCase{Input: input, Problem: nan}
	resource := Resource{Name: "shared memory", Unit: "B", Kernel: "combine"}
	race := Finding{Tool: "racecheck", Kind: KindRace, Text: "a race between write and read of shared memory", File: "k.cu", Line: 3, OtherFile: "k.cu", OtherLine: 9, Count: 6144, Before: true}
	read := Finding{Tool: "memcheck", Kind: KindOutOfBounds, Text: "a read of 4 bytes beyond an array", Kernel: "load", Count: 2}
	mark := Mark{Commit: "4a4fcabb6435731f", Time: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), Outcome: "PASS"}
	kinds := []KindSpeed{{"normal", 0.2}, {"zero", -0.4}}
	asked := []Condition{{"speedup", ">= +10%"}, {"p50", "<= 5us"}}
	speeds := []ShapeSpeed{{Shape: "mission", Speedup: estimate, Asked: asked[:1]}, {Shape: "small", TooFew: true}}
	times := []ShapeTime{{Shape: "mission", Micros: 12.5}, {Shape: "small", Micros: 3}}
	on := KindOn{Shape: "mission", Kind: "zero"}
	loss := LostBy{Shape: "mission", Merges: []Loss{{"4a4fcabb6435731f", -0.01}, {"5b4fcabb6435731f", -0.02}}}
	return []Fact{
		ApartFromBaseline{Launches: 2880, Compared: 64, Unseen: 0.012, Asked: 0.01},
		AgainstMark{Shape: "mission", Mark: mark, Speedup: -0.07, Unmeasured: 1}, AgainstMark{Shape: "mission", Mark: Mark{Commit: mark.Commit}, Gained: &lower, Speedup: -0.01, Unmeasured: 2},
		AllPassed{}, AllPassed{Static: true}, AsBefore{Input: input, Problem: nan},
		BadElements{Bad: 3, All: 1000, Share: 0.003, Asked: "<= 0%"}, BaselineFailedToo{Error: "no such name"},
		BatchFaster{Inputs: on, Micros: 3}, BatchGainsMore{Inputs: KindOn{Shape: "mission"}, Gain: 12, Most: 3.5},
		BelowBest{Shapes: []BelowMark{{Shape: "mission", Mark: mark, Speedup: estimate, Asked: "<= 5%"}}, Lost: &loss}, BelowFloor{Shape: "mission", Micros: 2, Floor: 3},
		BothWrong{Cases: 4, First: wrong}, BringsDisturbance{Shape: "mission", With: 0.2, Before: 0.01},
		BuildFailed{Candidate: true, Error: "e"}, BuildFailed{Baseline: true, Error: "e"}, BuildFailed{Baseline: true, Candidate: true, Error: "e"}, Built{}, Built{Compiler: "nvcc 13.0", SameCode: true},
		Capped{Most: 0.154, Kinds: []string{"zero", "large"}}, CaseNotRun{Input: input}, CaseNotRun{Input: secret, SecondLaunch: true}, CaseNotRun{Input: input, BaselineOutput: true},
		CasesNotRun{Missing: []Fact{CaseNotRun{Input: input}}}, CasesPassed{Cases: 4, MaxAbs: 0.01, Norm: 0.002}, CasesPassed{Cases: 4, Deterministic: true, BitIdentical: true},
		ChoosesBySize{Side: "candidate", Chosen: "mission by fast"},
		Clean{Ran: []string{"memcheck", "racecheck"}, Cases: 2}, Clean{Ran: []string{"memcheck"}, Cases: 1, Existing: 2, Lacking: []ToolLacking{{Tool: "racecheck"}}}, Clean{},
		CoarseClock{Shape: "mission", Step: 0.02, Most: 0.005}, ControlOff{Shape: "mission", Control: estimate, Allowed: "2%"},
		Detectable{Shape: "mission", Rounds: 20, Share: 0.018}, Detectable{Shape: "mission", Rounds: 20, Share: 0.018, Needed: 47}, Disturbs{Shape: "mission", Slower: 0.11, Allowed: "2%"},
		ElementCount{Kind: Unwritten, N: 1, All: 9}, ElementCount{Kind: Infinite, N: 1, All: 9}, nan, EndToEnd{Miss: nan},
		ErrorBound{Error: NormError, Value: 0.437, Asked: "<= 2%"}, ErrorBound{Error: MaxError, Value: 1.1, Asked: "<= 0.5"}, ErrorBound{Error: MeanError, Value: 1.1, Asked: "<= 0.5"},
		ExistingCases{Wrong: 1, All: 4}, ExistingFindings{Findings: 2}, ExistingTimed{Shapes: []string{"mission", "small"}},
		FailedWhileTimed{Round: 2, Detail: "it crashed"}, FasterWithState{Shape: "mission", Faster: 0.5},
		Fault{Text: "no GPU"}, Fault{Setup: true, Text: "the reference does not run"},
		Faulty{Findings: []Finding{read, race}, Hidden: 3}, Faulty{Findings: []Finding{race}, Existed: true}, Faulty{Hidden: 3}, FaultyBaseline{First: race, More: 2},
		FewBlocks{Kernel: "combine", Blocks: 1, Asked: ">= 2", LimitedBy: "registers"}, FewRounds{Rounds: 4, First: 6}, race, read,
		GainAlone{Batch: 10, Alone: 1, Speedup: &estimate}, GainAlone{Refuted: true, Batch: 10, Alone: 1}, GainUnseen{Shape: "mission", Wall: 0.01, Device: 0.2},
		Grown{Resource: resource, Value: 4096, Baseline: 2048, Asked: "<= 1KiB"}, HiddenFindings{Findings: 3}, InputNotSanitized{Shape: "small", Distribution: "zero"},
		KeepsState{Globals: []string{"state", "cache"}}, KeepsState{Globals: []string{"once (4 B)"}, CPU: true}, KindsApart{Shape: "mission", Kinds: kinds}, Lacking{Gate: "ptxas", Why: NoResources{}}, LessPrecise{Input: input, Norm: 0.02, Baseline: 0.001}, loss,
		BlockLift{Limit: "shared memory", Used: 210944, Blocks: 1, Most: 115712}, sampleWhy("", false), sampleWhy("", true), sampleWhy(why.BankConflicts, true), sampleWhy(why.Spills, true), sampleWhy(why.Occupancy, true),
		Explained{why.Explanation{Static: true}}, Explained{why.Explanation{Static: true, Moved: true}}, Explained{why.Explanation{Static: true, Moved: true, Rows: []why.Row{{ID: "registers", Name: "registers a thread", Baseline: new(109.0), Candidate: new(105.0)}}}},
		Explained{why.Explanation{Static: true, Moved: true, Rows: []why.Row{{ID: "cpu_switches", Name: "context switches", Baseline: new(81.0), Candidate: new(1.5)}}}},
		CodeSizes{Before: 1000, After: 1060, Limit: "<= 5%"}, EnergyChanges{Shapes: []EnergyChange{{Shape: "mission", EnergyReading: counted, Other: &EnergyReading{Source: "power draw", Baseline: 1.3e-3, Candidate: 1.31e-3, Change: 0.0077, Lower: 0.001, Upper: 0.012}, Disagree: true}, {Shape: "long", EnergyReading: counted}}, Limit: 0.05, Asked: "<= 5%"}, NoEnergy{}, NoEnergy{Shape: "long"}, NoEnergy{Why: "NVML has no energy counter"}, ClockMoved{Shape: "mission", Round: 3, Low: 1755, High: 1980, Difference: 0.03}, FailedInSegment{Detail: "illegal address"}, WrongInSegment{Shape: "mission", Problem: Quote("max abs 3")},
		ManifestRemoved{}, MeanAlone{Median: 5, Mean: -1}, MergedCode{}, MetricMissed{Shape: "mission", Metric: "sm__throughput.avg", Value: 10, Asked: ">= 50"}, MetricsHold{Metrics: 3, Beyond: 1},
		MostlyDisturbed{Shape: "mission", Disturbed: 61, Taken: 120}, NoBaseline{}, NoBaseline{Asked: true}, NoBuild{}, NoMark{Shapes: []string{"mission"}}, NoProfile{}, NoResources{}, NoResources{Unlimited: true},
		NoSanitizer{}, NoShapeToMeasure{}, NoShapes{}, NoSuchShapes{Names: []string{"moon"}}, NoneMet{Missed: []MetricMissed{{Shape: "mission", Metric: "dram", Value: 80, Asked: "< 50"}}}, NoneWorse{Wrong: 1, All: 4},
		NotBitIdentical{}, NotCounted{Metrics: []string{"a", "b"}}, NotDeterministic{}, NotReached{}, NotRecorded{Resources: []string{"registers"}, Occupancy: true},
		NotSanitized{Missing: []Fact{UnknownShape{Name: "moon"}, SecretCasesLacking{Cases: 2}}}, NotSearched{Why: NoSanitizer{}}, NotSearched{Why: NoSanitizer{}, Note: true}, NotVerified{Round: 3},
		NoWeights{}, NothingCompared{}, NothingGained{Asked: "speedup >= +10%"}, NothingGainedOn{Shapes: []string{"mission"}, Asked: "speedup >= +10%"}, NothingTimed{}, NothingToMeasure{},
		OfOutput{Output: "scale", Miss: nan}, OfSeed{Seed: 3, Problem: nan}, OfShape{Shape: "mission", Fact: SlowKind{Kind: "zero", Speedup: estimate, Limit: -0.02}}, OfVariant{Variant: "long", Fact: NoResources{}},
		OverBudget{Exceeded: []Fact{OverLimit{Resource: resource, Value: 4096, Limit: 2048}}}, OverLimit{Resource: Resource{Name: "registers"}, Value: 140, Limit: 128},
		PassesWithoutDisturbed{Samples: 7, With: NothingTimed{}}, PrecisionKept{Limit: "<= 4"}, PrecisionLost{Input: input, Output: "scale", Norm: 0.0079, Baseline: 3e-8, Limit: "<= 4"}, PreparesOnce{Shape: "mission"}, ProfileMissed{Missed: []Fact{MetricMissed{Shape: "mission", Metric: "dram", Value: 80, Asked: "< 50"}}},
		ProfileSkipped{Why: "no permission"}, ProfileSkippedNote{Why: "no permission"}, Quote("text"), Reproducible{WrongCase: wrong}, SecretCasesLacking{Cases: 2}, Series{NoBuild{}, NoProfile{}},
		ShapeSpeed{Shape: "mission", TooFew: true}, ShapeSpeed{Shape: "mission", Speedup: estimate, Asked: asked, ByInputs: kinds, Remarks: []Fact{Waits{Micros: 12345}}, But: []Fact{SlowTail{Metric: "p90", Speedup: estimate, Limit: 0.2}}},
		ShapeTime{Shape: "mission", TooFew: true}, ShapeTime{Shape: "mission", Micros: 12.5, Roofline: 0.4}, ShapeTime{Shape: "mission", Asked: []TimeAsked{{"p50", 12.5, 12, 13, "<= 10us"}}},
		SlowKind{Kind: "zero", Speedup: estimate, Limit: -0.02}, SlowTail{Metric: "mean", Speedup: estimate, Limit: 0.2},
		Speeds{Result: Proven, Shapes: speeds}, Speeds{Result: TooSlow, Shapes: speeds}, Speeds{Result: Slower, Shapes: speeds}, Speeds{Result: Undecided, Shapes: speeds, Rounds: 20, Exhausted: true, CodeNumber: 3},
		ReplayNotTried{Shape: "mission", Recording: "recorded:decode"}, ReplayPasses{Input: Input{Shape: "mission", Dims: "S=8", Seed: 7, Distribution: "recorded:decode"}},
		StateKept{Input: input}, StepAlone{Batch: 0.08, Speedup: estimate}, StepAlone{Refuted: true, Batch: 0.08, Speedup: estimate}, StatusOnly{}, Suspicious{Why: PreparesOnce{Shape: "small"}}, TestFailed{Detail: "status 1"}, TestFailed{Detail: "status 1", Baseline: "status 2"}, TestPassed{Command: "./test"},
		Times{Shapes: times}, Times{Result: TimesTooLong, Shapes: times}, Times{Result: TimesUndecided, Shapes: times, Rounds: 20}, Settled{Rounds: 6}, TooFewAlone{}, TooNoisy{Shape: "mission", Rounds: 6, Most: 16, Share: 0.45, Enough: 0.1, Needed: 380, Load: 14.2, Cores: 2}, ToolFailed{Tool: "memcheck", Detail: "it timed out"}, ToolLacking{Tool: "memcheck", Why: "not installed"}, ToolLacking{Tool: "memcheck"},
		TwoGroups{Side: "candidate", Shape: "mission", Apart: 0.053, Slow: 0.4}, Drifts{Side: "baseline", Shape: "mission", Change: -0.031},
		Uneven{Inputs: on}, Unfit{Why: MostlyDisturbed{Shape: "mission", Disturbed: 61, Taken: 120}}, UnknownShape{Name: "moon"}, Unreliable{Why: NothingTimed{}}, Waits{Micros: 2.5e6}, Waits{Micros: 3},
		WithinBudget{Kernels: []KernelFigures{{Kernel: "split", Registers: new(64), Shared: new(1536), Blocks: new(1), Spilt: new(0)}, {Kernel: "combine", Registers: new(32)}}},
		WithinBudget{Kernels: []KernelFigures{{Stack: new(64), CodeSize: new(4096)}}, WorstOf: 4},
		wrong, WrongCase{Input: secret, Problem: nan, Baseline: nan, Existed: true}, WrongCase{Input: input, Problem: nan, Baseline: nan}, WrongCase{Input: input, Problem: nan, Baseline: NotDeterministic{}},
		WeightsLack{Shapes: []string{"mission", "small"}},
		WrongBaseline{Wrong: 1, All: 4, First: wrong}, WrongOutput{Cases: 2, All: 4, First: wrong}, WrongOutput{Cases: 2, All: 4, Existed: 1, First: wrong}, WrongOutput{Cases: 2, All: 4, Existed: 2, First: wrong},
		WrongWhileTimed{Shape: "mission", Round: 2, Problem: nan},
	}
}

func sampleAdvice() []Advice {
	over := OverLimit{Resource: Resource{Name: "registers"}, Value: 140, Limit: 128}
	grown := Grown{Resource: Resource{Name: "stack", Unit: "B"}, Value: 64, Baseline: 0, Asked: "<= 0B"}
	few := FewBlocks{Blocks: 1, Asked: ">= 2", LimitedBy: "registers"}
	return []Advice{
		AddWeights{}, BringStep{Micros: 563.107}, CompareMore{}, SupportShapes{Shapes: []string{"mission", "small"}},
		AddAgreeingRounds{Shape: "mission", Agree: 5, Rounds: 6, CodeNumber: 3}, AddRounds{Shape: "mission", Rounds: 27}, AgreeWithReference{Command: "kernelgate check k --seed 3"},
		AsRefactoring{Label: "refactoring", Rule: "refactoring", Asked: "speedup >= -2%"}, AsRefactoring{Title: "^refactor", Rule: "refactoring"},
		BringKinds{Shape: "mission"}, BringKinds{Shape: "mission", Kinds: []KindLimit{{"zero", 35.3978}, {"large", 0.51239}}}, BringTime{Shape: "mission", Micros: 19023.37}, BringWithin{Shape: "mission", Asked: "p50 <= 5us"},
		ChangeCode{}, ChangeVariant{Shapes: []string{"mission", "small"}}, CheckManifest{}, ComputeWhole{}, EndInTime{Command: "kernelgate check k --seed 3"}, FitMoreBlocks{FewBlocks: few, Variant: "long"}, FixBase{}, FixBaseOrCompiler{}, FixExistingCases{},
		FixFindings{}, FixFindings{Existed: true}, FixSlowLaunches{Shape: "mission"}, FreeMachine{}, GainAloneToo{Shape: "mission"}, GainMore{Shape: "mission"}, Gather{Gate: "ptxas", Why: NoResources{}},
		KeepManifest{}, KeepNothing{}, KeepPrecision{Command: "kernelgate check k --seed 3"}, RaiseNoise{}, LimitIncrease{Grown: grown}, LookForRace{Searched: NoSanitizeGate}, LookForRace{Searched: NotYetSearched, CPU: true}, LookForRace{Searched: NothingFound, Shapes: "small"},
		MakeItCompile{}, MeasureMore{}, MeasureShape{Shape: "mission"}, MeasureUndisturbed{}, OnUnseenSize{Advice: WinBack{Shape: "secret (N=3)", Asked: "speedup >= -2%"}}, OrMeasureMore{Advice: FixSlowLaunches{Shape: "mission"}},
		PassTest{Command: "./test"}, RaiseBelowBest{}, Reduce{OverLimit: over, Variant: "long"}, RunToEnd{Under: "memcheck"}, SanitizeLess{}, SeeForYourself{Command: "kernelgate check k"}, ShowWork{},
		StartChange{Kernel: "k", Shape: "mission"}, Stated{Fact: MetricMissed{Shape: "mission", Metric: "dram", Value: 80, Asked: "< 50"}}, TimeSizeAgain{Command: "kernelgate check k", Dims: "N=3 M=2"}, UseRunnerWithTools{},
		WinBack{Shape: "mission", Asked: "speedup >= -2%"}, WinBackBest{Shape: "mission", Commit: "4a4fcabb6435731f"},
	}
}

func sampleWhy(cause why.Cause, moved bool) Explained {
	x := Explained{why.Explanation{Cause: cause, Moved: moved, Faster: cause == why.BankConflicts}}
	x.Baseline.Limiter, x.Candidate.Limiter = &why.Limiter{Name: "shared memory", Share: 97}, &why.Limiter{Name: "DRAM", Share: 71}
	if cause == why.Occupancy {
		x.Baseline.Blocks, x.Candidate.Blocks, x.Candidate.LimitedBy = new(2.0), new(1.0), "shared memory"
	}
	if moved {
		x.Rows = []why.Row{{Name: "DRAM", Unit: "%", Baseline: new(45.31), Candidate: new(71.4), Moved: true}}
	}
	return x
}
