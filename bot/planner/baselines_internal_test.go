package planner

import (
	"context"
	"errors"
	"os/exec"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// Where git cannot look for a commit that a policy or a command names, nothing is planned: whether its code may be measured is not
// known, and nobody has made a mistake.
func TestBaselinesThatNobodyCouldLookAt(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "git", "init", "--quiet", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	repo, err := checkout.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := policy.Parse("p.yaml", []byte(`version: 1
gates:
  correctness: {shapes: all, seeds: [0], norm_error: "<= 1%"}
  performance: {target: {shapes: all, speedup: ">= +10%"}, baseline: "ref:moon"}
rules: [{name: default}]
`))
	if err != nil {
		t.Fatal(err)
	}
	s := &survey{repo: repo}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.ownBaselines(t.Context(), policy); err != nil {
		t.Errorf("a branch that is not there is told with its kernel: %v", err)
	}
	if err := s.ownBaselines(ended, policy); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody could look: %v", err)
	}
	_, err = s.versus(t.Context(), "moon", nil)
	if _, mistake := errors.AsType[usage.Error](err); !mistake {
		t.Errorf("a commit that is not there: %v", err)
	}
	_, err = s.versus(ended, "moon", nil)
	if _, mistake := errors.AsType[usage.Error](err); mistake || !errors.Is(err, context.Canceled) {
		t.Errorf("nobody could look: %v", err)
	}
}
