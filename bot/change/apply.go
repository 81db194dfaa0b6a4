package change

import (
	"cmp"
	"slices"
	"time"
)

// Apply adds an event to the state. Any event can follow any state: what does
// not fit any more, such as the result of a job that was dropped, changes
// nothing but the sequence.
func (s *State) Apply(seq uint64, at time.Time, e Event) {
	if s.Seq == 0 {
		s.First = at
	}
	s.Seq = seq
	switch e := e.(type) {
	case Seen:
		s.seen(at, e.Facts)
		if e.Override != nil {
			s.Override = e.Override
		}
		if e.RulesApproved != nil {
			s.RulesApproved = e.RulesApproved
		}
	case Reviewed:
		s.reviewed(e.RulesApproved)
	case Planned:
		s.planned(at, e.Plan)
	case Asked:
		if !s.Asked(e) {
			s.Commands = append(s.Commands, Command{Asked: e, When: at})
			s.trimCommands()
		}
	case Answered:
		s.answered(at, e)
	case Searching:
		if !slices.ContainsFunc(s.Searches, func(r Run) bool { return r.Command == e.ID }) {
			s.applySearch(at, e.ID, e.Search)
		}
	case Started:
		s.started(at, e)
	case Built:
		s.built(e)
	case Finished:
		s.finished(at, e)
	case Dropped:
		s.Dropping = slices.DeleteFunc(s.Dropping, func(j string) bool { return slices.Contains(e.Jobs, j) })
		return
	case Published:
		s.published(e)
		return
	case RepublishAsked:
		s.Republish = true
	}
	s.NeedsPublish = true
}

func (s *State) seen(at time.Time, f Facts) {
	if s.Facts.Head == "" {
		s.introduced(f)
	}
	headMoved := s.Facts.Head != "" && s.Facts.Head != f.Head
	baseMoved := s.Facts.Base != "" && s.Facts.Base != f.Base
	reopened := !s.Facts.Open && f.Open
	s.Facts = f
	if baseMoved {
		s.voidDecisions(f.Base, "")
	}
	if headMoved {
		s.Override, s.RulesApproved, s.Voided = nil, nil, nil
	}
	if headMoved || baseMoved {
		s.Cancelled = ""
	} else if reopened {
		s.replan()
	}
	if headMoved || baseMoved || !f.Open {
		s.abandon(at, s.Runs)
		s.abandon(at, s.ExtraRuns)
		s.ExtraRuns = nil
		s.abandon(at, s.Searches)
	}
	if headMoved || baseMoved { // what was measured was compared with what the base had and asked
		s.retire(s.Runs...)
		s.Runs = nil
		s.outdate() // it may move back, and the plan of then has no runs any more
	}
}

// introduced says what those could see whose commands were the first that anybody heard
// of the change: the head and the base that GitHub then told of.
func (s *State) introduced(f Facts) {
	for i := range s.Commands {
		c := &s.Commands[i]
		c.Head, c.Base = cmp.Or(c.Head, f.Head), cmp.Or(c.Base, f.Base)
	}
}

// replan asks for a new plan where closing has ended runs that are wanted after
// all. What was done before stays.
func (s *State) replan() {
	ended := slices.ContainsFunc(s.Runs, func(r Run) bool { return r.Phase == Abandoned })
	if s.Plan == nil || !ended || s.Cancelled == s.Facts.Head {
		return
	}
	s.outdate()
}

// Superseded tells whether the plan was made for a head or a base that the change has left since.
func (p *Plan) Superseded() bool { return p.Key == "" }

// outdate makes the plan one of earlier facts, whatever the facts become.
func (s *State) outdate() {
	if s.Plan != nil {
		stale := *s.Plan
		stale.Key = ""
		s.Plan = &stale
	}
}

// abandon ends what is unfinished, and sees to it that no runner goes on with it.
func (s *State) abandon(at time.Time, runs []Run) {
	for i := range runs {
		if runs[i].Unfinished() {
			runs[i].Phase, runs[i].Ended = Abandoned, at
			s.Dropping = append(s.Dropping, runs[i].Job)
		}
	}
}

func (s *State) planned(at time.Time, p Plan) {
	if p.Key != s.Facts.PlanKey() {
		return // the facts have moved on while it was made
	}
	s.otherRules(at, &p)
	s.voidDecisions(s.Facts.Base, requirements(p.Rules))
	before := s.Runs
	s.Plan, s.Runs = &p, nil
	for _, k := range p.Kernels {
		old := slices.IndexFunc(before, func(r Run) bool { return r.Key() == k.Key() })
		if k.Reused && old >= 0 {
			run := before[old]
			// The answer of a job in the queue or at a runner is held against the bundle that it was handed out with.
			if !run.Unfinished() || s.Held() {
				run.Bundle, run.Labels, run.Build = k.Bundle, k.Labels, k.Build
			}
			s.Runs = append(s.Runs, run)
			before = slices.Delete(slices.Clone(before), old, old+1)
			continue
		}
		run := Run{
			KernelSpec: k.KernelSpec, Head: p.Head,
			Attempt: 1, Job: s.jobID(k.Name, len(s.Runs), 1), Phase: Queued, Asked: at,
		}
		if k.Result != nil {
			run.Phase, run.Ended, run.Result = Done, at, k.Result
		}
		if s.Cancelled == p.Head && run.Unfinished() {
			run.Phase, run.Ended = Abandoned, at
		}
		s.Runs = append(s.Runs, run)
	}
	s.abandon(at, before)
	s.retire(before...)
}

