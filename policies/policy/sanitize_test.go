package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// withSanitize returns the good policy with a sanitize gate as its line 19.
func withSanitize(gate string) string {
	return strings.Replace(good, "  performance:\n", "  sanitize: "+gate+"\n  performance:\n", 1)
}

func TestSanitizeDefaults(t *testing.T) {
	got := parse(t, withSanitize("{shapes: [small]}")).RuleFor(policy.Change{}).Gates.Sanitize
	want := &policy.SanitizeGate{
		Deadline: policy.Deadline{Timeout: quantity.Duration(5 * time.Minute)},
		Shapes:   policy.Shapes{Names: []string{"small"}}, Distributions: []distribution.Kind{"normal"}, SecretCases: 1,
		Tools:       []policy.Sanitizer{"memcheck", "racecheck", "initcheck", "synccheck"},
		MissingTool: policy.MissingDefers, Existing: policy.ExistingReports,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// Written fields stay, and a rule lays its own over them.
	text := strings.Replace(withSanitize("{shapes: [small], tools: [memcheck], secret_cases: 0, missing_tool: inform, existing: defer}"),
		"when: {labels: [perf]}\n", "when: {labels: [perf]}\n    gates: {sanitize: {tools: [racecheck], timeout: 1m}}\n", 1)
	laid := parse(t, text).RuleFor(policy.Change{Labels: []string{"perf"}}).Gates.Sanitize
	if laid.SecretCases != 0 || laid.MissingTool != policy.MissingInforms || laid.Existing != policy.ExistingDefers || laid.Shapes.String() != "small" ||
		!cmp.Equal(laid.Tools, []policy.Sanitizer{policy.Racecheck}) || time.Duration(laid.Timeout) != time.Minute {
		t.Errorf("laid over: %+v", laid)
	}
	if none := parse(t, withSanitize("none")).RuleFor(policy.Change{}).Gates.Sanitize; none != nil {
		t.Errorf("none is %+v", none)
	}
}

func TestSanitizeMistakes(t *testing.T) {
	for _, tt := range []struct{ gate, says string }{
		{"{}", "18:13: gates.sanitize.shapes: is required: only you know which shapes are small (write e.g. [small], or first)"},
		{"{shapes: [small], tools: []}", "18:38: gates.sanitize.tools: is empty (write e.g. [memcheck, racecheck, initcheck, synccheck], or sanitize: none)"},
		{"{shapes: [small], tools: [memcheck, valgrind]}", `18:49: gates.sanitize.tools[1]: "valgrind" is not one of memcheck, racecheck, initcheck, synccheck`},
		{"{shapes: [small], tools: [memcheck, memcheck]}", `18:49: gates.sanitize.tools[1]: "memcheck" is named twice (delete one)`},
		{"{shapes: [small], distributions: []}", "18:46: gates.sanitize.distributions: is empty (write e.g. [normal])"},
		{"{shapes: [small], distributions: [large, large]}", `18:54: gates.sanitize.distributions[1]: "large" is named twice (delete one)`},
		{"{shapes: [small], secret_cases: 21}", "18:45: gates.sanitize.secret_cases: 21 is more than 20"},
		{"{shapes: [small], missing_tool: ignore}", `18:45: gates.sanitize.missing_tool: "ignore" is not one of defer, inform`},
		{"{shapes: [small], existing: ignore}", `18:41: gates.sanitize.existing: "ignore" is not one of report, defer`},
		{"{shapes: [small], tool: memcheck}", "18:31: gates.sanitize.tool: unknown field (did you mean tools?)"},
	} {
		got := mistakes(t, "p.yaml", withSanitize(tt.gate))
		if len(got) != 1 || !strings.HasSuffix(got[0], tt.says) {
			t.Errorf("%s:\n got %q\nwant %q", tt.gate, got, tt.says)
		}
	}
}
