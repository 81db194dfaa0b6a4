package planner_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Code owners are those of the base branch, by the last line that fits a file in the
// first of the places where GitHub looks.
func TestOwners(t *testing.T) {
	const all = "* @olga\n"
	manifests := folder + "/kernel.yaml"
	for _, tt := range []struct {
		name  string
		files tree
		asked []string
		want  [][]string
	}{
		{"no file", tree{}, []string{policyFile}, nil},
		{"one for all", tree{"CODEOWNERS": all}, []string{policyFile, manifests}, [][]string{{"olga"}}},
		{"the last line", tree{"CODEOWNERS": all + "/.github/ @mara @Ann\nkernel.yaml @walt # ours\n"}, []string{policyFile, manifests}, [][]string{{"mara", "Ann"}, {"walt"}}},
		{"the last line takes it away", tree{"CODEOWNERS": all + "/.github/\n"}, []string{policyFile}, nil},
		{"one file of two", tree{"CODEOWNERS": "/.github/ @olga\n"}, []string{policyFile, manifests}, nil},
		{"the first place", tree{".github/CODEOWNERS": "* @first\n", "CODEOWNERS": all, "docs/CODEOWNERS": "* @last\n"}, []string{policyFile}, [][]string{{"first"}}},
		{"the last place", tree{"docs/CODEOWNERS": all}, []string{policyFile}, [][]string{{"olga"}}},
		{"an empty first place", tree{".github/CODEOWNERS": "# nobody\n", "CODEOWNERS": all}, []string{policyFile}, nil},
		{"teams and addresses", tree{"CODEOWNERS": "* @org/team a@example.com @mara\n"}, []string{policyFile}, [][]string{{"mara"}}},
		{"a team alone", tree{"CODEOWNERS": all + "/.github/ @org/team\n"}, []string{policyFile}, nil},
		{"mistakes", tree{"CODEOWNERS": all + "/kernels/ nobody\n"}, []string{policyFile}, nil},
		{"a long line", tree{"CODEOWNERS": all + "# " + strings.Repeat("x", 70_000) + "\n/.github/ @mara\n"}, []string{policyFile}, nil},
		{"Windows", tree{"CODEOWNERS": "* @olga\r\n/.github/ @mara\r\n"}, []string{policyFile}, [][]string{{"mara"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, usual().with(tt.files))
			w.propose(tree{"CODEOWNERS": "* @eve\n", ".github/CODEOWNERS": "* @eve\n"}) // is nobody's business
			got, err := w.planner.Owners(t.Context(), "olga/kernels", "main", tt.asked)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
