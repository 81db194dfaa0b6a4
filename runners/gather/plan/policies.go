package plan

import "github.com/kernelgate/kernelgate/policies/policy"

// parsedPolicies parses every policy once, for all kernels of a plan. Nobody may change a parsed
// policy. It is not safe for concurrent use.
type parsedPolicies struct {
	parse func(file string, text []byte) (*policy.Policy, error)
	known map[policySource]*policy.Policy
}

type policySource struct{ file, text string }

// read parses a text that is not known. A text with mistakes is parsed again each time.
func (p *parsedPolicies) read(file string, text []byte) (*policy.Policy, error) {
	source := policySource{file, string(text)}
	if known := p.known[source]; known != nil {
		return known, nil
	}
	parsed, err := p.parse(file, text)
	if err == nil {
		p.known[source] = parsed
	}
	return parsed, err
}
