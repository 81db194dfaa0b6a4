package check

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners/plan"
)

// ReadPolicy reads a policy by the name that a user gives it: a file's, or a
// shipped one's. The second result is the file name for messages.
func ReadPolicy(name string) (*policies.Policy, string, error) {
	file, text, err := plan.PolicyNamed(name)
	if err != nil {
		return nil, "", err
	}
	p, err := policies.Parse(file, text)
	if err != nil {
		return nil, "", strict.Mistake{Err: err}
	}
	return p, file, nil
}

// ReadEvidence reads stored evidence.
func ReadEvidence(file string) (*gates.Evidence, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, strict.Mistakef("reading evidence: %w", err)
	}
	e, err := gates.ParseEvidence(file, data)
	if err != nil {
		return nil, strict.Mistake{Err: err}
	}
	return e, nil
}

// Lint reads policies, and manifests named kernel.yaml or NAME.kernel.yaml, and says what each is.
// Every mistake in every file is in the error.
func Lint(out io.Writer, files []string) error {
	var problems []error
	for _, file := range files {
		what, err := lint(file)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		fmt.Fprintf(out, "%s: ok: %s\n", file, what)
	}
	if len(problems) > 0 {
		return strict.Mistake{Err: errors.Join(problems...)}
	}
	return nil
}

func lint(file string) (what string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if kernels.IsManifest(filepath.ToSlash(file)) {
		m, err := kernels.Parse(file, text)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("kernel %s, %s, shapes %s, variants %s", m.Name, m.Mode, strings.Join(m.ShapeNames(), " "), strings.Join(m.VariantNames(), " ")), nil
	}
	p, err := policies.Parse(file, text)
	if err != nil {
		return "", err
	}
	return "policy with the rules " + strings.Join(p.RuleNames(), ", "), nil
}
