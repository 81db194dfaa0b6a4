package command

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather"
)

var _ runners.Backend = (*Worker)(nil)

type silent struct{}

func (silent) Report(runners.Event) {}

func noEnv(string) string { return "" }

const policyText = `version: 1
gates:
  correctness: {shapes: all, seeds: [0, 1], secret_cases: 2, norm_error: "<= 0.1%"}
  performance:
    target: {shapes: [mission], speedup: ">= +10%"}
    guard: {shapes: all, speedup: ">= -50%"}
    rounds: {min: 6, max: 6}
    pairs: 4
rules:
  - name: default
`

// A trial is a change to the kernel in testdata.
type trial struct {
	baseline, candidate string        // kernel.sh; empty means the file unchanged
	timeout             time.Duration // of a bench process; 0 means a minute
}

func (r trial) job(t *testing.T) (runners.Job, Config) {
	t.Helper()
	text, err := os.ReadFile("testdata/kernel/kernel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse("kernel.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("test.yaml", []byte(policyText))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	side := func(name, kernel string) runners.Side {
		dir := filepath.Join(root, name)
		if err := os.CopyFS(dir, os.DirFS("testdata/kernel")); err != nil {
			t.Fatal(err)
		}
		if kernel != "" {
			if err := os.WriteFile(filepath.Join(dir, "kernel.sh"), []byte(kernel), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return runners.Side{Dir: dir, Variant: m.DefaultVariant}
	}
	base := side("merge-base", r.baseline)
	timeout := time.Minute
	if r.timeout > 0 {
		timeout = r.timeout
	}
	return runners.Job{Manifest: m, Policy: p, Trusted: base.Dir, Baseline: &base, Candidate: side("change", r.candidate)},
		Config{Scratch: filepath.Join(root, "build"), Seed: 1, Timeout: timeout, Getenv: noEnv}
}

// gate takes the trial through all gates.
func (r trial) gate(t *testing.T) (*gates.Evidence, *gates.Verdict, *Worker) {
	t.Helper()
	job, config := r.job(t)
	return gate(t, job, config)
}

func gate(t *testing.T, job runners.Job, config Config) (*gates.Evidence, *gates.Verdict, *Worker) {
	t.Helper()
	w, err := NewWorker(t.Context(), job, config)
	if err != nil {
		t.Fatal(err)
	}
	e, err := gather.Gather(t.Context(), job, w, silent{})
	if err != nil {
		t.Fatal(err)
	}
	return e, gates.Judge(job.Policy, "test.yaml", e), w
}

// readsClock is a harness whose clock reads two times. Of one launch after the other it reads the longer one now more often, now less.
func readsClock(less, more int) string {
	return fmt.Sprintf(`print_times() {
    us=%[1]d,%[1]d,%[2]d,%[2]d,%[2]d
    for i in $(seq $((1$(date +%%N) / 1000 %% 500))); do us=$us,%[2]d; done
    echo "{\"shape\":\"$1\",\"us\":[$us]}" >&3
}`, less, more)
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	const onlyTimed = `[ "$KERNELGATE_MODE" = performance ] && `
	for _, c := range []struct {
		name    string
		trial   trial
		outcome gates.Outcome
		reason  gates.Reason
		says    string
	}{
		{"slower", trial{candidate: "us=105"}, gates.Defer, gates.ReasonTooSlow, "Too slow: speedup −4.8\u00a0%"},
		{"does not build", trial{candidate: "us=80; )"}, gates.Defer, gates.ReasonBuild, "The candidate does not build: the build command ended with status 2: kernel.sh: "},
		{"nothing changed", trial{}, gates.Defer, gates.ReasonTooSlow, "Too slow: the machine code is the same as the baseline's"},
		{"wrong output", trial{candidate: "us=50 norm=0.02"}, gates.Defer, gates.ReasonCorrectness,
			"The output is wrong in 6 of 6 cases; first: small, seed 0, normal inputs: norm error 2% (asked <= 0.1%)"},
		{"wrong output while it is timed", trial{candidate: "us=50; " + onlyTimed + "norm=1"}, gates.Defer, gates.ReasonCorrectness,
			"The output was wrong while it was timed, on small in round 1: norm error 100%"},
		{"hangs", trial{candidate: "before() { sleep 100; }", timeout: time.Second}, gates.Defer, gates.ReasonCorrectness,
			"small, seed 0, normal inputs: the bench command did not end within 1s and was killed"},
		{"hangs while it is timed", trial{candidate: onlyTimed + "sleep 100", timeout: 5 * time.Second}, gates.Defer, gates.ReasonCorrectness,
			"The kernel failed while it was timed, in round 1: the bench command did not end within 5s and was killed"},
		{"crashes", trial{candidate: "before() { kill -SEGV $$; }"}, gates.Defer, gates.ReasonCorrectness,
			"the bench command crashed: segmentation fault (SIGSEGV)"},
		{"its program crashes", trial{candidate: "before() { sh -c 'kill -ABRT $$'; exit; }"}, gates.Defer, gates.ReasonCorrectness,
			"the bench command crashed: aborted (SIGABRT)"},
		{"crashes on the second case", trial{candidate: "print_figures() { [ $seed = 0 ] || exit 4; echo '{\"shape\":\"'$1'\",'$2',\"elements\":1,\"max_abs\":0,\"mean_abs\":0,\"norm\":0,\"bad\":0,\"nan\":0}' >&3; }; after() { exit 4; }"},
			gates.Defer, gates.ReasonCorrectness, "The output is wrong in 1 of 2 cases; first: small, seed 1, normal inputs: the bench command ended with status 4"},
		{"fails with last words", trial{candidate: "before() { echo 'CUDA error: no kernel image' >&2; exit 3; }"}, gates.Defer, gates.ReasonCorrectness,
			"small, seed 0, normal inputs: the bench command ended with status 3: CUDA error: no kernel image"},
		{"says what is wrong", trial{candidate: "before() { echo '{\"error\":\"out of memory\"}' >&3; exit 1; }"}, gates.Defer, gates.ReasonCorrectness,
			"small, seed 0, normal inputs: the harness says: out of memory"},
		{"prints garbage", trial{candidate: "before() { echo done >&3; }"}, gates.Defer, gates.ReasonCorrectness,
			"the bench command's results can not be read: descriptor 3, line 1: \"done\" is not a JSON object (print other text on stderr)"},
		{"prints nothing", trial{candidate: "print_figures() { :; }"}, gates.Defer, gates.ReasonCorrectness,
			"the bench command printed no error figures in correctness mode"},
		{"forgets a case", trial{candidate: "all=$(echo \"$KERNELGATE_CASES\" | sed 's/,{\"shape\":\"secret2\".*/]/'); KERNELGATE_CASES=$all"}, gates.Defer, gates.ReasonInconclusive,
			"The evidence lacks what the correctness gate needs: 1 cases were not run; first: 1 secret cases"},
		{"forgets a shape while it is timed", trial{candidate: "print_times() { [ $1 = mission ] || echo '{\"shape\":\"small\",\"ns\":[5]}' >&3; }"}, gates.Defer, gates.ReasonCorrectness,
			"the bench command printed no times for mission (print {\"shape\":\"mission\",\"us\":[…]})"},
		{"checks nothing that it times", trial{candidate: "us=80; " + onlyTimed + "print_figures() { :; }"}, gates.Defer, gates.ReasonCorrectness,
			"the bench command printed no error figures of the outputs that it timed on small"},
		{"its clock is too coarse for the launches", trial{
			baseline:  readsClock(5, 6),
			candidate: readsClock(4, 5),
		}, gates.Error, gates.ReasonRunner,
			"the clock's resolution is 16.7\u00a0% of a sample on mission"},
		{"the baseline fails", trial{baseline: onlyTimed + "exit 7", candidate: "us=80"}, gates.Error, gates.ReasonRunner,
			"The runner could not do its work: measuring round 1: the baseline's harness failed: the bench command ended with status 7; fix it on the base"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, v, w := c.trial.gate(t)
			if v.Outcome != c.outcome || v.Reason != c.reason || !strings.Contains(v.Summary, c.says) {
				t.Errorf("got  %s (%s): %q\nwant %s (%s): …%q…\nlog:\n%s", v.Outcome, v.Reason, v.Summary, c.outcome, c.reason, c.says, w.BuildLog())
			}
		})
	}
}

// TestResultsBesideNoise checks that results through /dev/fd and on standard output count, whatever
// else is printed.
func TestResultsBesideNoise(t *testing.T) {
	t.Parallel()
	job, config := trial{
		baseline:  "us=100; exec 3>&1; before() { echo 'Run: 1 of 2'; }",
		candidate: "before() { echo 'Run: 1 of 2'; echo '{not JSON'; echo warning >&2; }; print_times() { echo '{\"shape\":\"'$1'\",\"us\":[80]}' > /dev/fd/$KERNELGATE_RESULT_FD; }",
	}.job(t)
	w := built(t, job, config)
	rule := job.Policy.RuleFor(job.Change).Gates
	c, err := w.Correctness(t.Context(), rule.Correctness, silent{})
	if err != nil || len(c.Cases) != 6 {
		t.Fatalf("%v: %+v", err, c)
	}
	for _, k := range c.Cases {
		if k.Errors == nil || k.Baseline == nil || k.Failure != nil {
			t.Errorf("got %+v", k)
		}
	}
	r, err := w.Round(t.Context(), rule.Performance, job.Manifest.Shapes[:2], silent{})
	if err != nil || r.Failure != nil || len(r.Series) != 2 {
		t.Fatalf("%v: %+v", err, r)
	}
	for _, s := range r.Series {
		for k, side := range s.Order {
			if want := map[rune]float64{gates.SideBaseline: 100e3, gates.SideControl: 100e3, gates.SideCandidate: 80e3}[side]; s.Nanos[k] != want {
				t.Errorf("%s: sample %d (%c) is %v ns, want %v", s.Shape, k, side, s.Nanos[k], want)
			}
		}
	}
}

// TestBaselineCannotBeCompared checks that a change may fix a baseline that fails: then only the
// candidate has figures.
func TestBaselineCannotBeCompared(t *testing.T) {
	t.Parallel()
	job, config := trial{baseline: "exit 7", candidate: "us=80"}.job(t)
	w := built(t, job, config)
	c, err := w.Correctness(t.Context(), job.Policy.RuleFor(job.Change).Gates.Correctness, silent{})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Cases) != 6 {
		t.Errorf("%d cases, want 6", len(c.Cases))
	}
	for _, k := range c.Cases {
		if k.Errors == nil || k.Baseline != nil || k.Failure != nil {
			t.Errorf("got %+v", k)
		}
	}
}

// built returns a worker with both sides built.
func built(t *testing.T, job runners.Job, config Config) *Worker {
	t.Helper()
	w, err := NewWorker(t.Context(), job, config)
	if err != nil {
		t.Fatal(err)
	}
	for role, side := range map[runners.Role]runners.Side{runners.Baseline: *job.Baseline, runners.Candidate: job.Candidate} {
		if b, err := w.Build(t.Context(), role, side); err != nil || !b.OK {
			t.Fatalf("building the %s: %v, %s", role, err, b.Error)
		}
	}
	return w
}

// alive looks for a process with the given argument.
func alive(t *testing.T, argument string) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && bytes.Contains(text, []byte("sleep\x00"+argument+"\x00")) {
			return true
		}
	}
	return false
}

