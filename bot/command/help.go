package command

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/policies"
)

// Help renders the commands that can be followed, and whom the policy lets use them, as
// Markdown.
func Help(roles policies.Commands, workflow bool) string {
	var b strings.Builder
	b.WriteString("| comment | what it does | needs |\n| --- | --- | --- |\n")
	for _, g := range grammar {
		if workflow && !g.anywhere {
			continue
		}
		needs := string(g.needs(roles))
		if needs == "" {
			needs = "nobody may"
		}
		// A bar ends a table's cell even in a code span.
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.ReplaceAll(g.usage, "|", `\|`), g.does, needs)
	}
	b.WriteString("\nOnly the first line of a comment that starts with `/` is read, where it is shown as plain text: no quote, code or HTML. An edited comment is not read.\n")
	return b.String()
}
