package policy

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/ident"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A Rule says to which changes it applies and what they must meet, in addition to the policy's
// gates.
type Rule struct {
	Name    string  `yaml:"name" required:"true" eg:"optimisation" bounds:"(letters, digits, . _ -; the last rule is default)" doc:"Name of the rule in the verdict."`
	When    When    `yaml:"when" eg:"{labels: [perf]}" default:"(every change)" doc:"Conditions of the rule. All of them must hold; in a list, one match is enough."`
	Enforce Enforce `yaml:"enforce" eg:"shadow" default:"block" doc:"block: a change that does not pass cannot be merged; warn: the verdict is shown as a warning; shadow: the verdict is shown. A rule that does not block is tried in addition to the first rule that matches and blocks."`
	Gates   Gates   `yaml:"gates" eg:"{performance: {target: none}}" default:"(the policy's)" doc:"Fields that override the gates of the policy. Other fields stay as they are."`
}

// When is the condition of a rule. An empty condition matches everything.
type When struct {
	Labels   []string `yaml:"labels" eg:"[perf]" doc:"The pull request has one of these labels."`
	Branches []string `yaml:"branches" eg:"[main, release/*]" doc:"The base branch matches one of these globs."`
	Paths    []string `yaml:"paths" eg:"[kernels/**]" doc:"A changed file of the kernel matches one of these globs. The files of a kernel are its manifest, the files of its folder, and the sources and headers that its build reads. ** crosses folders."`
	Kernels  []string `yaml:"kernels" eg:"[\"sdpa_*\"]" doc:"The kernel's name matches one of these globs."`
	Title    Regexp   `yaml:"title" eg:"^perf:" doc:"The title matches this regular expression."`
	Draft    *bool    `yaml:"draft" eg:"false" doc:"The pull request is (not) a draft."`
}

// A Change is what a rule may ask about a pull request.
type Change struct {
	Labels []string `json:"labels,omitempty"`
	Branch string   `json:"branch,omitempty"` // the base branch
	Title  string   `json:"title,omitempty"`
	// Claims are mechanisms that title and description name, for the explanation of a difference in speed. No rule asks about them.
	Claims []string `json:"claims,omitempty"`
	Draft  bool     `json:"draft,omitempty"`
	// Paths are the changed files, slash-separated, from the repository's root.
	Paths  []string `json:"paths,omitempty"`
	Kernel string   `json:"-"`
}

// RuleFor returns the rule that applies to the change: the first that matches and blocks. If none
// of the rules that match blocks, it is the first of them. So a rule on trial, whoever can choose
// its conditions, lets nothing pass that the other rules defer.
func (p *Policy) RuleFor(c Change) *Rule {
	applies := &p.Rules[len(p.Rules)-1]
	for i := len(p.Rules) - 1; i >= 0; i-- {
		rule := &p.Rules[i]
		if rule.When.Matches(c) && (rule.Enforce.Blocks() || !applies.Enforce.Blocks()) {
			applies = rule
		}
	}
	return applies
}

// MayApply reports whether there can be a change of a kernel to which the rule of that name applies: its globs match the name,
// and no rule before it takes every change of the kernel.
func (p *Policy) MayApply(rule, kernel string) bool {
	for _, r := range p.Rules {
		takes := len(r.When.Kernels) == 0 || anyGlob(r.When.Kernels, kernel)
		if r.Name == rule {
			return takes
		}
		every := len(r.When.conditions()) == 0 || len(r.When.conditions()) == 1 && len(r.When.Kernels) > 0
		if takes && every && r.Enforce.Blocks() {
			return false
		}
	}
	return false
}

// Matches reports whether the change meets every given condition.
func (w When) Matches(c Change) bool {
	return !slices.ContainsFunc(w.conditions(), func(given condition) bool { return !given.met(c) })
}

// A condition is one given part of When.
type condition struct {
	who string // such as "labels perf, fast"
	met func(Change) bool
}

