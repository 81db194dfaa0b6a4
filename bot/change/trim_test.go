package change

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/gates"
)

// A pull request that stays open for years, with a push, an approval, several commands, an
// extra measurement and a check of each kernel every time, has a state that stops growing.
func TestStateStopsGrowing(t *testing.T) {
	s := begin(t)
	reply := strings.Repeat("words ", 100)
	sizes := map[int]int{}
	for n := 1; n <= 2000; n++ {
		head := fmt.Sprintf("%040d", n)
		f := facts(head)
		f.Fork = true
		s.seen(f).plan(kernel("a"), kernel("b"))
		for i, effect := range []Effect{{Approve: &ForkApproved{For: given(head), By: "ann"}}, {ExtraRuns: []ExtraRun{{Folder: "kernels/a", Bundle: "x"}}}, {}} {
			id := fmt.Sprintf("comment-%d", 10*n+i)
			s.then(Asked{ID: id, Comment: int64(10*n + i), By: "ann", Request: grammar.Read("/help")},
				Answered{ID: id, OK: true, Answer: Answer{Kind: AnswerCannotServe, Quote: reply}, Effect: effect}, Published{Replies: map[string]int64{id: int64(n)}})
		}
		s.start("a").finish("a", gates.Defer).start("b").finish("b", gates.Pass)
		s.then(Finished{Job: s.ExtraRuns[0].Job, Token: 1, Result: Result{Outcome: gates.Pass}})
		checks := map[string]Posted{}
		for _, name := range []string{"kernelgate", "kernelgate / a", "kernelgate / b"} {
			checks[CheckKey(name, head)] = Posted{ID: int64(n), Digest: "d", Done: true}
		}
		s.then(Published{Checks: checks, Complete: true})
		if n == 500 || n == 2000 {
			text, err := json.Marshal(s.State)
			if err != nil {
				t.Fatal(err)
			}
			sizes[n] = len(text)
		}
	}
	if sizes[2000] > sizes[500]*101/100 || sizes[2000] > 250_000 {
		t.Errorf("after 500 pushes the state has %d bytes, after 2000 it has %d", sizes[500], sizes[2000])
	}
	if s.Held() || len(s.ChecksOf(s.Facts.Head)) != 3 || s.CommandsBefore+len(s.Commands) != 6000 {
		t.Errorf("held is %v, %d checks of the head, %d commands", s.Held(), len(s.ChecksOf(s.Facts.Head)), s.CommandsBefore+len(s.Commands))
	}
	before := len(s.Commands)
	s.then(Asked{ID: "comment-10", Comment: 10, Request: grammar.Read("/override again")})
	if len(s.Commands) != before || len(s.Unanswered()) > 0 {
		t.Error("a command that was forgotten is followed a second time")
	}
	s.then(Asked{ID: "line-10", Comment: 10, On: OnLine, Request: grammar.Read("/help")})
	if len(s.Unanswered()) != 1 {
		t.Error("a comment of a different kind with the same number is not followed")
	}
}

// What somebody still waits for is never dropped, however much comes after it.
func TestTrimKeepsWhatIsOpen(t *testing.T) {
	s := begin(t).seen(facts(headOne)).plan(kernel("a"))
	s.then(Asked{ID: "comment-1", Comment: 1}, Asked{ID: "comment-2", Comment: 2}, Answered{ID: "comment-2", Answer: Answer{Kind: AnswerHelp}}) // one without an answer, one without a reply
	s.then(Published{Checks: map[string]Posted{CheckKey("kernelgate", headTwo): {ID: 1}}})                                                      // one that is in progress
	s.command("extra", Effect{ExtraRuns: []ExtraRun{{Folder: "kernels/a", Bundle: "x"}}})                                                       // one that nobody has measured yet
	first := s.ExtraRuns[0].Job
	for n := range 300 {
		id := fmt.Sprintf("comment-%d", 100+n)
		s.then(Asked{ID: id, Comment: int64(100 + n)}, Answered{ID: id, Effect: Effect{ExtraRuns: []ExtraRun{{Folder: "kernels/a", Bundle: "x"}}}})
		s.then(Finished{Job: s.ExtraRuns[len(s.ExtraRuns)-1].Job, Token: 1, Result: Result{Outcome: gates.Pass}},
			Published{Replies: map[string]int64{id: 1}, Checks: map[string]Posted{CheckKey("kernelgate", fmt.Sprintf("%040d", n)): {ID: 2, Done: true}}})
	}
	has := func(id string) bool {
		return slices.ContainsFunc(s.Commands, func(c Command) bool { return c.ID == id })
	}
	if !has("comment-1") || !has("comment-2") || has("comment-100") || len(s.Commands) != maxCommands {
		t.Errorf("%d commands: without an answer %v, without a reply %v, done %v", len(s.Commands), has("comment-1"), has("comment-2"), has("comment-100"))
	}
	if _, ok := s.Run(first); !ok || len(s.ExtraRuns) > maxExtraRuns {
		t.Errorf("%d measurements, the one that waits is there: %v", len(s.ExtraRuns), ok)
	}
	if _, ok := s.Checks[CheckKey("kernelgate", headTwo)]; !ok || len(s.Checks) > maxChecks+1 {
		t.Errorf("%d checks, the one in progress is there: %v", len(s.Checks), ok)
	}
}
