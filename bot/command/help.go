package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies"
)

// Help renders the commands of these names, and whom the policy lets use them, as
// Markdown.
func Help(roles policies.Commands, names []string) string {
	var b strings.Builder
	b.WriteString("| comment | what it does | needs |\n| --- | --- | --- |\n")
	for _, g := range grammar {
		if !slices.Contains(names, g.of.Name()) {
			continue
		}
		needs := string(g.of.Role(roles))
		if needs == "" {
			needs = "nobody may"
		}
		// A bar ends a table's cell even in a code span.
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.ReplaceAll(g.usage, "|", `\|`), g.does, needs)
	}
	b.WriteString("\nOnly the first line of a comment that starts with `/` is read, where it is shown as plain text: no quote, code or HTML. An edited comment is not read.\n")
	return b.String()
}
