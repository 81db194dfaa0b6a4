package controller_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/internal/long"
)

// Random sequences with the real bot, GitHub's API and git: people change bases, push, close, reopen, override, enqueue and merge, and
// rename the repository. Main's queue must never take a kernel that main's policy did not accept. Package answer plays
// many more of them with a model in place of GitHub and git. KERNELGATE_RANDOM sets how many are played here.
func TestRandomBases(t *testing.T) {
	sequences := long.Times(2, 12)
	if n, err := strconv.Atoi(os.Getenv("KERNELGATE_RANDOM")); err == nil {
		sequences = n
	}
	for seed := range sequences {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, worldOptions{retold: seed > 0})
			r := rand.New(rand.NewPCG(uint64(seed), 5))
			w.repo.ProtectBranch("main", embedded.Protection{Checks: []embedded.RequiredCheck{{Context: "kernelgate"}}, Queue: r.IntN(2) == 0})
			w.ownRules("mine", "commands: {override: write, approve-policy: write, ok-to-test: read}\n")
			w.ownRules("free", "")
			s := &sequence{world: w, r: r, overridden: map[string]bool{}, sources: map[string]string{}, renames: seed%2 == 1}
			for range 14 {
				did := s.step()
				if r.IntN(3) == 0 {
					w.settle()
				}
				if why := s.violation(); why != "" {
					t.Fatalf("after %s: %s\n  %s", did, why, strings.Join(s.steps, "\n  "))
				}
			}
			w.settle()
			if why := s.violation(); why != "" {
				t.Fatalf("at the end: %s\n  %s", why, strings.Join(s.steps, "\n  "))
			}
		})
	}
}

// A sequence is one of the random ones.
type sequence struct {
	*world
	r          *rand.Rand
	prs        []*embedded.PR
	overridden map[string]bool // heads that mara, who may, has overridden for main
	renames    bool
	sources    map[string]string // by head
	steps      []string
}

func (s *sequence) step() string {
	did := s.act()
	s.steps = append(s.steps, did)
	return did
}

func (s *sequence) act() string {
	bases := []string{"main", "mine", "free"}
	if len(s.prs) < 2 || s.r.IntN(8) == 0 && len(s.prs) < 4 {
		return s.open(bases[s.r.IntN(3)])
	}
	pr := s.prs[s.r.IntN(len(s.prs))]
	name := fmt.Sprintf("#%d", pr.Number())
	switch s.r.IntN(9) {
	case 0, 1:
		base := bases[s.r.IntN(3)]
		return fmt.Sprintf("%s goes to %s: %v", name, base, pr.Edit("walt", "Change", "", base))
	case 2:
		return fmt.Sprintf("%s is closed: %v", name, pr.Close("walt"))
	case 3:
		return fmt.Sprintf("%s is reopened: %v", name, pr.Reopen("walt"))
	case 4:
		who := []string{"walt", "mara"}[s.r.IntN(2)]
		if who == "mara" && pr.State().Base == "main" {
			s.overridden[pr.HeadSHA()] = true
		}
		_, err := pr.Comment(who, "/override now")
		return fmt.Sprintf("%s (to %s) is overridden by %s: %v", name, pr.State().Base, who, err)
	case 5, 6:
		s.settle() // GitHub merges by what it shows, also before the bot has the webhook of a new base
		err := pr.Merge("walt")
		return fmt.Sprintf("%s is merged to %s: %v", name, pr.State().Base, err)
	case 7:
		return fmt.Sprintf("%s is enqueued: %v", name, s.repo.Enqueue("walt", pr))
	}
	if s.renames && s.r.IntN(2) == 0 {
		return fmt.Sprint("renamed: ", s.repo.Rename(fmt.Sprint("kernels-", s.r.IntN(100))))
	}
	heads := s.repo.QueueHeads()
	if len(heads) == 0 {
		return "nothing"
	}
	branch := fmt.Sprint("at-group-", len(s.steps))
	if err := s.repo.CreateBranch("walt", branch, heads[0]); err != nil {
		return err.Error()
	}
	other, err := s.repo.OpenPR(embedded.PROptions{Title: "Change", Head: branch, Base: "free", Author: "walt"})
	if err == nil {
		s.prs = append(s.prs, other)
	}
	return fmt.Sprintf("a pull request at the commit of a group: %v", err)
}

func (s *sequence) open(base string) string {
	branch := fmt.Sprint("change-", len(s.prs))
	source := []string{"// WRONG speed 9\n", "// speed 0.5\n", "// speed 1.4\n"}[s.r.IntN(3)]
	sha, err := s.repo.PushCommit(embedded.Commit{Branch: branch, From: s.repo.Head("main"), Author: "walt", Message: branch, Files: map[string]string{sourceFile: fmt.Sprintf("%s// %d\n", source, len(s.prs))}})
	if err != nil {
		return err.Error()
	}
	pr, err := s.repo.OpenPR(embedded.PROptions{Title: "Change", Head: branch, Base: base, Author: "walt"})
	if err != nil {
		return err.Error()
	}
	s.prs, s.sources[sha] = append(s.prs, pr), source
	return fmt.Sprintf("#%d opened to %s with %q", pr.Number(), base, source)
}

// violation looks at what was merged to main: only a kernel that passes by main's policy, or one that a maintainer let pass there.
func (s *sequence) violation() string {
	for _, pr := range s.prs {
		st := pr.State()
		if !st.Merged || st.Base != "main" || s.overridden[pr.HeadSHA()] {
			continue
		}
		if text := s.sources[pr.HeadSHA()]; !strings.HasPrefix(text, "// speed 1.4") {
			return fmt.Sprintf("main has %q of #%d", text, pr.Number())
		}
	}
	return ""
}
