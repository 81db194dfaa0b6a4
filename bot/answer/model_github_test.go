package answer_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// The model of GitHub has what decides about a merge: branches with a policy and a kernel each, commits, pull requests whose base
// their authors choose, a merge queue, and required checks, which GitHub looks up by name on a commit.

// A ruleSet is a policy, in what decides about a merge.
type ruleSet struct {
	none                        bool // the branch has no policy
	override, approve, okToTest policy.Role
	never                       bool   // code from forks never runs
	goal                        int    // how good a kernel must be
	device                      string // that measures it
	check                       string
	text                        string
	parsed                      *policy.Policy
}

func modelRules() []ruleSet {
	all := []ruleSet{
		{none: true, check: "kernelgate"},
		{override: "write", approve: "write", okToTest: "read", goal: 0, device: "cpu", check: "kernelgate"},
		{override: "maintain", approve: "maintain", okToTest: "write", goal: 2, device: "cpu", check: "kernelgate"},
		{override: "admin", approve: "admin", okToTest: "write", goal: 3, device: "h200", check: "kernelgate"},
		{override: "maintain", approve: "maintain", okToTest: "write", never: true, goal: 2, device: "h200", check: "kernelgate"},
		{override: "write", approve: "write", okToTest: "read", goal: 1, device: "cpu", check: "gate"},
		{override: "maintain", approve: "maintain", okToTest: "write", goal: 2, device: "cpu", check: "gate"},
	}
	for i := range all {
		r := &all[i]
		if r.none {
			continue
		}
		forks := "after-approval"
		if r.never {
			forks = "never"
		}
		r.text = fmt.Sprintf("version: 1\ndevices: [%s]\ncheck: %s\nforks: {run: %s}\ncommands: {override: %s, approve-policy: %s, ok-to-test: %s}\ngates: {correctness: {norm_error: \"<= %d%%\"}}\nrules: [{name: default}]\n",
			r.device, r.check, forks, r.override, r.approve, r.okToTest, 1+r.goal)
		var err error
		if r.parsed, err = policy.Parse("policy.yaml", []byte(r.text)); err != nil {
			panic(err)
		}
	}
	return all
}

// Content is what a branch or a commit has: a kernel, which is good to a degree on each device, and rules.
type content struct {
	kernel kernelVersion
	rules  int // an index of modelRules
}

type kernelVersion struct {
	id        int
	cpu, h200 int // how good it is
}

func (k kernelVersion) on(device string) int {
	if device == "h200" {
		return k.h200
	}
	return k.cpu
}

// A modelCommit changes the kernel, the rules, both or nothing of what it is merged into.
type modelCommit struct {
	kernel *kernelVersion
	rules  *int
}

func (c modelCommit) into(b content) content {
	if c.kernel != nil {
		b.kernel = *c.kernel
	}
	if c.rules != nil {
		b.rules = *c.rules
	}
	return b
}

type modelPull struct {
	number       int
	head, base   string
	fork         bool
	author       string
	open, merged bool
	updated      int // counts its changes
}

type modelGroup struct {
	pull     *modelPull
	head     string
	pullHead string
	base     content // that it was made on
}

// A decided is a decision that people made on GitHub, with the rules that they could see. It is about a head and a base: whichever
// pull request brings this head to this base merges the same.
type decided struct {
	command string
	head    string
	base    string
	rules   int
}

// A hub is the model of GitHub.
type hub struct {
	r        *rand.Rand
	sets     []ruleSet
	branches map[string]content
	requires map[string]string // the required check of a protected branch
	commits  map[string]modelCommit
	order    []string // the commits, oldest first
	pulls    []*modelPull
	queue    []*modelGroup          // main's
	shows    map[[2]string][]string // by commit and name: conclusion "" while it is not concluded, newest last
	decided  map[decided]bool       // by people with the role of that branch, at that moment
	lastID   int
	bot      *modelBot
	violated string
	trace    func(string) // nil unless a sequence is reported
	merges   int
}

var people5 = []string{"read", "write", "maintain", "admin", "writer"} // called by their role

func roleOf(login string) policy.Role {
	switch login {
	case "writer", "writer2":
		return "write"
	case "stranger":
		return ""
	}
	return policy.Role(login)
}

func newHub(r *rand.Rand, sets []ruleSet) *hub {
	h := &hub{r: r, sets: sets, commits: map[string]modelCommit{}, shows: map[[2]string][]string{}, decided: map[decided]bool{}}
	root := kernelVersion{id: 0, cpu: 2, h200: 2}
	h.branches = map[string]content{"main": {root, 2 + r.IntN(3)}, "strict": {root, 6}, "mine": {root, r.IntN(len(sets))}}
	h.requires = map[string]string{"main": "kernelgate", "strict": "gate"}
	h.bot = newModelBot(h)
	return h
}

func (h *hub) newSHA() string { h.lastID++; return fmt.Sprintf("%040x", h.lastID) }

