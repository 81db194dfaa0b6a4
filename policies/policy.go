// Package policies is the policy language: what a repository asks of a change
// to a kernel before it may be merged. It reads, checks and explains policies;
// it judges nothing (package gates does) and touches no disk.
package policies

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// Version is the policy language that this program reads.
const Version = 1

// A Policy is one file: gates that every rule starts from, and rules that say
// which change must meet what.
type Policy struct {
	Version  int      `yaml:"version" required:"true" eg:"1" doc:"Version of the policy language: 1."`
	Check    string   `yaml:"check" eg:"kernelgate" doc:"Name of the required check on GitHub."`
	Devices  []string `yaml:"devices" doc:"Labels of the runners that may measure, most wanted first."`
	Commands Commands `yaml:"commands" doc:"The repository role that each comment command needs."`
	Forks    Forks    `yaml:"forks" doc:"How pull requests from forks are handled."`
	Gates    Gates    `yaml:"gates" required:"true" doc:"What every rule starts from; a rule overrides field by field."`
	Rules    []Rule   `yaml:"rules" required:"true" doc:"First match wins; the last one is the default."`
}

// Forks says whether code from a fork may reach a runner.
type Forks struct {
	Run ForkMode `yaml:"run" doc:"after-approval: waits for /ok-to-test by someone with write access; never: is not run."`
}

// A ForkMode is a way to treat a fork's code.
type ForkMode string

const (
	ForksAfterApproval ForkMode = "after-approval"
	ForksNever         ForkMode = "never"
)

func (m *ForkMode) UnmarshalStrict(n *strict.Node) {
	readWord(n, (*string)(m), string(ForksAfterApproval), string(ForksNever))
}

func (m *ForkMode) JSONSchema() map[string]any {
	return wordSchema(string(ForksAfterApproval), string(ForksNever))
}

// Commands is who may say what on a pull request.
type Commands struct {
	Rebench  Role `yaml:"rebench"`
	Cancel   Role `yaml:"cancel"`
	Explain  Role `yaml:"explain"`
	Override Role `yaml:"override"`
	OKToTest Role `yaml:"ok-to-test"`
	Tune     Role `yaml:"tune"`
	Help     Role `yaml:"help"`
}

// A Role is a permission on the repository, as GitHub names it.
type Role string

var roles = []string{"read", "triage", "write", "maintain", "admin"}

func (r *Role) UnmarshalStrict(n *strict.Node) { readWord(n, (*string)(r), roles...) }
func (r *Role) JSONSchema() map[string]any     { return wordSchema(roles...) }

// Allows tells whether someone with the role has may use what needs r.
func (r Role) Allows(has Role) bool {
	return slices.Index(roles, string(has)) >= slices.Index(roles, string(r)) && slices.Contains(roles, string(has))
}

// Parse reads a policy. The error is a strict.Problems that names every mistake
// by file, line and field.
func Parse(file string, data []byte) (*Policy, error) {
	p := &Policy{
		Check: "kernelgate",
		Commands: Commands{
			Rebench: "write", Cancel: "write", Explain: "read", Override: "maintain",
			OKToTest: "write", Tune: "write", Help: "read",
		},
		Forks: Forks{Run: ForksAfterApproval},
	}
	if err := strict.Decode(file, data, p); err != nil {
		return nil, err
	}
	return p, nil
}

var checkName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._/-]{0,99}$`)

func (p *Policy) ValidateStrict(n *strict.Node) {
	if n.Has("version") && p.Version != Version {
		n.Child("version").Errorf("%d is not a version this program reads (write %d)", p.Version, Version)
	}
	if !checkName.MatchString(p.Check) {
		n.Child("check").Errorf("%q is not a check name (write e.g. kernelgate)", p.Check)
	}
	p.checkRules(n)
	if n.Clean() {
		p.resolveRules(n)
	}
}

// resolveRules lays each rule's gates over the policy's. The shared gates are
// read anew for every rule, so that no two rules share memory.
func (p *Policy) resolveRules(n *strict.Node) {
	shared := n.Child("gates")
	for i, at := range n.Child("rules").Items() {
		rule := &p.Rules[i]
		rule.Gates = DefaultGates()
		shared.Decode(&rule.Gates)
		own := at.Child("gates")
		if at.Has("gates") {
			own.Decode(&rule.Gates)
		}
		rule.Gates.check(own.Over(shared))
	}
}

// checkRules sees to it that every rule can be reached and every change meets
// one.
func (p *Policy) checkRules(n *strict.Node) {
	rules := n.Child("rules").Items()
	if n.Has("rules") && n.Child("rules").List() && len(rules) == 0 {
		n.Child("rules").Errorf("is empty (write at least - name: default)")
	}
	names := map[string]bool{}
	for i, at := range rules {
		rule := &p.Rules[i]
		if names[rule.Name] {
			at.Child("name").Errorf("%q is the name of an earlier rule too", rule.Name)
		}
		names[rule.Name] = true
		last := i == len(p.Rules)-1
		switch {
		case last && rule.Name != "default":
			at.Child("name").Errorf("the last rule is %q, but a rule named default is required at the end (write - name: default)", rule.Name)
		case last && at.Has("when"):
			at.Child("when").Errorf("the default rule applies to everything else (delete when)")
		case !last && rule.Name == "default":
			at.Child("name").Errorf("the default rule hides the rules behind it (move it to the end)")
		case !last && !at.Has("when"):
			at.Child("when").Errorf("a rule without a condition hides the rules behind it (add e.g. when: {labels: [perf]})")
		}
	}
}

// readWord reads one word out of a fixed set.
func readWord(n *strict.Node, into *string, words ...string) {
	text, ok := n.Text()
	if !ok || !slices.Contains(words, text) {
		n.Errorf("%s is not one of %s", quoteOr(text, ok), strings.Join(words, ", "))
		return
	}
	*into = text
}

func quoteOr(text string, ok bool) string {
	if !ok {
		return "this"
	}
	return fmt.Sprintf("%q", text)
}

func wordSchema(words ...string) map[string]any {
	return map[string]any{"enum": words}
}
