package controller_test

import (
	stdcmp "cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden holds everything that GitHub shows of the pull requests, and of other
// commits that are named, against a file. Commits and times are made the same in
// every run.
func (w *world) golden(name string, prs []*embedded.PR, commits ...string) {
	w.Helper()
	w.settle()
	var b strings.Builder
	for _, pr := range prs {
		s := pr.State()
		fmt.Fprintf(&b, "# Pull request #%d: %s\n\n", s.Number, s.Title)
		commits = append(commits, s.HeadSHA)
		for _, c := range pr.Comments() {
			fmt.Fprintf(&b, "## Comment by %s%s\n\n%s\n\n", c.Author, reactions(c), c.Body)
		}
	}
	for _, sha := range commits {
		checks := w.repo.Checks(sha)
		if several := slices.ContainsFunc(checks, func(c embedded.Check) bool { return strings.Contains(c.Name, " on ") }); several || w.opt.lag {
			inOrder(checks)
		}
		for _, c := range checks {
			fmt.Fprintf(&b, "## Check %s of %s: %s %s\n\n**%s**\n\n%s\n\n%s\n\n", c.Name, sha, c.Status, c.Conclusion, c.Title, c.Summary, c.Text)
			for _, a := range c.Annotations {
				fmt.Fprintf(&b, "Annotation %s:%d %s: %s: %s\n\n", a.GetPath(), a.GetStartLine(), a.GetAnnotationLevel(), a.GetTitle(), a.GetMessage())
			}
			for _, a := range c.Actions {
				fmt.Fprintf(&b, "Button %q (%s): %s\n\n", a.Label, a.Identifier, a.Description)
			}
		}
		for _, s := range w.repo.Statuses(sha) {
			fmt.Fprintf(&b, "## Status %s of %s: %s\n\n%s\n\n", s.Context, sha, s.State, s.Description)
		}
	}
	got := w.normal(b.String())
	file := filepath.Join("testdata", "story", name+".md")
	if *update {
		w.no(os.MkdirAll(filepath.Dir(file), 0o755))
		w.no(os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	w.no(err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		w.Errorf("%s (run with -update to accept):\n%s", file, diff)
	}
}

// inOrder sorts the checks as a bot creates them that meets no lag: in each attempt the required check is the first. If GitHub
// does not know a commit yet, a check of a kernel may come before it. Checks of several devices come in any order.
func inOrder(checks []embedded.Check) {
	attempt, seen := map[int64]int{}, map[string]int{}
	for _, c := range checks {
		attempt[c.ID] = seen[c.Name]
		seen[c.Name]++
	}
	slices.SortStableFunc(checks, func(a, b embedded.Check) int {
		required := func(c embedded.Check) int { return strings.Count(c.Name, "/") }
		return stdcmp.Or(stdcmp.Compare(attempt[a.ID], attempt[b.ID]), stdcmp.Compare(required(a), required(b)), strings.Compare(a.Name, b.Name))
	})
}

func reactions(c embedded.Comment) string {
	var all []string
	for _, kind := range []string{"eyes", "rocket", "confused"} {
		if len(c.Reactions[kind]) > 0 {
			all = append(all, kind)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return ", " + strings.Join(all, " and ")
}

var (
	longPattern = regexp.MustCompile(`\b[0-9a-f]{40,64}\b`)
	hashPattern = regexp.MustCompile(`\b[0-9a-f]{12}\b`) // of commits that are named in short alone, and of machine code
	idPattern   = regexp.MustCompile(`comment-[0-9]+`)
	timePattern = regexp.MustCompile(`20[0-9]{2}-[0-9]{2}-[0-9]{2}[T ][0-9:.]{5,}(?:Z| UTC)?`)
	datePattern = regexp.MustCompile(`\b20[0-9]{2}-[0-9]{2}-[0-9]{2}\b`)
	seedPattern = regexp.MustCompile(`(proposer \w+), seed [0-9]+`)
	areaPattern = regexp.MustCompile(`(?m)│ *█+$`) // of a chart over seconds
	tookPattern = regexp.MustCompile(`in [0-9.e-]+[ \x{a0}](?:ms|s)\b`)
)

// normal replaces what differs from run to run.
func (w *world) normal(text string) string {
	text = strings.NewReplacer(w.hub.URL(), "https://hub", w.addr, "bot").Replace(text)
	seen := map[string]string{}
	for _, sha := range longPattern.FindAllString(text, -1) {
		if seen[sha] == "" {
			seen[sha] = fmt.Sprintf("<commit %d>", len(seen)+1)
		}
	}
	for i, sha := range w.known {
		seen[sha] = stdcmp.Or(seen[sha], fmt.Sprintf("<known commit %d>", i+1))
	}
	for sha, name := range seen {
		text = strings.ReplaceAll(text, sha, name)
		for _, n := range []int{12, 10, 8, 7} {
			text = regexp.MustCompile(`\b`+sha[:n]+`\b`).ReplaceAllString(text, name)
		}
	}
	text = seedPattern.ReplaceAllString(text, "$1, seed <seed>") // before hashes: one seed in many has twelve digits
	text = hashPattern.ReplaceAllString(text, "<hash>")
	ids := map[string]int{}
	text = idPattern.ReplaceAllStringFunc(text, func(id string) string {
		if ids[id] == 0 {
			ids[id] = len(ids) + 1
		}
		return fmt.Sprintf("comment-%d", ids[id])
	})
	text = timePattern.ReplaceAllString(text, "<time>")
	text = datePattern.ReplaceAllString(text, "<date>")
	text = areaPattern.ReplaceAllString(text, "│ <chart>")
	return tookPattern.ReplaceAllString(text, "in <seconds>")
}
