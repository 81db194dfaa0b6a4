package cli

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// A soakPull is a pull request, and how it must look when everything is quiet.
type soakPull struct {
	s    *soak
	kind string
	repo *soakRepo
	pr   *embedded.PR
	rng  *rand.Rand // of its author
	id   string     // its branch, and a line of its sources: no two have the same machine code

	mu       sync.Mutex
	want     string             // the conclusion of the required check on its head; "" if it is closed
	word     string             // in the comment about the verdict; "" if there may be no such comment
	again    int                // how often it may be measured again, each time with a new check
	commands []embedded.Comment // each is answered once
	merged   bool
}

// soakKinds are the kinds of pull requests, by what their author does. Each has a weight.
var soakKinds = []struct {
	name   string
	weight int
	play   func(*soakPull) error
}{
	{"faster", 5, func(p *soakPull) error { return p.propose(p.kernel(80), "success", "PASS") }},
	{"slower", 3, func(p *soakPull) error { return p.propose(p.kernel(105), "failure", "DEFER") }},
	{"wrong", 2, func(p *soakPull) error {
		return p.propose(p.source("us=50 norm=0.5"), "failure", "DEFER")
	}},
	{"does not build", 2, func(p *soakPull) error { return p.propose(p.source("us=80; )"), "failure", "DEFER") }},
	{"documents only", 2, func(p *soakPull) error {
		return p.propose(map[string]string{"docs/" + p.id + ".md": p.id + "\n"}, "success", "")
	}},
	{"policy tightened", 1, func(p *soakPull) error { return p.propose(p.policy("+12%"), "success", "") }},
	{"policy loosened", 1, func(p *soakPull) error { return p.propose(p.policy("+5%"), "action_required", "") }},
	{"policy loosened and approved", 1, playApproval},
	{"slower, then faster by force push", 2, func(p *soakPull) error { return p.forcePush(105, "failure", 80, "success") }},
	{"faster, then slower by force push", 2, func(p *soakPull) error { return p.forcePush(80, "success", 105, "failure") }},
	{"/rebench of a faster one", 2, func(p *soakPull) error { return p.rebench(80, "success", "PASS", "walt") }},
	{"/rebench of a slower one", 2, func(p *soakPull) error { return p.rebench(105, "failure", "DEFER", "walt") }},
	{"/rebench by a reader", 1, func(p *soakPull) error { return p.rebench(105, "failure", "DEFER", "rita") }},
	{"/override by a maintainer", 2, func(p *soakPull) error { return p.override("mara", "success") }},
	{"/override by a writer", 2, func(p *soakPull) error { return p.override("walt", "failure") }},
	{"merged", 3, playMerge},
	{"closed", 2, playClose},
	{"moved to a stricter base", 1, func(p *soakPull) error { return p.retarget("main", "success", soakBranch, "failure") }},
	{"moved to a milder base", 1, func(p *soakPull) error { return p.retarget(soakBranch, "failure", "main", "success") }},
}

func (p *soakPull) source(text string) map[string]string {
	return map[string]string{"kernels/scale/kernel.sh": text + "\n# " + p.id + "\n"}
}

func (p *soakPull) kernel(us int) map[string]string { return p.source(fmt.Sprintf("us=%d", us)) }

func (p *soakPull) policy(speedup string) map[string]string {
	return map[string]string{".github/kernelgate.yaml": fmt.Sprintf(soakPolicy, speedup)}
}

// propose opens the pull request.
func (p *soakPull) propose(files map[string]string, want, word string) error {
	return p.proposeTo("main", files, want, word)
}

func (p *soakPull) proposeTo(base string, files map[string]string, want, word string) error {
	if err := p.push(files, want); err != nil {
		return err
	}
	pr, err := p.repo.OpenPR(embedded.PROptions{Author: "walt", Title: p.kind, Head: p.id, Base: base})
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.pr, p.want, p.word = pr, want, word
	p.mu.Unlock()
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.s.all = append(p.s.all, p)
	return nil
}

// push replaces the head by a commit on the first one of the default branch.
func (p *soakPull) push(files map[string]string, want string) error {
	return p.pushOn(p.repo.first, files, want)
}

func (p *soakPull) pushOn(parent string, files map[string]string, want string) error {
	pushed := time.Now()
	sha, err := p.repo.PushCommit(embedded.Commit{Branch: p.id, From: parent, Files: files, Message: p.kind + "\n\n" + p.id, Author: "walt"})
	if err != nil {
		return err
	}
	p.s.heads.add(sha, pushed, want == "success")
	return nil
}

// expect changes how the pull request must look.
func (p *soakPull) expect(want, word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.want, p.word = want, word
}

// mayRepeat allows one more check: one that is concluded stays as it is, and GitHub counts the newest.
func (p *soakPull) mayRepeat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.again++
}

// pause waits for as long as people do: seconds.
func (p *soakPull) pause() { p.s.sleep(time.Duration(p.rng.IntN(8000)) * time.Millisecond) }

var errNoVerdict = errors.New("there was no verdict to the end")

// await waits for a conclusion of the required check.
func (p *soakPull) await(want string) error {
	head := p.pr.HeadSHA()
	if err := p.s.hub.WaitFor(p.s.ctx, func() bool {
		c, ok := p.repo.Check(head, "kernelgate")
		return ok && c.Status == "completed" && c.Conclusion == want
	}); err != nil {
		return fmt.Errorf("%w: %w", errNoVerdict, err)
	}
	return nil
}

func (p *soakPull) command(who, text string) error {
	c, err := p.pr.Comment(who, text)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commands = append(p.commands, c)
	return nil
}

