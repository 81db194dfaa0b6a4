package controller_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

const policyFile = ".github/kernelgate.yaml"

// defaultRule is how policyYAML ends.
const defaultRule = "  - name: default\n"

// withRules is the policy with rules in front of the default one, which is enforced so.
func withRules(t testing.TB, rules, enforce string) string {
	t.Helper()
	before, ok := strings.CutSuffix(policyYAML, defaultRule)
	if !ok {
		t.Fatal("the policy does not end with its default rule")
	}
	if enforce != "block" { // no label may lead past a default that does not block
		before, _, _ = strings.Cut(before, "  - name: refactoring\n")
	}
	return before + rules + defaultRule + "    enforce: " + enforce + "\n"
}

// Whatever the author of a change can choose, a rule that asks nothing and is on trial lets nothing
// pass.
func TestRulesOnTrialLetNothingPass(t *testing.T) {
	w := newWorld(t, worldOptions{})
	easy := ""
	for _, when := range []string{"labels: [easy]", "title: \"^easy\"", "draft: true", "paths: [\"**/easy.md\"]", "kernels: [\"scal?\"]", "branches: [\"easy/**\"]"} {
		easy += fmt.Sprintf("  - {name: easy-%d, when: {%s}, enforce: warn, gates: {correctness: none, performance: none}}\n", len(easy), when)
	}
	_, err := w.repo.Push("main", map[string]string{policyFile: withRules(t, easy, "block")}, "Rules on trial")
	w.no(err)
	for name, c := range map[string]struct {
		opt   embedded.PROptions
		files map[string]string
	}{
		"label": {opt: embedded.PROptions{Title: "Slower", Labels: []string{"easy"}}},
		"title": {opt: embedded.PROptions{Title: "easy: slower"}},
		"draft": {opt: embedded.PROptions{Title: "Slower", Draft: true}},
		"path":  {opt: embedded.PROptions{Title: "Slower"}, files: map[string]string{"kernels/scale/easy.md": "Easy.\n"}},
	} {
		files := map[string]string{sourceFile: "// speed 0.5\n// " + name + "\n"}
		for file, text := range c.files {
			files[file] = text
		}
		_, err := w.repo.Push("slow-"+name, files, name)
		w.no(err)
		c.opt.Head, c.opt.Author = "slow-"+name, "walt"
		pr, err := w.repo.OpenPR(c.opt)
		w.no(err)
		if check := w.concluded(pr.HeadSHA(), "failure"); !strings.HasPrefix(check.Title, "DEFER") || !strings.Contains(check.Summary, "warn: rule `easy-") {
			t.Errorf("%s: %q: %s", name, check.Title, check.Summary)
		}
		if err := pr.Merge("olga"); err == nil {
			t.Fatalf("%s: merged", name)
		}
		w.no(pr.Label("walt", "easy")) // after the verdict, too
		w.settle()
		w.concluded(pr.HeadSHA(), "failure")
	}
	slow := map[string]string{sourceFile: "// speed 0.4\n"}
	member := w.change("slow-member", slow, "failure", "easy")
	group := w.queue(member, embedded.Commit{Files: slow, Message: fmt.Sprintf("%s (#%d)", member.State().Title, member.Number())})
	w.checkIn(w.repo, group, "failure")
}

// A repository that begins with a default rule in shadow sees verdicts and blocks nobody.
func TestDefaultRuleInShadow(t *testing.T) {
	w := newWorld(t, worldOptions{})
	_, err := w.repo.Push("main", map[string]string{policyFile: withRules(t, "", "shadow")}, "Look first")
	w.no(err)
	pr := w.propose("slower", "// speed 0.5\n", embedded.PROptions{Title: "Slower"})
	c := w.concluded(pr.HeadSHA(), "success")
	if !strings.HasPrefix(c.Title, "shadow: would be DEFER (regression) scale") && !strings.HasPrefix(c.Title, "shadow: would be DEFER (too-slow) scale") {
		t.Errorf("the check says %q", c.Title)
	}
	w.golden("enforce-shadow", []*embedded.PR{pr})
	_, err = w.repo.Push("main", map[string]string{policyFile: withRules(t, "", "warn")}, "Then warn")
	w.no(err)
	w.until("the warning", func() bool {
		return strings.HasPrefix(w.concluded(pr.HeadSHA(), "success").Title, "warn: would be DEFER")
	})
	w.golden("enforce-warn", []*embedded.PR{pr})
	_, err = w.repo.Push("main", map[string]string{policyFile: withRules(t, "", "block")}, "Then block")
	w.no(err)
	w.concluded(pr.HeadSHA(), "failure")
	if err := pr.Merge("olga"); err == nil {
		t.Fatal("merged")
	}
}