func (h *hub) commit(c modelCommit) string {
	sha := h.newSHA()
	h.commits[sha] = c
	h.order = append(h.order, sha)
	return sha
}

func (h *hub) show(by change.ID, sha, name, conclusion string) {
	h.shows[[2]string{sha, name}] = append(h.shows[[2]string{sha, name}], conclusion)
	if h.trace != nil {
		h.trace(fmt.Sprintf("  %s on %s: %q, says %s", name, sha[34:], conclusion, by))
	}
}

// passes is GitHub's own question about a protected branch.
func (h *hub) passes(branch, sha string) (ok, failing bool) {
	name, protected := h.requires[branch]
	if !protected {
		return true, false
	}
	all := h.shows[[2]string{sha, name}]
	if len(all) == 0 {
		return false, false
	}
	last := all[len(all)-1]
	return last == "success", last != "success" && last != ""
}

// accept checks the invariant: a protected branch never gets a kernel, or rules, that its own rules at this moment did not accept.
func (h *hub) accept(branch string, is, would content, p *modelPull, head string) {
	if _, protected := h.requires[branch]; !protected {
		return
	}
	rules := h.sets[is.rules]
	if rules.none {
		return
	}
	said := func(command string) bool { return h.decided[decided{command, head, branch, is.rules}] }
	if would.kernel != is.kernel && would.kernel.on(rules.device) < rules.goal && !said("override") {
		h.violated = fmt.Sprintf("%s got kernel %+v by #%d at %.6s, and its rules %d ask for %d on %s", branch, would.kernel, p.number, head[34:], is.rules, rules.goal, rules.device)
	}
	if would.rules != is.rules && !said("approve-policy") {
		h.violated = fmt.Sprintf("%s got rules %d by #%d at %s, and nobody whom its rules %d name approved them", branch, would.rules, p.number, head[34:], is.rules)
	}
}

func (h *hub) setBranch(branch string, c content) {
	h.branches[branch] = c
	h.bot.pushed(branch)
}

// merge is somebody's attempt to merge a pull request.
func (h *hub) merge(p *modelPull) {
	if ok, _ := h.passes(p.base, p.head); !p.open || !ok {
		return
	}
	is := h.branches[p.base]
	would := h.commits[p.head].into(is)
	h.accept(p.base, is, would, p, p.head)
	h.merged(p, would)
}

func (h *hub) merged(p *modelPull, would content) {
	h.merges++
	p.open, p.merged = false, true
	base := p.base
	h.edited(p)
	h.setBranch(base, would)
	h.rebuild(base)
}

// edited tells the bot of a pull request, which leaves the queue.
func (h *hub) edited(p *modelPull) {
	p.updated++
	h.bot.pull(p)
	if slices.ContainsFunc(h.queue, func(g *modelGroup) bool { return g.pull == p }) {
		h.dequeue(p)
	}
}

func (h *hub) enqueue(p *modelPull) {
	if ok, _ := h.passes(p.base, p.head); !p.open || p.base != "main" || !ok || slices.ContainsFunc(h.queue, func(g *modelGroup) bool { return g.pull == p }) {
		return
	}
	h.form(p)
}

func (h *hub) form(p *modelPull) {
	base := h.branches["main"]
	if n := len(h.queue); n > 0 {
		ahead := h.queue[n-1]
		base = h.commits[ahead.pullHead].into(ahead.base)
	}
	g := &modelGroup{pull: p, head: h.commit(h.commits[p.head]), pullHead: p.head, base: base}
	h.queue = append(h.queue, g)
	h.bot.group(g)
}

// dequeue takes a pull request out of the queue, and forms the groups behind it again.
func (h *hub) dequeue(p *modelPull) {
	i := slices.IndexFunc(h.queue, func(g *modelGroup) bool { return g.pull == p })
	behind := h.queue[i:]
	h.queue = slices.Clone(h.queue[:i])
	for _, g := range behind {
		h.bot.groupGone(g)
	}
	for _, g := range behind[1:] {
		h.form(g.pull)
	}
}

// rebuild forms all groups again after a push to main from outside of the queue.
func (h *hub) rebuild(branch string) {
	if branch != "main" || len(h.queue) == 0 || h.queue[0].base == h.branches["main"] {
		return
	}
	all := h.queue
	h.queue = nil
	for _, g := range all {
		h.bot.groupGone(g)
	}
	for _, g := range all {
		h.form(g.pull)
	}
}

// advance merges the front of the queue while it passes.
func (h *hub) advance() {
	for len(h.queue) > 0 {
		g := h.queue[0]
		ok, failing := h.passes("main", g.head)
		if failing {
			h.dequeue(g.pull)
			continue
		}
		if !ok {
			return
		}
		h.queue = h.queue[1:]
		is := h.branches["main"]
		would := h.commits[g.pullHead].into(is)
		h.accept("main", is, would, g.pull, g.pullHead)
		h.bot.groupGone(g)
		h.merged(g.pull, would)
	}
}