func playApproval(p *soakPull) error {
	if err := p.propose(p.policy("+5%"), "action_required", ""); err != nil {
		return err
	}
	if err := p.await("action_required"); err != nil {
		return err
	}
	p.pause()
	p.s.heads.allow(p.pr.HeadSHA())
	p.expect("success", "")
	return p.command("mara", "/approve-policy "+p.pr.HeadSHA())
}

func (p *soakPull) forcePush(first int, was string, then int, want string) error {
	if err := p.propose(p.kernel(first), was, ""); err != nil {
		return err
	}
	p.pause() // the first head may have a verdict or not
	if err := p.push(p.kernel(then), want); err != nil {
		return err
	}
	p.expect(want, verdictWord(want))
	return nil
}

func (p *soakPull) rebench(us int, want, word, who string) error {
	if err := p.propose(p.kernel(us), want, word); err != nil {
		return err
	}
	if p.rng.IntN(2) == 0 {
		if err := p.await(want); err != nil {
			return err
		}
	}
	p.pause()
	if who == "walt" {
		p.mayRepeat()
	}
	return p.command(who, "/rebench")
}

func (p *soakPull) override(who, want string) error {
	if err := p.propose(p.kernel(105), "failure", "DEFER"); err != nil {
		return err
	}
	if err := p.await("failure"); err != nil {
		return err
	}
	p.pause()
	if want == "success" {
		p.s.heads.allow(p.pr.HeadSHA())
		p.expect(want, "")
	}
	return p.command(who, "/override needed for the release")
}

// playMerge makes the second kernel faster than it is, and merges that. Only one pull request of a repository does so at a time.
func playMerge(p *soakPull) error {
	if !p.repo.merging.TryLock() {
		p.kind = "faster"
		return p.propose(p.kernel(80), "success", "PASS")
	}
	defer p.repo.merging.Unlock()
	us := p.repo.us * 0.8
	files := map[string]string{"kernels/chain/kernel.sh": fmt.Sprintf("us=%.4f\n# %s\n", us, p.id)}
	if err := p.pushOn(p.repo.Head("main"), files, "success"); err != nil {
		return err
	}
	pr, err := p.repo.OpenPR(embedded.PROptions{Author: "walt", Title: p.kind, Head: p.id})
	if err != nil {
		return err
	}
	p.pr, p.want, p.word = pr, "success", "PASS"
	p.s.mu.Lock()
	p.s.all = append(p.s.all, p)
	p.s.mu.Unlock()
	if err := p.await("success"); err != nil {
		return err
	}
	if err := pr.Merge("mara"); err != nil {
		return err
	}
	p.repo.us = us
	p.mu.Lock()
	defer p.mu.Unlock()
	p.want, p.merged = "", true
	return nil
}

func playClose(p *soakPull) error {
	want := []string{"success", "failure"}[p.rng.IntN(2)]
	if err := p.propose(p.kernel(map[string]int{"success": 80, "failure": 105}[want]), want, ""); err != nil {
		return err
	}
	p.pause()
	p.expect("", "")
	return p.pr.Close("walt")
}

func (p *soakPull) retarget(from, was, to, want string) error {
	if err := p.proposeTo(from, p.kernel(80), was, verdictWord(was)); err != nil {
		return err
	}
	if p.rng.IntN(2) == 0 {
		if err := p.await(was); err != nil {
			return err
		}
	}
	p.pause()
	if want == "success" {
		p.s.heads.allowAll(p.pr.HeadSHA())
	}
	p.expect(want, verdictWord(want))
	p.mayRepeat()
	return p.pr.Edit("walt", "", "", to)
}

func verdictWord(conclusion string) string {
	return map[string]string{"success": "PASS", "failure": "DEFER"}[conclusion]
}

// wrong returns how the pull request differs from what is expected, or "".
func (p *soakPull) wrong() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	head := p.pr.HeadSHA()
	checks := p.repo.Checks(head)
	sticky, replies := "", map[string]int{}
	for _, c := range p.pr.Comments() {
		if c.Author != p.s.app.Login() {
			continue
		}
		mark, rest, _ := strings.Cut(c.Body, "\n")
		if strings.Contains(mark, "reply:") {
			replies[mark]++
			continue
		}
		if sticky != "" {
			return "has two comments about its verdict"
		}
		sticky, _, _ = strings.Cut(rest, "\n")
	}
	for _, asked := range p.commands {
		if n := replies[fmt.Sprintf("<!-- kernelgate:reply:comment-%d -->", asked.ID)]; n != 1 {
			return fmt.Sprintf("has %d replies to %q", n, asked.Body)
		}
	}
	if len(replies) != len(p.commands) {
		return fmt.Sprintf("has %d replies to %d commands", len(replies), len(p.commands))
	}
	if p.want == "" { // closed: nobody needs its check any more
		return ""
	}
	named := map[string]int{}
	for _, c := range slices.Backward(checks) {
		if named[c.Name]++; named[c.Name] > 1+p.again {
			return fmt.Sprintf("has %d checks with the name %q", named[c.Name], c.Name)
		}
		if named[c.Name] > 1 {
			continue // GitHub counts the newest
		}
		if c.Status != "completed" {
			return fmt.Sprintf("the check %q is %s: %s", c.Name, c.Status, c.Title)
		}
		if c.Name == "kernelgate" && c.Conclusion != p.want {
			return fmt.Sprintf("the check is %s (%s), want %s", c.Conclusion, c.Title, p.want)
		}
	}
	if named["kernelgate"] == 0 {
		return "has no check"
	}
	if p.word != "" && !strings.Contains(sticky, p.word) {
		return fmt.Sprintf("the comment says %q, want %s", sticky, p.word)
	}
	return ""
}

func (p *soakPull) String() string {
	return fmt.Sprintf("%s#%d (%s)", p.repo.FullName(), p.pr.Number(), p.kind)
}
