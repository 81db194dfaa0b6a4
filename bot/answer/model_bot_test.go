package answer_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/answer"
	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// The model of the bot has the decisions of the real one: bot/change, bot/answer and bot/present. In place of the controller it
// records what GitHub says at once, and publishes everything that needs no plan. Plans, measurements and answers come later, or
// never. TestRandomBases plays the same sequences with the real controller.

type modelBot struct {
	hub    *hub
	states map[change.ID]*change.State
	order  []change.ID
	seq    uint64
	dirty  bool
}

const modelRepo = 7

func newModelBot(h *hub) *modelBot { return &modelBot{hub: h, states: map[change.ID]*change.State{}} }

func pullID(n int) change.ID       { return change.ID{Kind: change.Pull, Repo: modelRepo, Number: n} }
func groupID(sha string) change.ID { return change.ID{Kind: change.Group, Repo: modelRepo, SHA: sha} }

func (b *modelBot) state(id change.ID) *change.State {
	s := b.states[id]
	if s == nil {
		s = change.New(id)
		b.states[id] = s
		b.order = append(b.order, id)
	}
	return s
}

func (b *modelBot) write(s *change.State, e change.Event) {
	b.seq++
	s.Apply(b.seq, modelTime, e)
	b.dirty = true
}

var modelTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (b *modelBot) pull(p *modelPull) {
	s := b.state(pullID(p.number))
	b.write(s, change.Seen{Facts: change.Facts{
		Repo: "o/r", Author: p.author, Open: p.open, Merged: p.merged, Fork: p.fork, Head: p.head, Base: p.base, Rules: s.Facts.Rules,
		Updated: modelTime.Add(time.Duration(p.updated)),
	}})
	b.publish()
}

// rulesOf is the digest of what a branch asks, and of the sources of its kernel.
func rulesOf(c content) string { return fmt.Sprintf("r%d-k%d", c.rules, c.kernel.id) }

// pushed compares the pull requests to a branch with its rules, as Controller.recordRules does.
func (b *modelBot) pushed(branch string) {
	rules := rulesOf(b.hub.branches[branch])
	for _, id := range b.order {
		s := b.states[id]
		f := s.Facts
		if id.Kind == change.Pull && f.Open && f.Base == branch && s.Plan != nil && s.Plan.Rules != rules && f.Rules != rules {
			f.Rules = rules
			b.write(s, change.Seen{Facts: f})
		}
	}
	b.publish()
}

func (b *modelBot) group(g *modelGroup) {
	f := change.Facts{
		Repo: "o/r", Open: true, Head: g.head, Base: "main", BaseSHA: fmt.Sprintf("%x", rulesOf(g.base)),
		Members: []change.Member{{Number: g.pull.number, Head: g.pullHead}},
	}
	b.write(b.state(groupID(g.head)), change.Inherit(f, rulesOf(g.base), []*change.State{b.states[pullID(g.pull.number)]}, "now"))
	b.publish()
}

func (b *modelBot) groupGone(g *modelGroup) {
	s := b.states[groupID(g.head)]
	f := s.Facts
	f.Open = false
	b.write(s, change.Seen{Facts: f})
	b.publish()
}

// base is what a change is compared with.
func (b *modelBot) base(s *change.State) content {
	for _, g := range b.hub.queue {
		if s.ID == groupID(g.head) {
			return g.base
		}
	}
	return b.hub.branches[s.Facts.Base]
}

// plan is the planner's part.
func (b *modelBot) plan(s *change.State) {
	is := b.base(s)
	would := b.hub.commits[s.Facts.Head].into(is)
	rules := b.hub.sets[is.rules]
	p := change.Plan{Key: s.Facts.PlanKey(), Head: s.Facts.Head, Rules: rulesOf(is), Check: rules.check, PolicyFile: "policy.yaml", NoPolicy: rules.none, Forks: "after-approval"}
	if !rules.none {
		p.SetPolicy(rules.text, rules.parsed)
		if p.Forks = string(policy.ForksAfterApproval); rules.never {
			p.Forks = string(policy.ForksNever)
		}
		if would.rules != is.rules { // the same edit of two policies may look the same
			p.RuleChange = &change.RuleChange{Loosens: true, Digest: fmt.Sprintf("to %d", would.rules)}
		}
	}
	if would.kernel != is.kernel && !rules.none {
		k := change.Kernel{KernelSpec: change.KernelSpec{
			Name: "scale", Folder: "kernels/scale", Rule: fmt.Sprintf("goal-%d", rules.goal), Labels: []string{rules.device}, Sources: fmt.Sprintf("%d over %d", would.kernel.id, is.kernel.id), Bundle: "b",
		}}
		// As in Controller.reuseEvidence.
		if old, ok := s.ByFolder(k.Folder); ok && s.Plan != nil && s.ID.Kind == change.Pull && change.EvidenceHolds(old, p.Head, k.KernelSpec) {
			if old.Rule == k.Rule && s.Plan.Policy == p.Policy {
				k.Reused = true
			} else if old.Phase == change.Done {
				k.Result = verdictOn(would.kernel, old.Labels[0], rules.goal)
			}
		}
		p.Kernels = append(p.Kernels, k)
	}
	b.write(s, change.Planned{Plan: p})
	b.publish()
}

// verdictOn is what a measurement on a device and a policy lead to.
func verdictOn(k kernelVersion, device string, goal int) *change.Result {
	r := &change.Result{Outcome: gates.Pass, Line: "PASS", Verdict: "v", Device: device}
	if k.on(device) < goal {
		r.Outcome, r.Reason, r.Line = gates.Defer, gates.ReasonTooSlow, "DEFER"
	}
	return r
}

