package client

import (
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
)

func TestRole(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		permission, name string
		want             policy.Role
	}{
		"GitHub's own":             {"write", "write", "write"},
		"finer than the old word":  {"write", "maintain", "maintain"},
		"triage":                   {"read", "triage", "triage"},
		"without a name":           {"admin", "", "admin"},
		"a custom role":            {"write", "kernel-keeper", "write"},
		"a name that boasts":       {"read", "admin", "read"},
		"maintain that only reads": {"read", "maintain", "read"},
		"none":                     {"none", "", "none"},
		"nothing":                  {"", "", "none"},
		"a new word":               {"owner", "owner", "none"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := role(tt.permission, tt.name); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
