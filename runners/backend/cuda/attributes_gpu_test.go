package cuda

import (
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
)

const (
	splitStart = "    __shared__ float sums[D / 32];\n"
	trigger    = "    asm volatile(\"griddepcontrol.launch_dependents;\" ::: \"memory\");\n"
	wait       = "    asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n"
	thenStep   = "    - {entry: combine, grid: [H], block: [64], args: [partial, lse, o, H]}\n"
)

// dependent has the second half start while the first one runs.
func dependent(source ...string) pull {
	return pull{
		manifest: append(splits("16"), "arch: [sm_89, sm_90]", "arch: [sm_90]",
			"args: [q, k, v, partial, lse, H, S, scale]}", "args: [q, k, v, partial, lse, H, S, scale], carveout: 100, priority: -1}",
			thenStep, "    - {entry: combine, grid: [H], block: [64], args: [partial, lse, o, H], programmatic: true}\n"),
		source: append([]string{splitStart, splitStart + trigger}, source...),
	}
}

// overlapping does all of the work in a kernel that lets an empty one start at once. If the next launch of a batch ran next to it,
// a launch would gain more in a batch than on its own. It gains no more, so the kernel passes for what it saves.
func overlapping() pull {
	p := lastBlock(true)
	p.manifest = append(p.manifest, "arch: [sm_89, sm_90]", "arch: [sm_90]", "scale, o, done]}\n", "scale, o, done]}\n    - {entry: after, grid: [1], block: [32], args: [], programmatic: true}\n")
	p.source = append(p.source, splitStart, splitStart+trigger, "__global__ void combine(", "__global__ void after() {}\n\n__global__ void combine(")
	return p
}

// A kernel that starts before the one before it has ended is timed with it, and compared as any other.
func TestLaunchAttributesOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	for name, c := range map[string]struct {
		pull    pull
		outcome gates.Outcome
		reason  gates.Reason
	}{
		"dependent":      {dependent("const int h = blockIdx.x, d = threadIdx.x, D = blockDim.x;\n", "const int h = blockIdx.x, d = threadIdx.x, D = blockDim.x;\n"+wait), gates.Pass, ""},
		"does-not-wait":  {dependent(), gates.Defer, gates.ReasonCorrectness},
		"runs-into-next": {overlapping(), gates.Pass, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.pull.policy, c.pull.timeout = stepsPolicy, 5*time.Second
			e, v := c.pull.gather(t)
			if v.Outcome != c.outcome || c.reason != "" && v.Reason != c.reason {
				t.Errorf("got %s (%s): %s %s\nwant %s (%s)", v.Outcome, v.Reason, v.Summary, e.Fault, c.outcome, c.reason)
			}
			t.Logf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			gainsNoMoreInABatch(t, e)
			keepEvidence(t, name, e)
		})
	}
}

// What an H200 showed of them is judged as it was.
func TestLaunchAttributesRecorded(t *testing.T) {
	for name, want := range map[string]gates.Outcome{"dependent": gates.Pass, "does-not-wait": gates.Defer, "runs-into-next": gates.Pass} {
		e, v := recorded(t, "attributes/"+name, stepsPolicy)
		if v.Outcome != want {
			t.Errorf("%s: %s (%s): %s", name, v.Outcome, v.Reason, v.Summary)
		}
		gainsNoMoreInABatch(t, e)
	}
}

// gainsNoMoreInABatch compares the microseconds that a launch gains in a batch with those that it gains on its own.
func gainsNoMoreInABatch(t *testing.T, e *gates.Evidence) {
	t.Helper()
	if e.Performance == nil {
		return
	}
	type samples struct{ baseline, candidate, alone, aloneCandidate []float64 }
	shapes := map[string]*samples{}
	for _, r := range e.Performance.Rounds {
		for _, s := range r.Series {
			if s.Single == nil {
				continue
			}
			all := shapes[s.Shape]
			if all == nil {
				all = &samples{}
				shapes[s.Shape] = all
			}
			for i, side := range strings.ReplaceAll(s.Order, " ", "") {
				switch side {
				case gates.SideBaseline:
					all.baseline = append(all.baseline, s.Nanos[i])
				case gates.SideCandidate:
					all.candidate = append(all.candidate, s.Nanos[i])
				}
			}
			all.alone, all.aloneCandidate = append(all.alone, s.Single.Baseline...), append(all.aloneCandidate, s.Single.Candidate...)
		}
	}
	if len(shapes) == 0 {
		t.Error("no launch ran alone")
	}
	for name, s := range shapes {
		batch, alone := median(s.baseline)-median(s.candidate), median(s.alone)-median(s.aloneCandidate)
		if batch > alone+500 {
			t.Errorf("%s: a launch gains %.0f ns in a batch and %.0f ns on its own", name, batch, alone)
		}
	}
}