func (w When) conditions() []condition {
	var given []condition
	list := func(what string, wanted []string, met func(Change) bool) {
		if len(wanted) > 0 {
			given = append(given, condition{what + " " + strings.Join(wanted, ", "), met})
		}
	}
	list("labels", w.Labels, func(c Change) bool {
		return slices.ContainsFunc(w.Labels, func(label string) bool { return slices.Contains(c.Labels, label) })
	})
	list("branches", w.Branches, func(c Change) bool { return anyGlob(w.Branches, c.Branch) })
	list("paths", w.Paths, func(c Change) bool { return anyGlob(w.Paths, c.Paths...) })
	list("kernels", w.Kernels, func(c Change) bool { return anyGlob(w.Kernels, c.Kernel) })
	if title := w.Title.Regexp; title != nil {
		list("titles that match", []string{title.String()}, func(c Change) bool { return title.MatchString(c.Title) })
	}
	if w.Draft != nil {
		who := map[bool]string{true: "drafts", false: "pull requests that are not drafts"}[*w.Draft]
		given = append(given, condition{who, func(c Change) bool { return c.Draft == *w.Draft }})
	}
	return given
}

func (w *When) ValidateStrict(n *strict.Node) {
	for _, list := range []struct {
		field    string
		patterns []string
		check    func(*strict.Node, string)
	}{
		{"labels", w.Labels, checkLabel}, {"branches", w.Branches, checkGlob},
		{"paths", w.Paths, checkPathGlob}, {"kernels", w.Kernels, checkGlob},
	} {
		at := n.Child(list.field)
		if at.List() && len(at.Items()) == 0 {
			at.Errorf("is empty (write at least one, or delete it)")
		}
		strict.Each(at, list.patterns, func(at *strict.Node, pattern *string) {
			if _, ok := at.Text(); ok && !at.Null() {
				list.check(at, *pattern)
			}
		})
	}
	if n.Mapping() && len(n.Pairs()) == 0 || n.Clean() && len(w.conditions()) == 0 {
		n.Errorf("is empty: it would match everything (add e.g. labels: [perf])")
	}
}

// anyGlob reports whether one of the patterns matches one of the names.
func anyGlob(patterns []string, names ...string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return slices.ContainsFunc(names, ident.Glob(pattern).MatchString)
	})
}

// checkGlob refuses features of other globs that this one does not have: such a pattern would
// silently match nothing.
func checkGlob(n *strict.Node, pattern string) {
	switch {
	case pattern == "":
		n.Errorf("is empty (write e.g. \"**\")")
	case strings.ContainsAny(pattern, `[]{}\`) || strings.HasPrefix(pattern, "!"):
		n.Errorf("%q: only *, ** and ? have a meaning here (write one pattern for each alternative)", pattern)
	}
}

func checkPathGlob(n *strict.Node, pattern string) {
	switch {
	case strings.HasPrefix(pattern, "/") || strings.HasPrefix(pattern, "./") || strings.Contains(pattern, ".."):
		n.Errorf("%q matches no file: paths start at the repository's root, without a slash (write e.g. kernels/**)", pattern)
	case strings.HasSuffix(pattern, "/"):
		n.Errorf("%q matches no file: it ends in a slash (write %s**)", pattern, pattern)
	default:
		checkGlob(n, pattern)
	}
}

func checkLabel(n *strict.Node, label string) {
	if strings.TrimSpace(label) == "" {
		n.Errorf("is empty (write the name of a label)")
	}
}

// A Regexp is a regular expression that was checked when the policy was read.
type Regexp struct{ *regexp.Regexp }

func (r *Regexp) UnmarshalStrict(n *strict.Node) {
	text, ok := n.Text()
	if !ok || text == "" || n.Null() {
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
	return map[string]any{"title": "regular expression", "type": "string", "format": "regex", "minLength": 1}
}
