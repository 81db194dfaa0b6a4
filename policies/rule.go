package policies

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// A Rule says which changes it is for and, over the policy's gates, what they
// must meet.
type Rule struct {
	Name  string `yaml:"name" required:"true" eg:"optimisation" doc:"Named in the verdict."`
	When  When   `yaml:"when" doc:"All conditions that are given must hold; within a list one is enough."`
	Gates Gates  `yaml:"gates" doc:"Fields laid over the policy's gates; what is not named stays."`
}

// When is the condition of a rule. An empty one matches everything.
type When struct {
	Labels   []string `yaml:"labels" doc:"The pull request bears one of these labels."`
	Branches []string `yaml:"branches" doc:"The base branch matches one of these globs."`
	Paths    []string `yaml:"paths" doc:"A changed file matches one of these globs; ** crosses folders."`
	Kernels  []string `yaml:"kernels" doc:"The kernel's name matches one of these globs."`
	Title    Regexp   `yaml:"title" doc:"The title matches this regular expression." eg:"^perf:"`
	Draft    *bool    `yaml:"draft" doc:"The pull request is (not) a draft."`
}

func (w *When) ValidateStrict(n *strict.Node) {
	if n.Clean() && len(w.Labels)+len(w.Branches)+len(w.Paths)+len(w.Kernels) == 0 && w.Title.Regexp == nil && w.Draft == nil {
		n.Errorf("is empty: it would match everything (add e.g. labels: [perf])")
	}
}

// A Change is what a rule may ask of a pull request.
type Change struct {
	Labels []string `json:"labels,omitempty"`
	Branch string   `json:"branch,omitempty"` // the base branch
	Title  string   `json:"title,omitempty"`
	Draft  bool     `json:"draft,omitempty"`
	Paths  []string `json:"paths,omitempty"` // changed files, slash-separated, from the repository's root
	Kernel string   `json:"-"`
}

// RuleFor is the first rule that applies to the change.
func (p *Policy) RuleFor(c Change) *Rule {
	for i := range p.Rules {
		if p.Rules[i].When.Matches(c) {
			return &p.Rules[i]
		}
	}
	return &p.Rules[len(p.Rules)-1]
}

// Matches tells whether the change meets every condition that is given.
func (w When) Matches(c Change) bool {
	anyOf := func(patterns, values []string) bool {
		return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
			return slices.ContainsFunc(values, func(v string) bool { return Glob(pattern, v) })
		})
	}
	return (len(w.Labels) == 0 || slices.ContainsFunc(w.Labels, func(l string) bool { return slices.Contains(c.Labels, l) })) &&
		anyOf(w.Branches, []string{c.Branch}) &&
		anyOf(w.Paths, c.Paths) &&
		anyOf(w.Kernels, []string{c.Kernel}) &&
		(w.Title.Regexp == nil || w.Title.MatchString(c.Title)) &&
		(w.Draft == nil || *w.Draft == c.Draft)
}

// Glob matches a slash-separated name: * and ? stay within one folder, **
// crosses folders.
func Glob(pattern, name string) bool {
	var b strings.Builder
	b.WriteString(`\A`)
	for i := 0; i < len(pattern); i++ {
		switch {
		case strings.HasPrefix(pattern[i:], "**/"):
			b.WriteString(`(?:.*/)?`)
			i += 2
		case strings.HasPrefix(pattern[i:], "**"):
			b.WriteString(`.*`)
			i++
		case pattern[i] == '*':
			b.WriteString(`[^/]*`)
		case pattern[i] == '?':
			b.WriteString(`[^/]`)
		default:
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	b.WriteString(`\z`)
	re, err := regexp.Compile(b.String())
	return err == nil && re.MatchString(name)
}

// A Regexp is a regular expression that was checked when the policy was read.
type Regexp struct{ *regexp.Regexp }

func (r *Regexp) UnmarshalStrict(n *strict.Node) {
	text, ok := n.Text()
	if !ok {
		n.Errorf("is not a regular expression (write e.g. \"^perf:\")")
		return
	}
	re, err := regexp.Compile(text)
	if err != nil {
		n.Errorf("%q is not a regular expression: %s", text, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		return
	}
	r.Regexp = re
}

func (r *Regexp) JSONSchema() map[string]any {
	return map[string]any{"type": "string", "format": "regex"}
}
