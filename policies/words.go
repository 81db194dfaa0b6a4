package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// Forks says whether code from a fork may reach a runner.
type Forks struct {
	Run ForkMode `yaml:"run" eg:"never" default:"after-approval" doc:"after-approval: waits for /ok-to-test by someone with write access; never: is not run."`
}

// A ForkMode is a way to treat a fork's code.
type ForkMode string

const (
	ForksAfterApproval ForkMode = "after-approval"
	ForksNever         ForkMode = "never"
)

var forkModes = []string{string(ForksAfterApproval), string(ForksNever)}

func (m *ForkMode) UnmarshalStrict(n *strict.Node) { readWord(n, (*string)(m), forkModes) }
func (m *ForkMode) JSONSchema() map[string]any     { return wordSchema(forkModes) }

// Commands is who may say what on a pull request.
type Commands struct {
	Rebench  Role `yaml:"rebench" eg:"triage" default:"write" doc:"Measure once more."`
	Cancel   Role `yaml:"cancel" eg:"triage" default:"write" doc:"Stop a run."`
	Explain  Role `yaml:"explain" eg:"triage" default:"read" doc:"Say which rule applies."`
	Override Role `yaml:"override" eg:"admin" default:"maintain" doc:"Let a change pass that the gates defer."`
	OKToTest Role `yaml:"ok-to-test" eg:"maintain" default:"write" doc:"Let a fork's commit reach a runner."`
	Tune     Role `yaml:"tune" eg:"maintain" default:"write" doc:"Search the kernel's toggles."`
	Help     Role `yaml:"help" eg:"triage" default:"read" doc:"List the commands."`
}

// A Role is a permission on the repository, as GitHub names it.
type Role string

var roles = []string{"read", "triage", "write", "maintain", "admin"}

func (r *Role) UnmarshalStrict(n *strict.Node) { readWord(n, (*string)(r), roles) }
func (r *Role) JSONSchema() map[string]any     { return wordSchema(roles) }

// Allows tells whether someone with the role has may use what needs r. A role
// that GitHub does not have allows nobody and gives nothing.
func (r Role) Allows(has Role) bool {
	needs, got := slices.Index(roles, string(r)), slices.Index(roles, string(has))
	return needs >= 0 && got >= needs
}

// A Distribution is a way to draw inputs.
type Distribution string

var distributions = []string{"normal", "uniform", "dominant", "large", "constant", "zero", "ones"}

func (d *Distribution) UnmarshalStrict(n *strict.Node) { readWord(n, (*string)(d), distributions) }
func (d *Distribution) JSONSchema() map[string]any     { return wordSchema(distributions) }

// readWord reads one word out of a fixed set.
func readWord(n *strict.Node, into *string, words []string) {
	text, ok := n.Text()
	if ok && slices.Contains(words, text) {
		*into = text
		return
	}
	said := ""
	if ok && !n.Null() {
		said = fmt.Sprintf("%q ", text)
	}
	n.Errorf("%sis not one of %s", said, strings.Join(words, ", "))
}

func wordSchema(words []string) map[string]any {
	return map[string]any{"enum": words}
}
