// Package present is what GitHub shows of a change: its checks, its sticky
// comment and the replies to commands, and the issue of a watched kernel, as a pure function of what is known. It
// reads no clock, asks nobody and writes nothing; whoever calls it brings GitHub
// into line.
//
// Text that people or pull requests supply is shown and never acts: it can ping
// nobody, break no table and end no hidden comment. No check is ever neutral or
// skipped, since GitHub takes both for a pass.
package present

import (
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/work/search"
)

// A View is all that is known of a change at one moment.
type View struct {
	State    *change.State
	Verdicts map[string]*gates.Verdict     // by job; one that is not here is told in its one line
	Reports  map[string]*search.Report     // reports of searches, by job
	Progress map[string]runners.LogEntry   // the last that was heard of each job
	Places   map[string]scheduler.Position // in line, by job
	Tried    map[string][]change.Tried     // by folder: what other pull requests tried in vain
	Workflow bool                          // a workflow's job publishes this: it may be killed, so kernels' checks and the comment are there from the start
	Beside   []Beside                      // other open pull requests and merge groups with the same head
	Shown    []string                      // checks on the head that changes which are closed now have concluded, by name
	Runners  []RunnerInfo                  // that are connected
	Now      time.Time
	Web      string          // GitHub's address, such as https://github.com; may be empty
	RunURL   string          // a page that tells more of the runs; may be empty
	Pages    map[string]Page // of each run, by job; those that nobody could look at are not here
	Buttons  bool            // somebody hears of them
}

// A Page is where a run can be looked at.
type Page struct {
	URL     string
	History string // the page of its kernel
	Picture string // of its intervals, where everybody may see it
}

// RunnerInfo is a connected runner.
type RunnerInfo struct {
	Name   string
	Labels []string
	Busy   bool
}

// still is the view without what changes from second to second, so that a digest
// of it tells what is worth a write.
func (v View) still() View {
	v.Progress, v.Places, v.Now = nil, nil, time.Time{}
	runners := make([]RunnerInfo, len(v.Runners))
	for i, r := range v.Runners {
		runners[i] = RunnerInfo{Name: r.Name, Labels: r.Labels}
	}
	v.Runners = runners
	return v
}

// plan is the one that the change is judged by now. A change that is closed is
// planned no more: what was said of its head stays.
func (v View) plan() *change.Plan {
	s := v.State
	if p := s.Current(); p != nil {
		return p
	}
	if !s.Facts.Open && s.Plan != nil && s.Plan.Head == s.Facts.Head && !s.Plan.Superseded() {
		return s.Plan
	}
	return nil
}

// forInformation tells whether no verdict of this change blocks anything: the
// base has no policy.
func (v View) forInformation() bool {
	p := v.plan()
	return p != nil && p.NoPolicy
}

// override is the one of the head, if there is one.
func (v View) override() *change.Override {
	if o := v.State.Overridden(); o != nil && v.covers(o) {
		return o
	}
	return nil
}

// covers tells whether an override counts for everything that does not pass.
func (v View) covers(o *change.Override) bool {
	if len(o.Folders) == 0 {
		return true
	}
	p := v.plan()
	return p != nil && len(p.Problems) == 0 && !slices.ContainsFunc(v.State.Runs, func(r change.Run) bool {
		return r.Blocks() && !slices.Contains(o.Folders, r.Folder)
	})
}

// checkName is the required check's.
func (v View) checkName() string {
	if p := v.State.Plan; p != nil && p.Check != "" {
		return p.Check
	}
	return "kernelgate"
}
