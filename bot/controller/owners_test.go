package controller_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// required waits until the required check, or with a token the status, says so, and holds
// it to that once everything is done.
func (w *world) required(sha, conclusion string) {
	w.Helper()
	says := func() bool {
		c, _ := w.repo.Check(sha, "kernelgate")
		return c.Status == "completed" && c.Conclusion == conclusion
	}
	if w.opt.pat {
		state := map[string]string{"action_required": "pending", "success": "success"}[conclusion]
		says = func() bool {
			for _, s := range w.repo.Statuses(sha) {
				if s.Context == "kernelgate" {
					return s.State == state && (state != "pending" || strings.Contains(s.Description, "waits for /approve-policy"))
				}
			}
			return false
		}
	}
	w.until(conclusion, says)
	if w.settle(); !says() {
		w.Errorf("at first it is %s, and then it is not", conclusion)
	}
}

// A code owner's approving review of the head lets it change the rules, as /approve-policy
// does. Nobody else's does, nor one of another commit; and it can be taken back.
func TestCodeOwnersReview(t *testing.T) {
	for _, pat := range []bool{false, true} {
		t.Run(fmt.Sprintf("token=%v", pat), func(t *testing.T) {
			w := newWorld(t, worldOptions{pat: pat, retold: !pat})
			for login, role := range map[string]embedded.Role{"carl": embedded.Write, "rolf": embedded.Read} {
				w.hub.CreateUser(login)
				w.no(w.repo.Grant(login, role))
			}
			_, err := w.repo.Push("main", map[string]string{"CODEOWNERS": "* @olga\n/.github/ @carl @rolf @walt @org/team\n"}, "Owners")
			w.no(err)
			pr := w.edit("easy", ".github/kernelgate.yaml", nothingAsked, embedded.PROptions{})
			w.required(pr.HeadSHA(), "action_required")
			for _, who := range []string{"mara", "rolf", "olga"} { // no owners of it, and an owner who may only read
				w.no(pr.Review(who, "APPROVE", ""))
				w.settle()
				w.required(pr.HeadSHA(), "action_required")
			}
			if err := pr.Merge("olga"); err == nil {
				t.Fatal("merged in silence")
			}
			w.no(pr.Review("carl", "APPROVE", "Fine."))
			w.required(pr.HeadSHA(), "success")
			w.no(pr.Review("carl", "COMMENT", "By the way.")) // takes nothing back
			w.settle()
			w.required(pr.HeadSHA(), "success")
			w.no(pr.Review("carl", "REQUEST_CHANGES", "Or not."))
			w.required(pr.HeadSHA(), "action_required")
			w.no(pr.Review("carl", "APPROVE", ""))
			w.required(pr.HeadSHA(), "success")
			w.no(pr.Dismiss("mara", "carl"))
			w.required(pr.HeadSHA(), "action_required")
			if err := pr.Merge("olga"); err == nil {
				t.Fatal("a review that was dismissed let it pass")
			}
			w.no(pr.Review("carl", "APPROVE", ""))
			w.required(pr.HeadSHA(), "success")

			first := pr.HeadSHA()
			_, err = w.repo.Push("easy", map[string]string{"README.md": "And more.\n"}, "more")
			w.no(err)
			w.required(pr.HeadSHA(), "action_required")
			if first == pr.HeadSHA() {
				t.Fatal("the head did not move")
			}
			w.no(pr.Review("carl", "APPROVE", ""))
			w.required(pr.HeadSHA(), "success")
			w.no(pr.Merge("olga"))
		})
	}
}

// The owners are the base branch's: a change makes nobody an owner of itself.
func TestCodeOwnersOfTheChange(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	w.hub.CreateUser("carl")
	w.no(w.repo.Grant("carl", embedded.Write))
	_, err := w.repo.Push("easy", map[string]string{".github/kernelgate.yaml": nothingAsked, ".github/CODEOWNERS": "* @carl\n"}, "easy")
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Title: "easy", Head: "easy", Author: "walt"})
	w.no(err)
	w.required(pr.HeadSHA(), "action_required")
	w.no(pr.Review("carl", "APPROVE", ""))
	w.settle()
	w.required(pr.HeadSHA(), "action_required")
	_, err = w.repo.Push("main", map[string]string{".github/CODEOWNERS": "* @carl\n"}, "Owners") // and is found
	w.no(err)
	w.no(pr.Review("carl", "APPROVE", "Again."))
	w.required(pr.HeadSHA(), "success")
}

// A review is about the rules of then: where the base's are others it is void, and what
// happened to it while nobody listened is found at the start.
func TestReviewOfOtherRules(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	w.hub.CreateUser("carl")
	w.no(w.repo.Grant("carl", embedded.Write))
	_, err := w.repo.Push("main", map[string]string{"CODEOWNERS": "* @carl\n"}, "Owners")
	w.no(err)
	pr := w.edit("easy", ".github/kernelgate.yaml", strings.Replace(policyYAML, "+10%", "+8%", 1), embedded.PROptions{})
	w.required(pr.HeadSHA(), "action_required")
	w.no(w.running.stop())
	w.app.SetHook("", "")
	w.no(pr.Review("carl", "APPROVE", ""))
	w.no(w.hub.Quiet(w.ctx))
	w.start()
	w.required(pr.HeadSHA(), "success")
	w.no(w.running.stop())
	w.no(pr.Dismiss("mara", "carl"))
	w.no(w.hub.Quiet(w.ctx))
	w.app.SetHook("http://"+w.addr+"/webhook", secret)
	w.start()
	w.required(pr.HeadSHA(), "action_required")
	w.no(pr.Review("carl", "APPROVE", ""))
	w.required(pr.HeadSHA(), "success")
	_, err = w.repo.Push("main", map[string]string{".github/kernelgate.yaml": strings.Replace(policyYAML, "+10%", "+40%", 1)}, "Ask for more")
	w.no(err)
	w.required(pr.HeadSHA(), "action_required")
	w.no(pr.Label("walt", "tidy")) // and another look finds no more in it
	w.settle()
	w.required(pr.HeadSHA(), "action_required")
}

// Where GitHub does not tell the reviews, the verdict goes on: there is a command.
func TestReviewsThatNobodyMayRead(t *testing.T) {
	w := newWorld(t, worldOptions{refuse: func(rq *http.Request) *http.Response {
		if strings.HasSuffix(rq.URL.Path, "/reviews") {
			return no(rq, "Resource not accessible by integration")
		}
		return nil
	}})
	pr := w.edit("easy", ".github/kernelgate.yaml", nothingAsked, embedded.PROptions{})
	w.required(pr.HeadSHA(), "action_required")
	w.reacted(pr, w.comment(pr, "mara", "/approve-policy "+pr.HeadSHA()), "rocket")
	w.required(pr.HeadSHA(), "success")
}
