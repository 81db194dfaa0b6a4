package cpu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
)

const existingManifest = `version: 1
name: f
mode: cpu
entry: f
flags: [-O1]
source: f.c
%s
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: n, dtype: i32, access: scalar, value: N}
reference: {source: r.c, entry: r}
tolerance: {abs: 1e-5}
shapes: {even: {N: 64}, odd: {N: 63}, more: {N: 128}}
`

// existingVerdict has a change measured, and judges it by each word of the policy.
func existingVerdict(t *testing.T, threads, gate, base, head string) (report, defers *gates.Verdict) {
	t.Helper()
	m, err := manifest.Parse("kernel.yaml", fmt.Appendf(nil, existingManifest, threads))
	if err != nil {
		t.Fatal(err)
	}
	policy := func(word string) *policy.Policy {
		p, err := policy.Parse("p.yaml", []byte("version: 1\ngates:\n  "+strings.ReplaceAll(gate, "WORD", word)+"\nrules: [{name: default}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	const ref = "#include <stdint.h>\nvoid r(const double *x, double *y, int32_t n) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }\n"
	e := gatherFiles(t, m, policy("report"), map[string]string{"base/f.c": base, "base/r.c": ref, "head/f.c": head})
	return gates.Judge(policy("report"), "p.yaml", e), gates.Judge(policy("defer"), "p.yaml", e)
}

// scaleLoop is a kernel whose loop body may be preceded and followed by mistakes.
func scaleLoop(before, element, after string) string {
	return "#include <stdint.h>\n#include <math.h>\nvoid f(const float *x, float *y, int32_t n)\n{\n" + before +
		"\n    for (int i = 0; i < n; i++)\n        y[i] = " + element + ";\n" + after + "\n}\n"
}

// A baseline is wrong in one case. Who keeps it that way passes, with a report; who makes
// it worse, or makes a second mistake that the first one could hide, does not.
func TestExistingCases(t *testing.T) {
	const (
		tail      = "n % 2 && i == n - 1 ? 0 : 2 * x[i]"
		otherTail = "i < n - n % 2 ? x[i] + x[i] : 0"
		crash     = "    if (n % 2) *(volatile int *)0 = n;"
		varies    = "nextafterf(2 * x[i], clock_bit(i) ? 9e9f : -9e9f)"
		clock     = `static int clock_bit(int i)
{
    uint64_t t;
#ifdef __aarch64__
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
#else
    t = __builtin_ia32_rdtsc() >> 2;
#endif
    return (t ^ (uint64_t)i * 0x9E3779B97F4A7C15u >> 60) & 1;
}
`
	)
	withClock := func(kernel string) string { return strings.Replace(kernel, "void f(", clock+"void f(", 1) }
	for name, c := range map[string]struct {
		base, head string
		passes     bool
		says       string
	}{
		"kept":             {scaleLoop("", tail, ""), scaleLoop("", otherTail, ""), true, "1 of 3 cases fail as before"},
		"fixed":            {scaleLoop("", tail, ""), scaleLoop("", "x[i] + x[i]", ""), true, "Every required gate passed."},
		"a second one":     {scaleLoop("", tail, ""), scaleLoop("", "n % 2 && i >= n - 2 ? 0 : 2 * x[i]", ""), false, "2 of 63 elements"},
		"a larger error":   {scaleLoop("", tail, ""), scaleLoop("", "n % 2 && i == n - 1 ? 1000 : 2 * x[i]", ""), false, "the baseline is wrong there too"},
		"NaN instead":      {scaleLoop("", tail, ""), scaleLoop("", "n % 2 && i == n - 1 ? NAN : 2 * x[i]", ""), false, "NaN"},
		"not written":      {scaleLoop("", tail, ""), strings.Replace(scaleLoop("", "2 * x[i]", ""), "i < n;", "i < n - n % 2;", 1), false, "never written"},
		"another case":     {scaleLoop("", tail, ""), scaleLoop("", "i == n - 1 && n != 128 ? 0 : 2 * x[i]", ""), false, "even, seed 0"},
		"a crash":          {scaleLoop("", tail, ""), scaleLoop(crash, tail, ""), false, "crashed"},
		"writes outside":   {scaleLoop("", tail, ""), scaleLoop("", otherTail, "    if (n % 2) y[n] = 1;"), false, "wrote outside its arguments"},
		"writes its input": {scaleLoop("", tail, ""), scaleLoop("", otherTail, "    if (n % 2) ((float *)x)[0] = 1;"), false, "wrote to its input x"},

		"crashes as before":            {scaleLoop(crash, "2 * x[i]", ""), scaleLoop("", "x[i] + x[i]", crash), true, "1 of 3 cases fail as before"},
		"behind a crash":               {scaleLoop(crash, "2 * x[i]", ""), scaleLoop(crash, "n == 128 && i == 5 ? 0 : 2 * x[i]", ""), false, "more, seed 0"},
		"writes outside as before":     {scaleLoop("", "2 * x[i]", "    if (n % 2) y[n] = 1;"), scaleLoop("    if (n % 2) y[n] = 2;", "x[i] + x[i]", ""), true, "1 of 3 cases fail as before"},
		"writes its input as before":   {scaleLoop("", "2 * x[i]", "    if (n % 2) ((float *)x)[0] = 1;"), scaleLoop("", "x[i] + x[i]", "    if (n % 2) ((float *)x)[1] = 1;"), true, "1 of 3 cases fail as before"},
		"writes outside, and is wrong": {scaleLoop("", "2 * x[i]", "    if (n % 2) y[n] = 1;"), scaleLoop("", tail, "    if (n % 2) y[n] = 1;"), false, "wrote outside its arguments"},

		"varies as before": {withClock(scaleLoop("", varies, "")), withClock(scaleLoop("", strings.Replace(varies, "2 * x[i]", "0.5f * (4 * x[i])", 1), "")), true, "3 of 3 cases fail as before"},
		"varies":           {scaleLoop("", "2 * x[i]", ""), withClock(scaleLoop("", varies, "")), false, "gave different bits"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, defers := existingVerdict(t, "", `correctness: {seeds: [0], norm_error: "<= 90%", determinism: true, existing: WORD}`, c.base, c.head)
			if (report.Outcome == gates.Pass) != c.passes || !c.passes && report.Reason != gates.ReasonCorrectness || !strings.Contains(report.Summary, c.says) {
				t.Errorf("%s (%s): %s", report.Outcome, report.Reason, report.Summary)
			}
			if name != "fixed" && (defers.Outcome != gates.Defer || defers.Reason != gates.ReasonCorrectness) {
				t.Errorf("where the policy defers: %s (%s): %s", defers.Outcome, defers.Reason, defers.Summary)
			}
		})
	}
}

// The same with mistakes that only a sanitizer sees. One that ends the process would hide
// all that come behind it.
func TestExistingFindings(t *testing.T) {
	const (
		over   = "    volatile float beyond = x[n];\n    (void)beyond;"
		second = "    volatile float more = x[n + 1];\n    (void)more;"
		wider  = "    volatile float beyond;\n    for (int k = 0; k < 9; k++)\n        beyond = x[n + k];\n    (void)beyond;"
		output = "    volatile float mine = y[n];\n    (void)mine;"
		shift  = "    volatile int bits = 40;\n    volatile int moved = 1 << bits;\n    (void)moved;"
	)
	for name, c := range map[string]struct {
		base, head string
		passes     bool
		says       string
	}{
		"kept":             {scaleLoop(over, "2 * x[i]", ""), scaleLoop("", "x[i] + x[i]", "\n\n"+over), true, "1 sanitizer finding as before"},
		"a second line":    {scaleLoop(over, "2 * x[i]", ""), scaleLoop(over, "x[i] + x[i]", second), false, "memcheck: a read of 4 bytes outside the argument x"},
		"more of the same": {scaleLoop(over, "2 * x[i]", ""), scaleLoop("", "x[i] + x[i]", wider), false, "memcheck: a read of 4 bytes outside the argument x"},
		"another argument": {scaleLoop(over, "2 * x[i]", ""), scaleLoop(over, "x[i] + x[i]", output), false, "outside the argument y"},
		"another kind":     {scaleLoop(over, "2 * x[i]", ""), scaleLoop(over, "x[i] + x[i]", shift), false, "shift exponent 40"},
		"ends behind it":   {scaleLoop(over, "2 * x[i]", ""), strings.Replace(scaleLoop(over, "2 * x[i]", "    if (x[n - 1] != 7) _exit(0);"), "#include", "#include <unistd.h>\n#include", 1), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, defers := existingVerdict(t, "", "sanitize: {shapes: [even], secret_cases: 0, tools: [memcheck], existing: WORD}", c.base, c.head)
			if (report.Outcome == gates.Pass) != c.passes || !c.passes && report.Reason != gates.ReasonCorrectness || !strings.Contains(report.Summary, c.says) {
				t.Errorf("%s (%s): %s", report.Outcome, report.Reason, report.Summary)
			}
			if defers.Outcome != gates.Defer || defers.Reason != gates.ReasonCorrectness {
				t.Errorf("where the policy defers: %s (%s): %s", defers.Outcome, defers.Reason, defers.Summary)
			}
		})
	}
}

// A timed launch is wrong on the inputs on which the baseline is, and that is recorded for
// each output. One that is wrong on top of it is not as before.
func TestExistingTimedOutputs(t *testing.T) {
	t.Parallel()
	const timed = `correctness: {seeds: [0], norm_error: "<= 90%", existing: WORD}
  performance: {guard: {shapes: [odd], speedup: ">= -90%"}, rounds: {min: 6, max: 6}, pairs: 8, control: 50%, solo_shift: 50%, tails: none}`
	base := scaleLoop("", "n % 2 && i == n - 1 ? 0 : 2 * x[i]", "")
	report, defers := existingVerdict(t, "", timed, base, scaleLoop("", "i < n - n % 2 ? x[i] + x[i] : 0", ""))
	if report.Reason == gates.ReasonCorrectness || !strings.Contains(strings.Join(report.Existing, ", "), "1 of 3 cases fail as before, timed outputs on odd are wrong as before") {
		t.Errorf("%s (%s): %s %q", report.Outcome, report.Reason, report.Summary, report.Existing)
	}
	if defers.Outcome != gates.Defer || defers.Reason != gates.ReasonCorrectness {
		t.Errorf("where the policy defers: %s (%s): %s", defers.Outcome, defers.Reason, defers.Summary)
	}
	// Wrong in one more element where the input is large, which no case draws.
	report, _ = existingVerdict(t, "", timed, base, scaleLoop("", "i < n - n % 2 && !(n % 2 && i == 3 && x[0] > 0.5f) ? x[i] + x[i] : 0", ""))
	if report.Outcome != gates.Defer || report.Reason != gates.ReasonCorrectness {
		t.Errorf("%s (%s): %s", report.Outcome, report.Reason, report.Summary)
	}
}

// A race that the baseline has as well is reported; a second one is not hidden by it.
func TestExistingRaces(t *testing.T) {
	raced := func(element, more string) string {
		return "#include <pthread.h>\n#include <stdint.h>\nstatic volatile float shared, second;\n" +
			"static void *other(void *x) { for (int k = 0; k < 5000; k++) { shared = *(const float *)x; " + more + " } return 0; }\n" +
			"void f(const float *x, float *y, int32_t n)\n{\n    pthread_t t;\n    int started = pthread_create(&t, 0, other, (void *)x) == 0;\n" +
			"    for (int k = 0; k < 5000; k++) { shared = 1; " + more + " }\n    if (started) pthread_join(t, 0);\n" +
			"    for (int i = 0; i < n; i++)\n        y[i] = shared > 1e30f ? 0 : " + element + ";\n}\n"
	}
	for name, c := range map[string]struct {
		head   string
		passes bool
	}{"kept": {raced("0.5f * (4 * x[i])", ""), true}, "a second one": {raced("2 * x[i]", "second = 2;"), false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, defers := existingVerdict(t, "threads: 2", "sanitize: {shapes: [even], secret_cases: 0, tools: [racecheck], existing: WORD}", raced("2 * x[i]", ""), c.head)
			if strings.Contains(report.Summary, "cannot be used here") || strings.Contains(report.Summary, "does not start in the sandbox") {
				t.Skip(report.Summary)
			}
			if (report.Outcome == gates.Pass) != c.passes || !strings.Contains(report.Gates[1].Text, "race") {
				t.Errorf("%s (%s): %s", report.Outcome, report.Reason, report.Summary)
			}
			if defers.Outcome != gates.Defer {
				t.Errorf("where the policy defers: %s (%s): %s", defers.Outcome, defers.Reason, defers.Summary)
			}
		})
	}
}
