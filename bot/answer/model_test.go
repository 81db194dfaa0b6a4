package answer_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A step is one thing that people or the bot do. It says what it was, for the report of a violation; "" is nothing.
func (h *hub) step() string {
	p := func() *modelPull {
		if len(h.pulls) == 0 {
			return h.open(h.commit(h.anyCommit()))
		}
		return h.pulls[h.r.IntN(len(h.pulls))]
	}
	switch n := h.r.IntN(100); {
	case n < 34: // the bot
		if due := h.bot.due(); len(due) > 0 {
			due[h.r.IntN(len(due))]()
			return "the bot works"
		}
		return ""
	case n < 41:
		if len(h.pulls) >= 5 {
			return ""
		}
		head := h.commit(h.anyCommit())
		p := h.open(head)
		return fmt.Sprintf("#%d opened at %s to %s (fork %v)", p.number, head[34:], p.base, p.fork)
	case n < 48: // a second pull request with a commit that is there, also one of a group
		if len(h.pulls) >= 6 || len(h.order) == 0 {
			return ""
		}
		p := h.open(h.order[h.r.IntN(len(h.order))])
		return fmt.Sprintf("#%d opened at the existing %s to %s (fork %v)", p.number, p.head[34:], p.base, p.fork)
	case n < 53:
		p := p()
		if p.open {
			if p.head = h.order[h.r.IntN(len(h.order))]; h.r.IntN(2) == 0 {
				p.head = h.commit(h.anyCommit())
			}
			h.edited(p)
		}
		return fmt.Sprintf("#%d pushed to %s", p.number, p.head[34:])
	case n < 63:
		p := p()
		if !p.merged {
			p.base = h.anyBranch()
			h.edited(p)
		}
		return fmt.Sprintf("#%d goes to %s", p.number, p.base)
	case n < 68:
		p := p()
		if !p.merged {
			p.open = !p.open
			h.edited(p)
		}
		return fmt.Sprintf("#%d open %v", p.number, p.open)
	case n < 80:
		return h.say(p())
	case n < 87:
		p := p()
		h.merge(p)
		return fmt.Sprintf("#%d: merge to %s: %v", p.number, p.base, p.merged)
	case n < 94:
		p := p()
		h.enqueue(p)
		return fmt.Sprintf("#%d: enqueue", p.number)
	default: // anybody with write access may push to a branch without protection
		h.setBranch("mine", h.anyCommit().into(h.branches["mine"]))
		return fmt.Sprintf("mine has rules %d", h.branches["mine"].rules)
	}
}

func (h *hub) anyBranch() string { return []string{"main", "strict", "mine", "main"}[h.r.IntN(4)] }

func (h *hub) anyCommit() (c modelCommit) {
	if h.r.IntN(4) > 0 {
		h.lastID++
		c.kernel = &kernelVersion{id: h.lastID, cpu: h.r.IntN(4), h200: h.r.IntN(4)}
	}
	if c.kernel == nil || h.r.IntN(6) == 0 {
		rules := h.r.IntN(len(h.sets))
		c.rules = &rules
	}
	return c
}

func (h *hub) open(head string) *modelPull {
	p := &modelPull{number: len(h.pulls) + 1, head: head, base: h.anyBranch(), open: true, fork: h.r.IntN(3) == 0, author: "writer"}
	if p.fork {
		p.author = "stranger"
	}
	h.pulls = append(h.pulls, p)
	h.edited(p)
	return p
}

// say comments a command.
func (h *hub) say(p *modelPull) string {
	if !p.open {
		return ""
	}
	by := people5[h.r.IntN(len(people5))]
	c := []grammar.Command{grammar.Override{Reason: "now"}, grammar.ApprovePolicy{SHA: p.head}, grammar.OKToTest{SHA: p.head}}[h.r.IntN(3)]
	h.bot.asked(p, by, c)
	return fmt.Sprintf("#%d (to %s): /%s by %s", p.number, p.base, c.Name(), by)
}