// measure finishes one run. Code of a fork must not run unless somebody with the role approved it for this base.
func (b *modelBot) measure(s *change.State, run change.Run) {
	p := b.hub.pullAt(s.ID.Number)
	if s.ID.Kind == change.Pull && p.fork {
		rules := b.base(s).rules
		if !b.hub.decided[decided{"ok-to-test", run.Head, s.Facts.Base, rules}] || b.hub.sets[rules].never {
			b.hub.violated = fmt.Sprintf("code of a fork runs for #%d to %s, and nobody approved that", p.number, s.Facts.Base)
		}
	}
	is := b.base(s)
	b.write(s, change.Finished{Job: run.Job, Result: *verdictOn(b.hub.commits[run.Head].into(is).kernel, run.Labels[0], goalOf(run))})
	b.publish()
}

func goalOf(r change.Run) (goal int) {
	fmt.Sscanf(r.Rule, "goal-%d", &goal)
	return goal
}

// asked records a command, as Controller.recordCommand does.
func (b *modelBot) asked(p *modelPull, by string, c grammar.Command) {
	s := b.states[pullID(p.number)]
	asked := change.Asked{ID: fmt.Sprint("comment-", b.seq), By: by, Request: grammar.Request{Command: c}, Head: s.Facts.Head, Base: s.Facts.Base}
	if seen, known := s.Scope(); known {
		asked.Rules = seen.Rules
	}
	b.write(s, asked)
}

func (b *modelBot) answer(s *change.State, c change.Command) {
	d := answer.Decider{People: modelPeople{b.hub}, Planner: packer{}, Now: func() time.Time { return modelTime }}
	b.hub.decide(s.ID.Number, c)
	a, err := d.To(context.Background(), s, c)
	if err != nil {
		panic(err)
	}
	b.write(s, a)
	b.publish()
}

type modelPeople struct{ hub *hub }

func (modelPeople) Permission(_ context.Context, _, login string) (policy.Role, error) {
	return roleOf(login), nil
}
func (p modelPeople) Pushers(_ context.Context, _ string, n int, _ string) ([]string, error) {
	return []string{p.hub.pullAt(n).author}, nil
}

// publish writes everything that Controller.publishChange writes, until nothing changes.
func (b *modelBot) publish() {
	if b.hub.bot == nil {
		return
	}
	for b.dirty {
		b.dirty = false
		for _, id := range b.order {
			if s := b.states[id]; s.NeedsPublish {
				b.publishOne(s)
			}
		}
	}
}

func (b *modelBot) publishOne(s *change.State) {
	var shown []string
	v := present.View{State: s, Now: modelTime}
	var sharers []*change.State
	for _, id := range b.order {
		other := b.states[id]
		switch {
		case other == s:
		case other.Facts.Open && other.Facts.Head == s.Facts.Head:
			sharers = append(sharers, other)
			v.Beside = append(v.Beside, present.BesideOf(present.View{State: other, Now: modelTime}))
		default:
			shown = append(shown, other.Concluded(s.Facts.Head)...)
		}
	}
	v.Shown = shown
	if told := present.Told(v); told != s.AnnouncedDigest {
		for _, other := range sharers {
			b.write(other, change.HeadShared{Other: s.ID.String()})
		}
		b.write(s, change.Published{AnnouncedDigest: told})
	}
	unpublished := len(s.ChecksOf(s.Facts.Head)) == 0
	retracts := s.NeedsPlan() && (len(s.Outdated()) > 0 || len(shown) > 0 || len(sharers) > 0 && len(s.Concluded(s.Facts.Head)) > 0)
	if s.NeedsPlan() && !unpublished && !retracts {
		return
	}
	out := change.Published{Complete: true, Checks: map[string]change.Posted{}}
	for _, c := range present.Checks(v) {
		key := change.CheckKey(c.Name, c.HeadSHA)
		have, conclusion := s.Checks[key], c.Conclusion
		if c.Status != "completed" {
			conclusion = ""
		}
		newest := b.hub.shows[[2]string{c.HeadSHA, c.Name}]
		if have.ID != 0 && have.Digest == c.Digest && len(newest) > 0 && newest[len(newest)-1] == conclusion {
			continue
		}
		b.hub.show(s.ID, c.HeadSHA, c.Name, conclusion)
		out.Checks[key] = change.Posted{ID: 1, Digest: c.Digest, Done: c.Status == "completed", For: s.PostedScope()}
	}
	b.write(s, out)
}

// next is the changes that a plan, a measurement or an answer is due for.
func (b *modelBot) due() (all []func()) {
	for _, id := range b.order {
		s := b.states[id]
		switch {
		case s.NeedsPlan():
			all = append(all, func() { b.plan(s) })
			continue
		case len(s.Unanswered()) > 0:
			all = append(all, func() { b.answer(s, s.Unanswered()[0]) })
		}
		for _, run := range s.Wanted() {
			all = append(all, func() { b.measure(s, run) })
		}
	}
	return all
}

// sharedHeads is how many commits have more than one open change.
func (b *modelBot) sharedHeads() int {
	heads := map[string]int{}
	for _, s := range b.states {
		if s.Facts.Open {
			heads[s.Facts.Head]++
		}
	}
	n := 0
	for _, c := range heads {
		if c > 1 {
			n++
		}
	}
	return n
}

func (h *hub) pullAt(n int) *modelPull {
	if i := slices.IndexFunc(h.pulls, func(p *modelPull) bool { return p.number == n }); i >= 0 {
		return h.pulls[i]
	}
	return nil
}
