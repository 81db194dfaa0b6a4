package pages_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A run's page says which verdicts block nothing, and does not call them a pass.
func TestPageOfARuleOnTrial(t *testing.T) {
	text, err := policies.Shipped("h200")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ rules, want string }{
		"shadow": {"rules:\n  - {name: default, enforce: shadow}\n", "shadow: would be DEFER (too-slow) because "},
		"trial":  {"rules:\n  - {name: mild, when: {kernels: [sdpa_fp8]}, enforce: warn, gates: {performance: {target: none}}}\n  - name: default\n", "warn: rule <code>mild</code> would be PASS. It does not block."},
	} {
		t.Run(name, func(t *testing.T) {
			before, _, _ := strings.Cut(string(text), "rules:\n")
			p, err := policy.Parse("p.yaml", []byte(before+c.rules))
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			copyFile(t, shippedEvidence+"stage3a.json", filepath.Join(dir, "one", "evidence.json"))
			f, err := pages.OpenFolder(dir, func(e *gates.Evidence) *gates.Verdict { return gates.Judge(p, "p.yaml", e) }, nil)
			if err != nil {
				t.Fatal(err)
			}
			status, page := siteOf(t, f)("/runs/one")
			if status != http.StatusOK || !strings.Contains(page, c.want) || !strings.Contains(page, "DEFER</") && !strings.Contains(page, "DEFER ") {
				t.Errorf("%d %.3000s", status, page)
			}
		})
	}
}
