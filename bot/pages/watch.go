package pages

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/watch"
	"github.com/kernelgate/kernelgate/gates"
)

// A Watch says whether the default branch of a repository regressed.
type Watch struct {
	Repo      string      `json:"repository"`
	Branch    string      `json:"branch"`
	Since     string      `json:"since,omitempty"` // the release to compare with; empty if the watch compares with the best state of each kernel
	At        time.Time   `json:"at"`              // when the newest watch was due
	Kernels   int         `json:"kernels"`
	Undecided int         `json:"undecided,omitempty"` // kernels about which the newest watch proves nothing
	Regressed []Regressed `json:"regressed,omitempty"`

	folders, undecided map[string]bool // of the kernels that are counted: one may be watched on several devices
}

// A Regressed is a kernel that became slower.
type Regressed struct {
	Kernel  string     `json:"kernel"`
	Folder  string     `json:"folder"`
	Since   string     `json:"since,omitempty"`
	Job     string     `json:"job"` // whose run the figures are from
	Form    watch.Form `json:"form"`
	Class   string     `json:"class"`
	Shape   string     `json:"shape,omitempty"`
	Speedup float64    `json:"speedup"` // at that shape
	Found   time.Time  `json:"found"`
	Commit  string     `json:"commit,omitempty"` // that a search found
	Issue   int        `json:"issue,omitempty"`
	Closed  bool       `json:"closed,omitempty"`  // by a person
	Refused string     `json:"refused,omitempty"` // why there is no issue
}

// addWatches adds a row for each watched default branch to the page. Branches that regressed come first.
func (s *Server) addWatches(ctx context.Context, p *HomePage, repos map[int64]string) error {
	for _, id := range slices.SortedFunc(maps.Keys(repos), func(a, b int64) int { return cmpRepos(repos, a, b) }) {
		all, err := s.Source.Watched(ctx, id)
		if err != nil {
			return err
		}
		w := Watch{Repo: repos[id], folders: map[string]bool{}, undecided: map[string]bool{}}
		for _, k := range all {
			w.add(k)
		}
		if w.Kernels > 0 {
			p.Watches = append(p.Watches, w)
		}
	}
	slices.SortStableFunc(p.Watches, func(a, b Watch) int { return cmp.Compare(min(len(b.Regressed), 1), min(len(a.Regressed), 1)) })
	p.Watches = p.Watches[:min(len(p.Watches), homeRepos)]
	return nil
}

// add adds a kernel.
func (w *Watch) add(k *watch.State) {
	last := k.Last
	if last == nil {
		return // it is not watched any more
	}
	w.folders[k.Folder] = true
	w.Kernels = len(w.folders)
	if last.Due.After(w.At) {
		w.At, w.Branch, w.Since = last.Due, last.Branch, last.Tag
	}
	r := k.Regression
	if r == nil {
		if last.Result() != watch.Sound {
			w.undecided[k.Folder] = true
			w.Undecided = len(w.undecided)
		}
		return
	}
	worst := r.Look.Worst()
	row := Regressed{
		Kernel: gates.NameOn(r.Look.Kernel, k.Device), Folder: k.Folder, Since: r.Look.Tag, Job: r.Look.Job, Form: r.Form, Class: string(r.Class), Shape: worst.Name, Speedup: worst.Speed - 1,
		Found: r.First.Due, Issue: k.Issue.Number, Closed: k.Issue.Dismissed,
	}
	if r.Bisect != nil {
		row.Commit = r.Bisect.First
	}
	switch k.Issue.Refused {
	case 0:
	case http.StatusForbidden:
		row.Refused = "GitHub does not let the bot write issues (grant the permission Issues: read and write)"
	case http.StatusGone:
		row.Refused = "issues are turned off in the repository"
	default:
		row.Refused = fmt.Sprintf("GitHub refuses the issue with status %d", k.Issue.Refused)
	}
	w.Regressed = append(w.Regressed, row)
}
