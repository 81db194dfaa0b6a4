package policy_test

import (
	"strconv"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/strict/stricttest"
)

// TestReference checks the reference, which is made from tags, and compares what the tags say about
// every key with the parser.
func TestReference(t *testing.T) {
	language := stricttest.Language{
		Of: policy.Policy{},
		Files: []string{
			"{version: 1, commands: {}, forks: {}, toolchains: {nvcc: {version: 13.0.88}, triton: {version: 3.6.0}}, gates: {build: {}, cubin_growth: {}, precision: {}, correctness: {norm_error: '<= 1%', end_to_end: {max_abs_error: '<= 1'}}, sanitize: {shapes: all}, energy: {}}, rules: [{name: default}]}",
			"{version: 1, gates: {ptxas: {registers: {max: 1}, static_shared_memory: {max: 1}}, correctness: {norm_error: '<= 1%'}, performance: {guard: {speedup: '>= -2%'}, target: {speedup: '>= 1%'}, rounds: {}, tails: {}, explain: {}}}, rules: [{name: default}]}",
			"{version: 1, gates: {correctness: {norm_error: '<= 1%', distributions: [normal, recorded]}, performance: {guard: {speedup: '>= -2%'}, target: {speedup: '>= 1%'}}}, rules: [{name: default}]}",
			"{version: 1, gates: {profile: {any: [{a: '> 1'}]}}, rules: [{name: one, when: {labels: [a]}}, {name: default}]}",
		},
		Parse: func(text []byte) (any, error) { return policy.Parse("policy.yaml", text) },
		Entry: map[string]func(int) string{
			"gates.correctness.seeds": strconv.Itoa,
			"rules": func(i int) string { // the last one is the default
				if i == 0 {
					return "{name: default}"
				}
				return "{name: r" + strconv.Itoa(i) + ", when: {labels: [a]}}"
			},
		},
	}
	language.InStep(t, "../REFERENCE.md", *update)
	language.Check(t)
}