// decide notes a decision if the author of a command may decide that by the rules of the base at this moment, and meant this head, this
// base and, if the bot had read them, these rules.
func (h *hub) decide(pull int, c change.Command) {
	p := h.pullAt(pull)
	at := h.branches[p.base].rules
	rules, name := h.sets[at], c.Request.Name()
	needs := map[string]policy.Role{"override": rules.override, "approve-policy": rules.approve, "ok-to-test": rules.okToTest}[name]
	meant := c.Head == p.head && c.Base == p.base && (c.Rules == "" || c.Rules == fmt.Sprintf("r%d", at))
	own := name == "approve-policy" && c.By == p.author && c.By != "admin"
	if meant && !rules.none && needs.Allows(roleOf(c.By)) && !own {
		h.decided[decided{name, p.head, p.base, at}] = true
	}
}

// A coverage counts what the sequences reached, so that a model in which nothing happens is noticed.
type coverage struct{ merges, groups, overrides, approvals, forks, voided, shared atomic.Int64 }

const modelSteps = 40

// play plays one sequence, and returns what violated the invariant.
func play(seed uint64, sets []ruleSet, c *coverage, trace func(string)) string {
	h := newHub(rand.New(rand.NewPCG(seed, 1)), sets)
	h.trace = trace
	for range modelSteps {
		if did := h.step(); trace != nil && did != "" {
			trace(did)
		}
		h.advance()
		if h.violated != "" {
			return h.violated
		}
		if h.bot.sharedHeads() > 0 {
			c.shared.Add(1)
		}
	}
	c.merges.Add(int64(h.merges))
	for id, s := range h.bot.states {
		if id.SHA != "" && s.Plan != nil {
			c.groups.Add(1)
		}
		if s.Overridden() != nil {
			c.overrides.Add(1)
		}
		if s.ApprovedRules(s.Current()) != nil {
			c.approvals.Add(1)
		}
		if s.Facts.Fork && !s.Held() {
			c.forks.Add(1)
		}
		c.voided.Add(int64(len(s.Voided)))
	}
	return ""
}

// A protected branch never contains a kernel, or rules, that its own policy had not accepted at that moment, whatever people do:
// change bases, push, close, reopen, open second pull requests at any commit, give commands, merge, enqueue, and edit the
// policies of their own branches. KERNELGATE_SEQUENCES sets how many random sequences are played.
func TestProtectedBranchesAreGated(t *testing.T) {
	sequences := long.Times(2_000, 10_000)
	if n, err := strconv.Atoi(os.Getenv("KERNELGATE_SEQUENCES")); err == nil {
		sequences = n
	}
	sets, c := modelRules(), &coverage{}
	var next, found atomic.Int64
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for {
				seed := next.Add(1)
				if seed > int64(sequences) || found.Load() >= 3 {
					return
				}
				if why := play(uint64(seed), sets, c, nil); why != "" {
					found.Add(1)
					var steps []string
					play(uint64(seed), sets, &coverage{}, func(did string) { steps = append(steps, did) })
					t.Errorf("sequence %d: %s\n  %s", seed, why, strings.Join(steps, "\n  "))
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d sequences of %d steps: %d merges, %d groups, %d overrides, %d approvals and %d forks that hold at the end, %d void decisions, %d steps with a shared head",
		sequences, modelSteps, c.merges.Load(), c.groups.Load(), c.overrides.Load(), c.approvals.Load(), c.forks.Load(), c.voided.Load(), c.shared.Load())
	for name, n := range map[string]*atomic.Int64{"merges": &c.merges, "groups": &c.groups, "overrides": &c.overrides, "approvals": &c.approvals, "forks": &c.forks, "void decisions": &c.voided, "shared heads": &c.shared} {
		if found.Load() == 0 && n.Load() < int64(sequences)/100 {
			t.Errorf("only %d %s in %d sequences: the model does not try what it should", n.Load(), name, sequences)
		}
	}
}
