package pages

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/work/search"
)

// A ChangePage shows one pull request, merge group or push with all its commits and attempts.
type ChangePage struct {
	ID       string             `json:"id"`
	Repo     string             `json:"repository"`
	Kind     change.Kind        `json:"kind"`
	Number   int                `json:"number,omitempty"`
	Title    string             `json:"title"`
	Author   string             `json:"author"`
	Head     string             `json:"head"`
	Base     string             `json:"base"`
	Open     bool               `json:"open"`
	Merged   bool               `json:"merged"`
	Draft    bool               `json:"draft"`
	Labels   []string           `json:"labels,omitempty"`
	Waits    string             `json:"waits,omitempty"` // what the change waits for
	NoPolicy bool               `json:"no_policy,omitempty"`
	Problems []gates.Diagnostic `json:"problems,omitempty"`
	Kernels  []PlannedKernel    `json:"kernels,omitempty"`
	Devices  []DeviceRun        `json:"devices,omitempty"` // if the policy asks for a run on each of several
	Searches []SearchRun        `json:"searches,omitempty"`
	Commits  []Commit           `json:"commits"`
	Commands []Command          `json:"commands,omitempty"`
	Override *Override          `json:"override,omitempty"`
	Buttons  *Buttons           `json:"-"`
	Noted    string             `json:"-"` // the command that the visitor just requested
}

// A PlannedKernel is a kernel that the change touches, with the rule that applies to it.
type PlannedKernel struct {
	Name   string `json:"name"`
	Folder string `json:"folder"`
	Rule   string `json:"rule"`
	Why    string `json:"explained"` // address of the page that explains the rule
}

// A SearchRun is a search that somebody asked for on a change.
type SearchRun struct {
	Name    string       `json:"name"` // of its page
	Kernel  string       `json:"kernel"`
	Request string       `json:"request"`
	Phase   change.Phase `json:"phase"`
	Asked   time.Time    `json:"asked"`
}

// searchRuns returns the tunings of a change, newest first; those of one kernel if a folder is given.
func (s *Server) searchRuns(state *change.State, folder string) []SearchRun {
	if _, ok := s.Source.(Searcher); !ok {
		return nil
	}
	var list []SearchRun
	for _, r := range slices.Backward(state.Searches) {
		if r.Search.Name() == string(search.Tune) && (folder == "" || r.Folder == folder) {
			list = append(list, SearchRun{r.Job, r.Name, r.Search.String(), r.Phase, r.Asked})
		}
	}
	return list
}

// A Commit is one head commit with its attempts, newest first.
type Commit struct {
	Head string `json:"head"`
	Runs []Row  `json:"runs"`
}

// changeOf returns a change if the viewer may read it.
func (s *Server) changeOf(ctx context.Context, v *visit, text string) (*change.State, string, error) {
	id, err := change.ParseID(text)
	if err != nil {
		return nil, "", ErrNotFound
	}
	repo, err := s.repoName(ctx, v, id.Repo)
	if err != nil {
		return nil, "", err
	}
	state, err := s.Source.Change(ctx, id)
	return state, repo, err
}

func (s *Server) change(ctx context.Context, v *visit) (any, error) {
	state, repo, err := s.changeOf(ctx, v, v.PathValue("change"))
	if err != nil {
		return nil, err
	}
	f := state.Facts
	p := &ChangePage{
		ID: state.ID.String(), Repo: repo, Kind: state.ID.Kind, Number: state.ID.Number, Title: f.Title, Author: f.Author, Head: f.Head, Base: f.Base,
		Open: f.Open, Merged: f.Merged, Draft: f.Draft, Labels: f.Labels,
	}
	switch {
	case f.Open && state.Held():
		p.Waits = "an approval to run code of a fork (/ok-to-test)"
	case f.Open && f.BaseGone:
		p.Waits = "a different base branch: " + f.Base + " is gone"
	case state.NeedsPlan():
		p.Waits = "its plan"
	case len(state.Wanted()) > 0:
		p.Waits = "runners"
	}
	if plan := state.Plan; plan != nil {
		p.NoPolicy, p.Problems = plan.NoPolicy, plan.Problems
		for _, k := range plan.Kernels {
			if slices.ContainsFunc(p.Kernels, func(known PlannedKernel) bool { return known.Folder == k.Folder }) {
				continue // on one more device
			}
			name := k.KernelName()
			p.Kernels = append(p.Kernels, PlannedKernel{name, k.Folder, k.Rule, "/policy?" + url.Values{"change": {p.ID}, "kernel": {name}}.Encode()})
		}
	}
	p.Devices = s.onDevices(ctx, state)
	p.Searches = s.searchRuns(state, "")
	runs, err := s.Source.Attempts(ctx, state.ID)
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		at := slices.IndexFunc(p.Commits, func(c Commit) bool { return c.Head == r.Head })
		if at < 0 {
			at, p.Commits = len(p.Commits), append(p.Commits, Commit{Head: r.Head})
		}
		p.Commits[at].Runs = append(p.Commits[at].Runs, rowOf(r, repo))
	}
	p.Buttons = s.buttons(v, state, f.Head, "")
	if noted := v.URL.Query().Get("noted"); p.Buttons != nil && (noted == "rebench" || noted == "cancel") {
		p.Noted = noted
	}
	p.Commands, p.Override, err = s.commands(ctx, state.ID, "")
	return p, err
}
