package docs

import (
	"fmt"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// TestDocumentedExamples checks that the parsers accept the policies and manifests in the
// documents. Excerpts must be valid YAML.
func TestDocumentedExamples(t *testing.T) {
	var asPolicy, asManifest int
	for _, p := range docPages(t) {
		for _, b := range p.blocks {
			if b.language() != "yaml" {
				continue
			}
			where := fmt.Sprintf("%s:%d", p.file, b.line)
			var err error
			switch whole := strings.Contains("\n"+b.text, "\nversion: 1\n"); {
			case !whole:
				var part any
				err = yaml.Unmarshal([]byte(b.text), &part)
			case strings.Contains(b.text, "\ngates:"):
				asPolicy++
				_, err = policy.Parse(where, []byte(b.text))
			default:
				asManifest++
				_, err = manifest.Parse(where, []byte(b.text))
			}
			if err != nil {
				t.Errorf("%s: %v", where, err)
			}
		}
	}
	if asPolicy < 2 || asManifest < 2 {
		t.Errorf("only %d policies and %d manifests were found", asPolicy, asManifest)
	}
}
