// Package policy is the language of policies: what a repository requires of a change to a kernel
// before the change may be merged. [Parse] reads and checks a policy, [Policy.RuleFor] finds the
// rule for a change, [Policy.Explain] describes it, and [Compare] says how two policies differ. The
// package judges nothing (package gates does), and it reads no files.
package policy

import (
	"cmp"
	"regexp"
	"strconv"

	"github.com/kernelgate/kernelgate/policies/ident"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// Version is the version of the policy language that this program reads.
const Version = 1

// SchemaID is the address of the JSON Schema of policies, for editors.
const SchemaID = "https://raw.githubusercontent.com/kernelgate/kernelgate/main/policies/schema.json"

// A Policy is one file: gates that every rule starts from, and rules that say which changes must
// meet which gates.
type Policy struct {
	Version    int        `yaml:"version" required:"true" eg:"1" bounds:"(always 1)" doc:"Version of the policy language."`
	Check      string     `yaml:"check" eg:"kernelgate/l4" default:"kernelgate" bounds:"(letters, digits, space, . _ / -)" doc:"Name of the required check on GitHub."`
	Devices    Devices    `yaml:"devices" eg:"{all: [l4, h200]}" default:"(cpu for mode cpu, gpu for other modes)" doc:"Runners that measure, by their labels. A list is an order of preference: one runner measures. With all, every kernel is measured on each device and must pass on each. block and inform tell devices that decide from devices that are only shown."`
	Commands   Commands   `yaml:"commands" eg:"{rebench: triage}" doc:"The repository role that each comment command needs."`
	Forks      Forks      `yaml:"forks" eg:"{run: never}" doc:"How to handle pull requests from forks."`
	Toolchains Toolchains `yaml:"toolchains" eg:"{triton: {version: 3.6.0}}" doc:"Pinned compilers for kernels. The runners must have them. A change to a pin gates every kernel that the compiler builds."`
	Gates      Gates      `yaml:"gates" required:"true" eg:"{correctness: {norm_error: \"<= 1%\"}}" doc:"Gates that every rule starts from. A rule overrides them field by field."`
	Rules      []Rule     `yaml:"rules" required:"true" eg:"[{name: default}]" bounds:"1 to 100 entries" doc:"The first rule that matches and blocks applies. The last rule is the default."`
}

// DefaultCommands returns the role that each command needs if the policy does not say otherwise.
func DefaultCommands() Commands {
	return Commands{
		Rebench: "write", Tune: "write", Bisect: "write", Cancel: "write", Explain: "read", Override: "maintain",
		OKToTest: "write", ApprovePolicy: "maintain", Help: "read",
	}
}

// Parse reads a policy. The error is a strict.Problems that names every mistake by file, line and
// field.
func Parse(file string, data []byte) (*Policy, error) {
	p := &Policy{
		Check: "kernelgate", Commands: DefaultCommands(), Forks: Forks{Run: ForksAfterApproval},
	}
	if err := strict.Decode(file, data, p); err != nil {
		return nil, err
	}
	return p, nil
}

var checkName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._/-]{0,99}$`)

// maxRules bounds the work of Parse: every rule reads the shared gates again.
const maxRules = 100

// ValidateStrict continues after a mistake elsewhere, so that the author sees all mistakes at once.
func (p *Policy) ValidateStrict(n *strict.Node) {
	if !n.Mapping() {
		return
	}
	p.checkVersion(n.Child("version"))
	if !checkName.MatchString(p.Check) {
		n.Child("check").Errorf("%q is not a check name (write e.g. kernelgate)", p.Check)
	}
	p.checkToolchains(n.Child("toolchains"))
	rules := n.Child("rules")
	if len(rules.Items()) > maxRules {
		rules.Errorf("has %d rules (write at most %d)", len(rules.Items()), maxRules)
		return
	}
	p.checkRules(rules)
	p.checkEnforce(rules)
	p.resolveRules(rules, n.Child("gates"))
}

// checkVersion leaves text that is not a number to the decoder.
func (p *Policy) checkVersion(n *strict.Node) {
	text, _ := n.Text()
	if v, err := strconv.Atoi(text); err == nil && v != Version {
		n.Errorf("%d is not a version this program reads (write %d)", v, Version)
	}
}

// checkRules checks that every rule can be reached and that every change matches one.
func (p *Policy) checkRules(n *strict.Node) {
	if n.List() && len(n.Items()) == 0 {
		n.Errorf("is empty (write at least - name: default)")
	}
	names := map[string]bool{}
	left := len(p.Rules)
	strict.Each(n, p.Rules, func(at *strict.Node, rule *Rule) {
		left--
		last, name := left == 0, at.Child("name")
		if _, ok := name.Text(); !ok || name.Null() {
			return // refused: nothing more is known about the rule
		}
		switch {
		case !ident.IsName(rule.Name):
			name.Errorf("%q is not a name (write letters, digits, '.', '_' and '-')", rule.Name)
		case names[rule.Name]:
			name.Errorf("%q is the name of an earlier rule too (choose another)", rule.Name)
		case last && rule.Name != defaultRule:
			name.Errorf("the last rule is %q, but a rule named default is required at the end (write - name: default)", rule.Name)
		case last && at.Has("when"):
			at.Child("when").Errorf("the default rule applies to everything else (delete when)")
		case !last && rule.Name == defaultRule:
			name.Errorf("the default rule hides the rules behind it (move it to the end)")
		case !last && !at.Has("when"):
			at.Child("when").Errorf("a rule without a condition hides the rules behind it (add e.g. when: {labels: [perf]})")
		}
		names[rule.Name] = true
	})
}

const defaultRule = "default"

// resolveRules lays each rule's gates over the policy's. It decodes the shared gates again for
// every rule, so that no two rules share memory.
func (p *Policy) resolveRules(n, shared *strict.Node) {
	if !shared.Mapping() {
		return
	}
	strict.Each(n, p.Rules, func(at *strict.Node, rule *Rule) {
		rule.Enforce = cmp.Or(rule.Enforce, EnforceBlock)
		rule.Gates = Gates{}
		clean := shared.Decode(&rule.Gates)
		own := at.Child("gates")
		if at.Has("gates") {
			clean = own.Decode(&rule.Gates) && clean
		}
		if clean {
			laid := own.Over(shared)
			rule.Gates.fill(laid)
			rule.Gates.check(laid)
		}
	})
	p.Gates.fill(shared)
}
