package controller_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// A command is followed wherever people write: in the conversation, on a line, in a
// review. Each is read once and answered in the conversation; a line takes a reaction,
// and a review none.
func TestCommandsInReviews(t *testing.T) {
	for _, pat := range []bool{false, true} {
		t.Run(fmt.Sprintf("token=%v", pat), func(t *testing.T) {
			w := newWorld(t, worldOptions{retold: true, pat: pat})
			pr := w.propose("slow", "// speed 1.0001\n", embedded.PROptions{Title: "No gain"})
			w.until("a verdict", func() bool { return strings.Contains(fmt.Sprint(pr.Comments()), "DEFER") })
			w.settle()
			replies := func() (n int) {
				for _, c := range pr.Comments() {
					if strings.HasPrefix(c.Body, "<!-- kernelgate:reply:") {
						n++
					}
				}
				return n
			}
			answered := func(want int) {
				t.Helper()
				w.until("a reply", func() bool { return replies() == want })
				w.settle()
			}
			remark := func(who, body, reaction string) {
				t.Helper()
				c, err := pr.CommentOn(who, "kernels/scale/scale.c", 1, body)
				w.no(err)
				w.until(reaction+" on a line", func() bool {
					for _, now := range pr.LineComments() {
						if now.ID == c.ID {
							return len(now.Reactions[reaction]) > 0 && len(now.Reactions["eyes"]) > 0
						}
					}
					return false
				})
			}
			remark("rita", "What is this?\n\n/explain", "rocket")
			answered(1)
			remark("rita", "/override I may not", "confused")
			answered(2)
			w.no(pr.Review("rita", "COMMENT", "/rebench"))
			answered(3)
			w.no(pr.Review("mara", "APPROVE", "> /help\n\nLooks good.")) // quoted
			w.settle()
			if n := replies(); n != 3 {
				t.Errorf("%d replies, want none to a quotation", n)
			}
			head := pr.HeadSHA()
			w.no(pr.Review("mara", "APPROVE", "It fixes a bug.\n\n/override it fixes a bug"))
			answered(4)
			w.passes(head, pat)
			w.no(pr.Merge("olga"))
		})
	}
}

// passes waits for the required check or, with a token, the status.
func (w *world) passes(sha string, pat bool) {
	w.Helper()
	w.until("success at "+sha, func() bool {
		if pat {
			for _, s := range w.repo.Statuses(sha) {
				if s.Context == "kernelgate" {
					return s.State == "success"
				}
			}
			return false
		}
		c, _ := w.repo.Check(sha, "kernelgate")
		return c.Conclusion == "success"
	})
}

// A review is of the commit that its author saw. It lets no later one pass, however the
// two deliveries come in.
func TestReviewOfAnEarlierHead(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	pr := w.propose("slow", "// speed 1.0001\n", embedded.PROptions{Title: "No gain"})
	first := pr.HeadSHA()
	w.concluded(first, "failure")
	_, err := w.repo.Push("slow", map[string]string{sourceFile: "// WRONG speed 9\n"}, "worse")
	w.no(err)
	w.concluded(pr.HeadSHA(), "failure")
	w.deliver("pull_request_review", "00000000-0000-0000-0000-000000000001", map[string]any{
		"action":       "submitted",
		"review":       map[string]any{"id": 5, "body": "/override it fixes a bug", "state": "approved", "commit_id": first, "user": map[string]any{"id": 4, "login": "mara", "type": "User"}},
		"pull_request": map[string]any{"number": pr.Number(), "state": "open"},
		"repository":   map[string]any{"id": w.repo.ID(), "full_name": "olga/kernels", "default_branch": "main", "name": "kernels", "owner": map[string]any{"login": "olga"}},
		"sender":       map[string]any{"id": 4, "login": "mara", "type": "User"},
	})
	w.said(pr, "The head has moved")
	w.concluded(pr.HeadSHA(), "failure")
}

// An override may be the first that the bot hears of a pull request.
func TestOverrideIsTheFirstWord(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true, refuse: func(rq *http.Request) *http.Response {
		if strings.HasSuffix(rq.URL.Path, "/pulls") { // it finds none by itself
			return no(rq, "Resource not accessible by integration")
		}
		return nil
	}})
	w.app.SetHook("", "")
	pr := w.propose("slow", "// speed 1.0001\n", embedded.PROptions{Title: "No gain"})
	w.no(w.hub.Quiet(w.ctx))
	w.app.SetHook("http://"+w.addr+"/webhook", secret)
	w.reacted(pr, w.comment(pr, "mara", "/override it fixes a bug"), "rocket")
	w.checkIn(w.repo, pr.HeadSHA(), "success")
	_, err := w.repo.Push("slow", map[string]string{sourceFile: "// speed 1.0002\n"}, "more")
	w.no(err)
	w.checkIn(w.repo, pr.HeadSHA(), "failure")
}