// TestEvidenceIsComplete measures a kernel that is right and faster. Its harness leaves a process
// behind, which changes nothing.
func TestEvidenceIsComplete(t *testing.T) {
	t.Parallel()
	e, v, w := trial{candidate: "before() { sleep 31415926 & }; print_times() { echo '{\"shape\":\"'$1'\",\"us\":[80,79.7,900,80.5,80]}' >&3; }"}.gate(t)
	if v.Outcome != gates.Pass || !strings.HasPrefix(v.Summary, "Proven: speedup +25.0\u00a0% [+24.4\u00a0%, +25.6\u00a0%] on mission") {
		t.Fatalf("got %s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
	if alive(t, "31415926") {
		t.Error("a process that bench left behind is alive")
	}
	if len(e.Correctness.Cases) != 2*2+2 {
		t.Errorf("%d cases, want 2 shapes × 2 seeds + 2 secret ones", len(e.Correctness.Cases))
	}
	for _, k := range e.Correctness.Cases {
		if k.Errors == nil || k.Baseline == nil || k.Errors.Elements != 64 || k.Dims == "" {
			t.Errorf("case %s is not whole: %+v", k.Shape, k)
		}
	}
	seeds := map[uint64]bool{}
	for i, r := range e.Performance.Rounds {
		seeds[r.Seed] = true
		if len(r.Series) != 2 || r.Before == nil || r.After == nil || r.Failure != nil {
			t.Fatalf("round %d is not whole: %+v", i, r)
		}
		for _, s := range r.Series {
			if len(s.Nanos) != 6 || s.Order[:3] != reversed(s.Order[3:]) || s.Batch != 3 || s.Verified != 2 || s.Worst.Elements != 64 {
				t.Errorf("round %d on %s is not whole: %+v", i, s.Shape, s)
			}
			for k, side := range s.Order {
				want := map[rune]float64{gates.SideBaseline: 100e3, gates.SideControl: 100e3, gates.SideCandidate: 80e3}[side]
				if s.Nanos[k] != want {
					t.Errorf("round %d on %s: sample %d (%c) is %v ns, want the median %v", i, s.Shape, k, side, s.Nanos[k], want)
				}
			}
		}
	}
	if len(seeds) != 6 {
		t.Errorf("the rounds' seeds are %v, want six", seeds)
	}
	if b := e.Candidate; b.Code == "" || b.Compiler != "sh build.sh" || e.SameCode {
		t.Errorf("the build is not whole: %+v", b)
	}
	if log := w.BuildLog(); !strings.Contains(log, "# baseline\nsh build.sh\nbuilding default\n") || !strings.Contains(log, "# candidate\n") {
		t.Errorf("the log is %q", log)
	}
	if notes := w.Notes(); len(notes) != 2 || !strings.Contains(notes[0], "the harness's own words") || !strings.Contains(notes[0], "cuda mode") {
		t.Errorf("the notes are %q", notes)
	}
	if d := w.Device(); d.Kind != "cpu" || d.Name == "" || d.Peak != nil {
		t.Errorf("the device is %+v", d)
	}
}

func reversed(s string) string {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

// TestNothingIsShared checks that a harness sees neither the other side nor the caller's
// environment, and can change nothing that a later process sees.
func TestNothingIsShared(t *testing.T) {
	t.Parallel()
	job, config := trial{}.job(t)
	config.Getenv = func(name string) string {
		return map[string]string{"PATH": "/nowhere:/usr/bin:/bin", "SECRET": "s"}[name]
	}
	w := built(t, job, config)
	dir := w.sides[runners.Candidate].dir
	r := w.sides[runners.Candidate].request(performance)
	r.shapes, r.seed, r.samples = job.Manifest.Shapes[:1], 7, 4
	run := func(argv ...string) string {
		out, failure, err := w.config.harness(argv, dir).run(t.Context(), r)
		if err != nil || failure != nil {
			t.Fatalf("running %s: %v, %v", argv, failure, err)
		}
		return out.stdout.String()
	}
	for range 2 {
		if got := run("sh", "-c", "touch here 2>/dev/null && echo wrote; [ -e /tmp/kept ] && echo kept; touch /tmp/kept; ls .."); got != "head\n" {
			t.Errorf("it printed %q, want its own folder alone", got)
		}
	}
	want := `PATH=/nowhere:/usr/bin:/bin
LC_ALL=C
HOME=/tmp
TMPDIR=/tmp
KERNELGATE_MODE=performance
KERNELGATE_VARIANT=default
KERNELGATE_DEFINES=
KERNELGATE_RESULT_FD=3
KERNELGATE_SHAPES=[{"name":"small","dims":{"N":64}}]
KERNELGATE_SEED=7
KERNELGATE_SAMPLES=4
`
	if got := run("env"); got != want {
		t.Errorf("the environment is\n%swant\n%s", got, want)
	}
}

// TestBuildNeverEnds checks that a build that never ends is the side's fault, not the runner's. If
// neither side's build ends, it is the setup's fault.
func TestBuildNeverEnds(t *testing.T) {
	t.Parallel()
	job, config := trial{}.job(t)
	job.Manifest.Command.Build = []string{"sleep", "100"}
	job.Policy.Rules[0].Gates.Build.Timeout = quantity.Duration(time.Second)
	w, err := NewWorker(t.Context(), job, config)
	if err != nil {
		t.Fatal(err)
	}
	e, err := gather.Gather(t.Context(), job, w, silent{})
	if err != nil || e.Fault != "" || e.Baseline.OK || e.Candidate.OK {
		t.Fatalf("%v, fault %q", err, e.Fault)
	}
	if v := gates.Judge(job.Policy, "p.yaml", e); v.Outcome != gates.Error || v.Reason != gates.ReasonSetup {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
}

func TestVariantsDiffer(t *testing.T) {
	t.Parallel()
	job, config := trial{}.job(t)
	w, err := NewWorker(t.Context(), job, config)
	if err != nil {
		t.Fatal(err)
	}
	job.Manifest.Variants = manifest.Variants{{Name: "a"}, {Name: "b"}}
	codes := map[string]bool{}
	for _, variant := range []string{"a", "b", "a"} {
		b, err := w.Build(t.Context(), runners.Candidate, runners.Side{Dir: job.Trusted, Variant: variant})
		if err != nil || !b.OK {
			t.Fatalf("building %s: %v, %s", variant, err, b.Error)
		}
		codes[b.Code] = true
	}
	if len(codes) != 2 {
		t.Errorf("two variants of the same files have the codes %v", codes)
	}
	if _, err := w.Build(t.Context(), runners.Candidate, runners.Side{Dir: job.Trusted, Variant: "c"}); err == nil || err.Error() != `told has no variant "c" (it has a, b)` {
		t.Errorf("got %v", err)
	}
}

func TestNewWorkerRefuses(t *testing.T) {
	job, config := trial{}.job(t)
	config.Getenv = func(name string) string { return map[string]string{"KERNELGATE_READ": "/opt/venv:venv"}[name] }
	if _, err := NewWorker(t.Context(), job, config); err == nil || !strings.Contains(err.Error(), `KERNELGATE_READ names "venv" (write absolute folders`) {
		t.Errorf("got %v", err)
	}
	job.Manifest.Mode = manifest.ModeCPU
	if _, err := NewWorker(t.Context(), job, config); err == nil || !strings.Contains(err.Error(), "told is a cpu kernel: the command runner runs command kernels") {
		t.Errorf("got %v", err)
	}
}

// TestNoSuchProgram checks that a program that cannot be started is the build's mistake, and is
// named.
func TestNoSuchProgram(t *testing.T) {
	t.Parallel()
	job, config := trial{}.job(t)
	for _, c := range []struct{ name, program, says string }{
		{"no such file", "./bench", "the bench command can not be started: run ./bench: no such file or directory"},
		{"not executable", "./bench.sh", "the bench command can not be started: run ./bench.sh: permission denied"},
		{"not in PATH", "nvbench-of-mine", "the bench command can not be started: find nvbench-of-mine in /usr/local/bin:/usr/bin:/bin:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := harness{argv: []string{c.program}, dir: job.Trusted, timeout: config.Timeout}
			_, failure, err := h.run(t.Context(), request{mode: performance})
			if err != nil || failure == nil || !strings.HasPrefix(failure.Detail, c.says) {
				t.Errorf("got  %v, %v\nwant %s", failure, err, c.says)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	job, config := trial{candidate: "before() { sleep 100; }"}.job(t)
	w, err := NewWorker(t.Context(), job, config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(context.Canceled)
	if _, err := gather.Gather(ctx, job, w, silent{}); err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("got %v", err)
	}
}
