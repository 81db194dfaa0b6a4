package policy

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// Forks says whether code from a fork may reach a runner.
type Forks struct {
	Run ForkMode `yaml:"run" eg:"never" default:"after-approval" doc:"after-approval: the bot waits for /ok-to-test by someone with write access; never: the bot does not run it."`
}

// A ForkMode is a way to treat a fork's code.
type ForkMode string

const (
	ForksAfterApproval ForkMode = "after-approval"
	ForksNever         ForkMode = "never"
)

var forkModes = []ForkMode{ForksAfterApproval, ForksNever}

func (m *ForkMode) UnmarshalStrict(n *strict.Node) { strict.Word(n, m, forkModes) }
func (m *ForkMode) JSONSchema() map[string]any     { return strict.WordSchema(forkModes) }

// Commands says which role each command on a pull request needs.
type Commands struct {
	Rebench       Role `yaml:"rebench" eg:"triage" default:"write" doc:"Measure again."`
	Tune          Role `yaml:"tune" eg:"triage" default:"write" doc:"Search for a faster variant or toggle."`
	Bisect        Role `yaml:"bisect" eg:"triage" default:"write" doc:"Search for the commit that made a kernel slower or wrong."`
	Cancel        Role `yaml:"cancel" eg:"triage" default:"write" doc:"Stop a run."`
	Explain       Role `yaml:"explain" eg:"triage" default:"read" doc:"Show which rule applies."`
	Override      Role `yaml:"override" eg:"admin" default:"maintain" doc:"Let a change pass that the gates defer."`
	OKToTest      Role `yaml:"ok-to-test" eg:"maintain" default:"write" doc:"Let a fork's commit reach a runner."`
	ApprovePolicy Role `yaml:"approve-policy" eg:"admin" default:"maintain" doc:"Accept a change to the policy, a manifest or a reference that may loosen the requirements."`
	Help          Role `yaml:"help" eg:"triage" default:"read" doc:"List the commands."`
}

// A Role is a permission on the repository, as GitHub names it.
type Role string

var roles = []Role{"read", "triage", "write", "maintain", "admin"}

func (r *Role) UnmarshalStrict(n *strict.Node) { strict.Word(n, r, roles) }
func (r *Role) JSONSchema() map[string]any     { return strict.WordSchema(roles) }

// Allows reports whether somebody with the role has may use something that needs r. A role that
// GitHub does not have allows nobody and grants nothing.
func (r Role) Allows(has Role) bool {
	needs, got := slices.Index(roles, r), slices.Index(roles, has)
	return needs >= 0 && got >= needs
}

func orNothing(asked []string, nothing string) string {
	if len(asked) == 0 {
		return nothing
	}
	return strings.Join(asked, ", ")
}
