package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const goodWeights = `version: 1
name: histogram
mode: command
command: {build: [make], bench: [./bench]}
shapes: {small: {N: 1024}, mission: {N: 4096}}
weights:
  launches: {small: 36, mission: 1}
  kernel: 320us
  step: 1840us
  unmatched: 2
  tool: torch
  trace: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
`

var weightMistakes = []mistake{
	{"weight of no shape", goodWeights, "mission: 1}", "misson: 1}", []string{
		"kernel.yaml:7:25: weights.launches.misson: is no shape of the manifest (write one of small, mission)",
	}},
	{"weight of nothing", goodWeights, "mission: 1}", "mission: 0}", []string{
		"kernel.yaml:7:34: weights.launches.mission: 0 launches per step cannot weigh a shape (write a number above 0 and at most 1e9, or delete it)",
	}},
	{"weight below zero", goodWeights, "small: 36", "small: -36", []string{
		"kernel.yaml:7:21: weights.launches.small: -36 launches per step cannot weigh a shape (write a number above 0 and at most 1e9, or delete it)",
	}},
	{"weight without end", goodWeights, "small: 36", "small: .inf", []string{
		"kernel.yaml:7:21: weights.launches.small: \".inf\" is not a number (write e.g. 0.06)",
	}},
	{"weight that is no number", goodWeights, "small: 36", "small: .nan", []string{
		"kernel.yaml:7:21: weights.launches.small: \".nan\" is not a number (write e.g. 0.06)",
	}},
	{"weights without launches", goodWeights, "  launches: {small: 36, mission: 1}\n", "", []string{
		"kernel.yaml:7:3: weights.launches: is required (write e.g. launches: {small: 36, mission: 1})",
	}},
	{"weights of no launches", goodWeights, "{small: 36, mission: 1}", "{}", []string{
		"kernel.yaml:7:13: weights.launches: is empty (write e.g. {mission: 36}, or delete weights)",
	}},
	{"kernel longer than the step", goodWeights, "kernel: 320us", "kernel: 3ms", []string{
		"kernel.yaml:8:11: weights.kernel: 3000us is longer than the step of 1840us (exchange them, or divide by the number of steps)",
	}},
	{"kernel without a step", goodWeights, "  step: 1840us\n", "", []string{
		"kernel.yaml:8:11: weights.kernel: is read only with step (add step: 1840us, or delete it)",
	}},
	{"step without a time", goodWeights, "step: 1840us", "step: 0us", []string{
		"kernel.yaml:9:9: weights.step: is no time (write e.g. 320us, or delete it)",
	}},
	{"unmatched below zero", goodWeights, "unmatched: 2", "unmatched: -2", []string{
		"kernel.yaml:10:14: weights.unmatched: -2 is no number of launches (write e.g. 2, or delete it)",
	}},
	{"trace without a digest", goodWeights, "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "trace.json.gz", []string{
		`kernel.yaml:12:10: weights.trace: "trace.json.gz" is not the digest of a trace (write sha256: and 64 hexadecimal digits, or delete it)`,
	}},
	{"warm without a GPU", goodWeights, "  kernel: 320us", "  warm: [small]\n  kernel: 320us", []string{
		"kernel.yaml:8:10: weights.warm[0]: mode command cannot time launches from a warm cache (delete warm)",
	}},
	{"warm without a weight", goodChoice, "shapes:\n", "weights: {launches: {small: 36}, warm: [small, long]}\nshapes:\n", []string{
		`kernel.yaml:12:48: weights.warm[1]: "long" has no launches (add it to launches, or delete it)`,
	}},
	{"warm twice", goodChoice, "shapes:\n", "weights: {launches: {small: 36}, warm: [small, small]}\nshapes:\n", []string{
		`kernel.yaml:12:48: weights.warm[1]: "small" is named twice (delete one)`,
	}},
	{"tool that is not read", goodWeights, "tool: torch", "tool: ncu", []string{
		`kernel.yaml:11:9: weights.tool: "ncu" is not one of torch, nsys`,
	}},
}

func TestWeights(t *testing.T) {
	want := &Weights{
		Launches: map[string]float64{"small": 36, "mission": 1}, Kernel: 320, Step: 1840, Unmatched: 2, Tool: TraceTorch,
		Trace: "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
	}
	if diff := cmp.Diff(want, parsed(t, goodWeights).Weights); diff != "" {
		t.Error(diff)
	}
	if w := parsed(t, goodCommand).Weights; w != nil {
		t.Errorf("a manifest without weights has %+v", w)
	}
}

// The weights are the base's: what the head writes there does not change what its kernel is judged by.
func TestHeadHasNoWeights(t *testing.T) {
	head := strings.NewReplacer("small: 36, mission: 1", "small: 1, mission: 5000", "step: 1840us", "step: 321us").Replace(goodWeights)
	m, err := Join("kernel.yaml", []byte(goodWeights), []byte(head))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parsed(t, goodWeights).Weights, m.Weights); diff != "" {
		t.Error(diff)
	}
	// A head that renames the shapes, and the weights with them, changes nothing either.
	renamed := strings.NewReplacer("small:", "tiny:", "mission:", "huge:").Replace(goodWeights)
	if m, err = Join("kernel.yaml", []byte(goodWeights), []byte(renamed)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parsed(t, goodWeights).Weights, m.Weights); diff != "" {
		t.Error(diff)
	}
}
