package change

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// A parsedPolicy is the policy of a plan, parsed at its first use. Copies of the plan share it.
type parsedPolicy struct {
	text   string
	once   sync.Once
	policy *policy.Policy
	err    error
}

// UnmarshalJSON reads a stored plan.
func (p *Plan) UnmarshalJSON(data []byte) error {
	type plain Plan // without this method
	if err := json.Unmarshal(data, (*plain)(p)); err != nil {
		return err
	}
	p.parsed = &parsedPolicy{text: p.Policy}
	return nil
}

// SetPolicy gives the plan a policy that was parsed from text. Nobody may change it afterwards.
func (p *Plan) SetPolicy(text string, parsed *policy.Policy) {
	p.Policy, p.parsed = text, &parsedPolicy{text: text, policy: parsed}
	p.parsed.once.Do(func() {})
}

// ReadPolicy is the plan's policy. All copies of the plan share it. Nobody may change it.
func (p *Plan) ReadPolicy() (*policy.Policy, error) {
	once := p.parsed
	if once == nil || once.text != p.Policy {
		return p.parsePolicy()
	}
	once.once.Do(func() { once.policy, once.err = p.parsePolicy() })
	return once.policy, once.err
}

func (p *Plan) parsePolicy() (*policy.Policy, error) {
	parsed, err := policy.Parse(p.PolicyFile, []byte(p.Policy))
	if err != nil {
		return nil, fmt.Errorf("reading the plan's policy: %w", err)
	}
	return parsed, nil
}

// Commands says who may run which command, by the plan's policy.
func (p *Plan) Commands() policy.Commands {
	if p != nil {
		if parsed, err := p.ReadPolicy(); err == nil {
			return parsed.Commands
		}
	}
	return policy.DefaultCommands()
}

// NeverForks reports whether the plan's policy keeps code from forks off every runner, even if
// a maintainer approves it. It is false without a plan.
func (p *Plan) NeverForks() bool { return p != nil && NeverRuns(p.Forks) }

// NeverRuns reports whether a policy's word on forks keeps strangers' code off every runner.
func NeverRuns(forks string) bool { return forks == string(policy.ForksNever) }
