package check

import (
	"os"

	"github.com/kernelgate/kernelgate/gates"
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
