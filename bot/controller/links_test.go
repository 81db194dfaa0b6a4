package controller_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

var (
	codePattern   = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	targetPattern = regexp.MustCompile(`\]\(([^)\s]*)|href="?([^"\s>]*)|(?:^|[\s(>])(https?://[^\s<>)"]+)`)
	numberPattern = regexp.MustCompile(`(?:^|[\s(])#([0-9]+)\b`)
)

// links are the addresses that GitHub makes links of in a text. Those of the
// repository itself start with a slash.
func links(text string) []string {
	text = codePattern.ReplaceAllString(text, "")
	var all []string
	for _, m := range targetPattern.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1]+m[2]+m[3])
	}
	for _, m := range numberPattern.FindAllStringSubmatch(text, -1) {
		all = append(all, "/olga/kernels/pull/"+m[1])
	}
	return all
}

func TestLinksAreFound(t *testing.T) {
	got := links("see [this](https://a.example/x) and https://b.example/y, #12 (#13), not `https://c` nor `#14`, &#8203;\n```\n#15 https://d\n```\n<a href=\"/e\">e</a>")
	want := []string{"https://a.example/x", "https://b.example/y,", "/e", "/olga/kernels/pull/12", "/olga/kernels/pull/13"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Whatever the bot writes leads somewhere.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	for name, opt := range map[string]worldOptions{"app": {retold: true}, "token": {pat: true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, opt)
			// The first of them is what the second's report tells of.
			verdict := func(sha, state string) {
				t.Helper()
				if !opt.pat {
					w.concluded(sha, state)
					return
				}
				w.until(state, func() bool {
					return slices.ContainsFunc(w.repo.Statuses(sha), func(s embedded.Status) bool { return s.Context == "kernelgate" && s.State == state })
				})
				w.settle()
			}
			slow := w.propose("slower", "// speed 1.02\n", embedded.PROptions{Title: "A little faster"})
			verdict(slow.HeadSHA(), "failure")
			pr := w.propose("broken", "// BROKEN\n", embedded.PROptions{Title: "Broken"})
			verdict(pr.HeadSHA(), "failure")
			for _, text := range []string{"/help", "/explain", "/rebench vs=self", "/rebench", "/cancel", "/ok-to-test 1234567"} {
				w.comment(pr, "walt", text)
			}
			w.comment(pr, "mara", "/override it is late")
			verdict(pr.HeadSHA(), "success")
			var all []string
			for _, pr := range []*embedded.PR{slow, pr} {
				for _, c := range pr.Comments() {
					if !slices.Contains([]string{"walt", "mara"}, c.Author) {
						all = append(all, links(c.Body)...)
					}
				}
				for _, c := range w.repo.Checks(pr.HeadSHA()) {
					all = append(all, links(c.Summary+"\n"+c.Text)...)
					if c.DetailsURL != "" {
						all = append(all, c.DetailsURL)
					}
				}
				for _, s := range w.repo.Statuses(pr.HeadSHA()) {
					if s.TargetURL != "" {
						all = append(all, s.TargetURL)
					}
				}
			}
			if len(all) == 0 {
				t.Error("no link at all: this test tells nothing")
			}
			slices.Sort(all)
			for _, link := range slices.Compact(all) {
				if strings.HasPrefix(link, "/") {
					link = w.hub.URL() + link
				}
				answer, err := http.Get(link)
				if err != nil {
					t.Errorf("%s: %v", link, err)
					continue
				}
				answer.Body.Close()
				if answer.StatusCode != http.StatusOK {
					t.Errorf("%s answers %s", link, answer.Status)
				}
			}
		})
	}
}
