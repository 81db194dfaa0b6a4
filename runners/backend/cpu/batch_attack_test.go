package cpu

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/internal/long"
)

// An attempt is a program of testdata/attacks that computes right answers and tries to pass
// without a gain. On a busy machine it may stay undecided; whatever decides it must say why.
type attempt struct {
	name    string // of the file
	defines string
	reasons []gates.Reason // beside inconclusive
	says    []string       // one of them, where it is decided
}

// attackSource is a file of testdata/attacks.
func attackSource(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "attacks", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (c attempt) run(t *testing.T, a *arena) {
	t.Helper()
	name := c.name + strings.Join(strings.Fields(strings.ReplaceAll(c.defines, "#define", "")), "-")
	_, v := a.gate(t, name, "#define _GNU_SOURCE\n"+work+attackSource(t, "slots.h")+c.defines+attackSource(t, c.name+".c"))
	said := slices.ContainsFunc(c.says, func(s string) bool { return strings.Contains(v.Summary, s) })
	switch {
	case v.Outcome == gates.Defer && v.Reason == gates.ReasonInconclusive:
		t.Log(v.Summary)
	case v.Outcome != gates.Defer || !slices.Contains(c.reasons, v.Reason) || !said:
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
}

// fair asks that a kernel with a real gain still passes.
func (a *arena) fair(t *testing.T, source string) {
	t.Helper()
	if _, v := a.decide(t, "fair", source); v.Outcome != gates.Pass {
		t.Errorf("an honest kernel: %s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
}

var (
	suspicious = []gates.Reason{gates.ReasonSuspicious}
	noGain     = []gates.Reason{gates.ReasonSuspicious, gates.ReasonTooSlow}

	inBatch = []string{"launches of a batch share work", "single launches do not confirm it: "}
	uneven  = []string{"a few launches do work that the others skip", "it does work that later launches skip", "slow launches count as well", "launches of a batch share work", "single launches do not confirm it: "}
)

// These are fast in a batch, or in most launches, and no faster where a launch runs alone.
func TestFasterOnlyInABatch(t *testing.T) {
	long.Test(t)
	honest := func(percent int) string {
		return work + attackSource(t, "slots.h") + fmt.Sprintf("void scale(const float *x, float *y, int32_t N) { repeat(x, y, N, %d); }\n", percent)
	}
	a := newArenaOf(t, andFaster, 200, honest(100), reference)
	t.Run("attempts", func(t *testing.T) {
		for _, c := range []attempt{
			{"slow-minority-alone", "", noGain, uneven},
			{"slow-processes-alone", "", noGain, uneven},
			{"slow-first-launches-alone", "", noGain, uneven},
			{"prepares-in-the-second-launch", "", suspicious, uneven},
			{"prepares-bit-by-bit", "", suspicious, uneven},
			{"slow-now-and-then", "", noGain, []string{"slow launches count as well", "Too slow: speedup"}},
			{"fast-when-hurried", "", noGain, uneven},
			{"counts-the-command", "", noGain, uneven},
			// On a busy machine it may keep the processor from the launch that it waits for, and is killed.
			{"serves-itself", "", append(noGain, gates.ReasonCorrectness), append(uneven, "did not return within")},
			{"leaves-work-to-the-next", "", noGain, uneven},
			{"slow-alone-on-one-kind", "", noGain, append(uneven, "with uniform inputs")},
			{"ends-after-its-answer", "", append(noGain, gates.ReasonCorrectness), []string{"Too slow", "wrong", "ended its process"}},
			{"spoils-what-follows", "", noGain, []string{"Too slow", "disturbs"}},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, a)
			})
		}
	})
	a.fair(t, honest(40))
}

// A limit for the p90 holds for launches that run alone as well.
func TestSlowProcessesAloneUnderAP90(t *testing.T) {
	long.Test(t)
	policy := strings.Replace(andFaster, `speedup: ">= +50%"`, `p90: "<= 150us"`, 1)
	a := newArenaOf(t, policy, 200, work+attackSource(t, "slots.h")+"void scale(const float *x, float *y, int32_t N) { repeat(x, y, N, 100); }\n", reference)
	attempt{"slow-processes-alone", "#define EVERY 4\n#define SLOW 2000\n", noGain, uneven}.run(t, a)
	a.fair(t, work+attackSource(t, "slots.h")+"void scale(const float *x, float *y, int32_t N) { repeat(x, y, N, 40); }\n")
}

// A recurrence cannot be made faster, but several of them side by side can.
func TestSharedChains(t *testing.T) {
	long.Test(t)
	const loop = `void %s(const %[2]s *x, %[2]s *y, int32_t N)
{
    %[2]s s = 0;
    for (int i = 0; i < N; i++)
        y[i] = s = %[3]s * s + x[i];
}
`
	policy := strings.NewReplacer("+50%", "+10%", "normal, uniform", "uniform").Replace(andFaster)
	for _, c := range []struct {
		size    int
		defines string
	}{
		{2000, "#define LAUNCHES 8\n#define SHARE 100\n"},
		{4000, "#define LAUNCHES 4\n#define SHARE 50\n"},
	} {
		t.Run(fmt.Sprintf("%d %s", c.size, c.defines), func(t *testing.T) {
			t.Parallel()
			a := newArenaOf(t, policy, c.size, work+fmt.Sprintf(loop, "scale", "float", "0.5f"), work+fmt.Sprintf(loop, "reference", "double", "0.5"))
			attempt{"shares-the-chain", c.defines, noGain, inBatch}.run(t, a)
		})
	}
}

// One or two of five kinds of input are answered at once.
func TestKindsAnsweredAtOnce(t *testing.T) {
	long.Test(t)
	const chain = `void %s(const %[2]s *x, %[2]s *y, int32_t N)
{
    for (int i = 0; i < N; i++) {
        %[2]s s = 1;
        for (int j = 24; j > 0; j--)
            s = 1 + s * x[i] / (64 * j);
        y[i] = s;
    }
}
`
	const kinds = `version: 1
rules: [{name: default}]
gates:
  correctness: {shapes: [mission], seeds: [0], distributions: [normal, uniform, dominant, large, constant], secret_cases: 1, norm_error: "<= 0.1%"}
  performance:
    rounds: {min: 6, max: 6}
    pairs: 5
    control: 50%
    solo_shift: 100%
    secret_shape: false
`
	base, reference := work+fmt.Sprintf(chain, "scale", "float"), work+fmt.Sprintf(chain, "reference", "double")
	target := kinds + "    target: {shapes: [mission], speedup: \">= +10%\"}\n"
	guard := kinds + "    guard: {shapes: [mission], speedup: \">= -5%\"}\n"
	for _, c := range []struct {
		name, policy, defines string
		reason                gates.Reason
		says                  []string
	}{
		{"no faster on four kinds", target, "#define KINDS 1\n#define STEPS 0\n", gates.ReasonTooSlow, []string{"a kind of input counts for at most"}},
		{"no faster on three kinds", target, "#define KINDS 2\n#define STEPS 0\n", gates.ReasonTooSlow, []string{"a kind of input counts for at most"}},
		{"slower on four kinds", guard, "#define KINDS 1\n#define STEPS 20\n", gates.ReasonRegression, []string{"each kind of input must reach", "slow launches count as well"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			attempt{"answers-kinds-at-once", c.defines, []gates.Reason{c.reason}, c.says}.run(t, newArenaOf(t, c.policy, 500, base, reference))
		})
	}
}