func (s *State) answered(at time.Time, e Answered) {
	i := slices.IndexFunc(s.Commands, func(c Command) bool { return c.ID == e.ID })
	if i < 0 || s.Commands[i].Answered {
		return
	}
	s.Commands[i].Answered, s.Commands[i].OK, s.Commands[i].Answer = true, e.OK, e.Answer
	effect := e.Effect
	if a := effect.Approve; a != nil && s.holds(a.For) && !s.approved(a.For) {
		s.Approved = newest(append(s.Approved, *a), maxApproved)
	}
	if o := effect.Override; o != nil && s.holds(o.For) {
		s.Override = o
	}
	if a := effect.ApproveRules; a != nil && s.holds(a.For) {
		s.RulesApproved = a
	}
	if effect.Cancel != "" && effect.Cancel == s.Facts.Head {
		if slices.ContainsFunc(s.Runs, func(r Run) bool { return r.Phase != Done }) { // an extra run or a search has no verdict to cancel
			s.Cancelled = effect.Cancel
		}
		s.abandon(at, s.Runs)
		s.abandon(at, s.ExtraRuns)
		s.abandon(at, s.Searches)
	}
	for _, again := range effect.Rebench {
		s.applyRerun(at, again)
	}
	for _, a := range effect.ExtraRuns {
		s.applyExtraRun(at, a)
	}
	if effect.Search != nil {
		s.applySearch(at, e.ID, *effect.Search)
	}
	s.trimExtraRuns()
}

// applyRerun starts the next attempt at a kernel. Its earlier result stays in the
// past; the runner gets its evidence from the bot.
func (s *State) applyRerun(at time.Time, a Rerun) {
	i := s.kernelIndex(KernelKey{a.Folder, a.Device})
	if i < 0 || s.Runs[i].Unfinished() {
		return
	}
	s.Cancelled = ""
	before := s.Runs[i]
	s.retire(before)
	next := before
	next.Attempt, next.Phase, next.Bundle, next.Asked = before.Attempt+1, Queued, a.Bundle, at
	next.Job = s.jobID(next.Name, i, next.Attempt)
	next.Token, next.Runner, next.Begun, next.Ended, next.Result = 0, "", time.Time{}, time.Time{}, nil
	next.Builds, next.Compiled = false, nil
	s.Runs[i] = next
}

func (s *State) applyExtraRun(at time.Time, a ExtraRun) {
	i := s.kernelIndex(KernelKey{a.Folder, a.Device})
	if i < 0 {
		return
	}
	run := s.Runs[i]
	s.ExtraRuns = append(s.ExtraRuns, Run{
		KernelSpec: KernelSpec{Name: run.Name, Folder: run.Folder, Device: run.Device, Informs: run.Informs, Rule: run.Rule, Labels: run.Labels, Build: run.Build, Bundle: a.Bundle}, Head: s.Facts.Head, ExtraRun: &a.Rebench, OnlyExplain: a.OnlyExplain,
		Attempt: 1, Job: s.jobID(run.Name, len(s.ExtraRuns), 1), Phase: Queued, Asked: at,
	})
}

func (s *State) applySearch(at time.Time, command string, search Search) {
	i := s.kernelIndex(KernelKey{search.Folder, search.Device})
	if i < 0 {
		return
	}
	run := s.Runs[i]
	spec := run.KernelSpec
	// A search has no separate build stage: the runner that measures it also compiles.
	spec.Bundle, spec.Build, spec.Trial, spec.Rules = search.Bundle, "", "", nil
	s.Searches = append(s.Searches, Run{
		KernelSpec: spec, Head: s.Facts.Head, Search: &search.Request, Command: command,
		Attempt: 1, Job: s.jobID("search "+run.Name, len(s.Searches), 1), Phase: Queued, Asked: at,
	})
	s.trimSearches()
}

func (s *State) started(at time.Time, e Started) {
	if r := s.find(e.Job); r != nil && r.Unfinished() && e.Token >= r.Token {
		r.Phase, r.Token, r.Runner, r.Begun, r.Builds = Running, e.Token, e.Runner, at, e.Builds
	}
}

// built puts the job in line once more, for those who measure.
func (s *State) built(e Built) {
	if r := s.find(e.Job); r != nil && r.Unfinished() && e.Token >= r.Token && r.Compiled == nil {
		r.Phase, r.Token, r.Runner, r.Begun, r.Builds, r.Compiled = Queued, e.Token, "", time.Time{}, false, &e.Compiled
	}
}

func (s *State) finished(at time.Time, e Finished) {
	if r := s.find(e.Job); r != nil && r.Unfinished() && e.Token >= r.Token {
		r.Phase, r.Token, r.Ended, r.Result, r.Builds = Done, e.Token, at, &e.Result, false
		if e.Runner != "" {
			r.Runner = e.Runner
		}
	}
}

func (s *State) published(e Published) {
	for key, posted := range e.Checks {
		if s.Checks == nil {
			s.Checks = map[string]Posted{}
		}
		s.Checks[key] = posted
	}
	s.trimChecks()
	if e.Comment != nil {
		s.Comment = *e.Comment
	}
	if e.AnnouncedDigest != "" {
		s.AnnouncedDigest = e.AnnouncedDigest
	}
	for id, reply := range e.Replies {
		if i := slices.IndexFunc(s.Searches, func(r Run) bool { return r.ReportID() == id }); i >= 0 {
			s.Searches[i].Replied = reply
		}
		if i := slices.IndexFunc(s.Commands, func(c Command) bool { return c.ID == id }); i >= 0 {
			s.Commands[i].Replied = reply
		}
	}
	if e.Complete {
		s.NeedsPublish, s.Republish = false, false
	}
}
