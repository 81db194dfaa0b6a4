package controller_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// GitHub asks for a check by commit. A wrong kernel is not let into main by a second pull
// request with the same head, into a branch that asks nothing.
func TestSecondPullRequestWithTheSameHead(t *testing.T) {
	for name, opt := range map[string]worldOptions{"app": {}, "token": {pat: true}} {
		for _, order := range []string{"the gated one first", "the other first"} {
			t.Run(name+", "+order, func(t *testing.T) {
				opt := opt
				opt.retold = !opt.pat || order != "the gated one first"
				w := newWorld(t, opt)
				says := func(sha, conclusion, title string) {
					w.Helper()
					w.until(conclusion+": "+title, func() bool {
						if c, ok := w.repo.Check(sha, "kernelgate"); ok {
							return c.Conclusion == conclusion && strings.Contains(c.Title, title)
						}
						all := w.repo.Statuses(sha) // the newest first
						i := slices.IndexFunc(all, func(s embedded.Status) bool { return s.Context == "kernelgate" })
						return i >= 0 && all[i].State == conclusion && strings.Contains(all[i].Description, title)
					})
					w.settle()
				}
				_, err := w.repo.PushCommit(embedded.Commit{Branch: "playground", Files: map[string]string{"README.md": "Play.\n"}, Delete: []string{".github/kernelgate.yaml"}, Message: "Ask nothing"})
				w.no(err)
				wrong := map[string]string{"kernels/scale/scale.c": "// WRONG speed 9\n"}
				sha, err := w.repo.Push("wrong", wrong, "Wrong")
				w.no(err)
				open := func(base string) *embedded.PR {
					pr, err := w.repo.OpenPR(embedded.PROptions{Author: "walt", Title: "Into " + base, Head: "wrong", Base: base})
					w.no(err)
					return pr
				}
				var gated, other *embedded.PR
				if order == "the gated one first" {
					gated = open("main")
					says(sha, "failure", "correctness")
					other = open("playground")
				} else {
					other = open("playground")
					says(sha, "success", "No policy")
					gated = open("main")
				}
				says(sha, "failure", "correctness")
				if err := gated.Merge("olga"); err == nil {
					t.Fatal("the wrong kernel was merged")
				}
				// Both may have spoken last by now; the one that asks nothing tells of the other.
				if !opt.pat && order == "the gated one first" && !slices.ContainsFunc(w.repo.Checks(sha), func(c embedded.Check) bool { return strings.Contains(c.Title, "#1 has the same head") }) {
					t.Errorf("no check tells of the other pull request: %+v", w.repo.Checks(sha))
				}
				w.no(gated.Close("walt"))
				says(sha, "success", "No policy")
				w.no(gated.Reopen("walt"))
				says(sha, "failure", "correctness")
				w.no(other.Close("walt"))
				says(sha, "failure", "correctness")
				if err := gated.Merge("olga"); err == nil {
					t.Fatal("the wrong kernel was merged")
				}
			})
		}
	}
}
