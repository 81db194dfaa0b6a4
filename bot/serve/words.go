package serve

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// Words is one word, such as a file, or several.
type Words []string

// UnmarshalStrict reads a word or a list.
func (f *Words) UnmarshalStrict(n *strict.Node) {
	if n.List() {
		n.Decode((*[]string)(f))
		return
	}
	var one string
	if n.Decode(&one) {
		*f = Words{one}
	}
}

// JSONSchema says the same to an editor.
func (Words) JSONSchema() map[string]any {
	word := map[string]any{"type": "string"}
	return map[string]any{"title": "text, or a list of texts", "anyOf": []any{word, map[string]any{"type": "array", "items": word}}}
}

// An inlineSecret is a key that people try, and that is refused: a configuration
// is copied, mailed and committed.
type inlineSecret struct{}

// UnmarshalStrict never repeats what was written.
func (*inlineSecret) UnmarshalStrict(n *strict.Node) {
	path := n.Path()
	key := path[strings.LastIndex(path, ".")+1:]
	where := ""
	if strings.HasPrefix(path, "github.") {
		where = ", or set " + envName(path)
	}
	n.Errorf("a secret does not belong here (write it into a file that only the bot's user can read and name that as %s_file%s)", key, where)
}

// JSONSchema lets an editor refuse it too.
func (inlineSecret) JSONSchema() map[string]any { return map[string]any{"not": map[string]any{}} }

// secretLike tells whether a text is itself what should have been in the file
// that it should have named.
func secretLike(text string) bool {
	beginnings := []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "-----BEGIN"}
	begins := func(prefix string) bool { return strings.HasPrefix(strings.TrimSpace(text), prefix) }
	return slices.ContainsFunc(beginnings, begins) || strings.ContainsAny(text, "\r\n")
}

// envName is a key's name in the environment: github.app_id is
// KERNELGATE_GITHUB_APP_ID.
func envName(path string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

const envPrefix = "KERNELGATE_"

// flagName is a key's name on the command line: github.app_id is github-app-id.
func flagName(path string) string {
	return strings.NewReplacer(".", "-", "_", "-").Replace(path)
}