// A head does not choose its own enforcement: to stop blocking is a change of the rules that needs
// an approval, and the base's rule judges the kernel meanwhile. To begin blocking may take changes
// away from a stricter rule, and needs one too.
func TestHeadsDoNotChooseEnforce(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	mild := "  - {name: mild, when: {kernels: [scale]}, enforce: shadow, gates: {performance: none}}\n"
	_, err := w.repo.Push("main", map[string]string{policyFile: withRules(t, mild, "block")}, "A mild rule on trial")
	w.no(err)
	base := withRules(t, mild, "block")
	for name, text := range map[string]string{
		"shadow": strings.Replace(withRules(t, mild, "block"), "enforce: block", "enforce: shadow", 1),
		"mild":   strings.Replace(base, "enforce: shadow, gates", "gates", 1),
	} {
		if name == "shadow" { // a label may not lead past it
			text = strings.Replace(text, "    when: {labels: [refactoring]}\n", "    when: {branches: [refactoring]}\n", 1)
		}
		both := w.change("both-"+name, map[string]string{policyFile: text, sourceFile: "// speed 0.5\n// " + name + "\n"}, "failure")
		if err := both.Merge("olga"); err == nil {
			t.Fatalf("%s: merged", name)
		}
		only := w.edit("only-"+name, policyFile, text, embedded.PROptions{})
		if c := w.concluded(only.HeadSHA(), "action_required"); !strings.Contains(c.Summary, ".enforce`") {
			t.Errorf("%s: %s", name, c.Summary)
		}
		if err := only.Merge("olga"); err == nil {
			t.Fatalf("%s: merged in silence", name)
		}
		w.comment(only, "mara", "/approve-policy "+only.HeadSHA())
		w.concluded(only.HeadSHA(), "success")
	}
}

// A branch whose rule does not block is no way to one whose rule does: neither with the same head in
// two pull requests, nor with one pull request on top of another.
func TestStackedOnABranchInShadow(t *testing.T) {
	w := newWorld(t, worldOptions{})
	_, err := w.repo.Push("side", map[string]string{policyFile: withRules(t, "", "shadow")}, "A branch that only looks")
	w.no(err)
	_, err = w.repo.PushCommit(embedded.Commit{Branch: "slow", From: w.repo.Head("side"), Files: map[string]string{sourceFile: "// speed 0.5\n"}, Message: "Slower"})
	w.no(err)
	first, err := w.repo.OpenPR(embedded.PROptions{Title: "To the side", Head: "slow", Base: "side", Author: "walt"})
	w.no(err)
	w.concluded(first.HeadSHA(), "success")
	second, err := w.repo.OpenPR(embedded.PROptions{Title: "To main", Head: "slow", Author: "walt"})
	w.no(err)
	w.concluded(second.HeadSHA(), "failure")
	if err := second.Merge("olga"); err == nil {
		t.Fatal("the same head was merged into main")
	}
	w.no(second.Close("walt"))
	w.concluded(first.HeadSHA(), "success")
	w.no(first.Merge("olga"))
	third, err := w.repo.OpenPR(embedded.PROptions{Title: "The side to main", Head: "side", Author: "walt"})
	w.no(err)
	w.concluded(third.HeadSHA(), "failure")
	if err := third.Merge("olga"); err == nil {
		t.Fatal("the stack was merged into main")
	}
}
