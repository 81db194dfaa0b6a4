package policy_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
)

func TestRecordedKinds(t *testing.T) {
	for _, c := range []struct{ gates, want string }{
		{"correctness: {norm_error: '<= 1%', distributions: [normal, recorded]}", ""},
		{"correctness: {norm_error: '<= 1%', distributions: [recorded:decode, normal]}", ""},
		{"correctness: {norm_error: '<= 1%', distributions: [recorded]}", "has only recordings, and secret shapes and shapes without a recording need random inputs (add e.g. normal)"},
		{"correctness: {norm_error: '<= 1%', distributions: [normal, 'recorded:']}", `"recorded:" names no recording`},
		{"correctness: {norm_error: '<= 1%', distributions: [normal, 'recorded:a/b']}", `"recorded:a/b" names no recording`},
		{"correctness: {norm_error: '<= 1%'}, sanitize: {shapes: all, distributions: [recorded]}", "recorded inputs are not shown (write random kinds)"},
		{"correctness: {norm_error: '<= 1%'}, performance: {target: {speedup: '>= 1%', inputs: recorded}}", "target.inputs: is recorded, and correctness.distributions names no recording to time on"},
		{"correctness: {norm_error: '<= 1%', distributions: [normal, recorded]}, performance: {target: {weighted: '>= 1%', inputs: recorded}}", "target.inputs: recorded does not go with weighted: the sum of a step counts random inputs (delete one of them)"},
	} {
		_, err := policy.Parse("p.yaml", []byte("{version: 1, gates: {"+c.gates+"}, rules: [{name: default}]}"))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.gates, err, c.want)
		}
	}
}
