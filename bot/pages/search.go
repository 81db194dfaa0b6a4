package pages

import (
	"context"
	"regexp"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// searchMost limits the results of each kind.
const searchMost = 20

// A SearchPage lists the kernels, changes and commits that match a text.
type SearchPage struct {
	Query   string        `json:"query"`
	Kernels []KernelName  `json:"kernels,omitempty"`
	Changes []FoundChange `json:"changes,omitempty"`
	Commits []FoundCommit `json:"commits,omitempty"`
	Results []Row         `json:"results,omitempty"` // only for a folder, which has no changes
	More    bool          `json:"more,omitempty"`    // there are more than listed
}

// Found returns the number of results.
func (p *SearchPage) Found() int {
	return len(p.Kernels) + len(p.Changes) + len(p.Commits) + len(p.Results)
}

// A FoundChange is a matching pull request, merge group or push.
type FoundChange struct {
	ID     string `json:"id"`
	Repo   string `json:"repository"`
	Number int    `json:"number,omitempty"`
	Title  string `json:"title,omitempty"`
	Author string `json:"author,omitempty"`
	Head   string `json:"head"`
	State  string `json:"state"`
}

// A FoundCommit is a commit with its last run.
type FoundCommit struct {
	Head string `json:"head"`
	Run  Row    `json:"run"`
}

// prefixPattern matches a prefix of a commit id that is long enough to search for.
var prefixPattern = regexp.MustCompile(`^[0-9a-f]{4,64}$`)

func (s *Server) search(ctx context.Context, v *visit) (any, error) {
	repos, err := s.openTo(ctx, v)
	if err != nil {
		return nil, err
	}
	p := &SearchPage{Query: strings.TrimSpace(v.URL.Query().Get("q"))}
	if p.Query == "" {
		return p, nil
	}
	names, err := s.kernelNames(ctx, v)
	if err != nil {
		return nil, err
	}
	text := strings.ToLower(p.Query)
	for _, k := range names {
		if strings.Contains(strings.ToLower(k.Repo+"/"+k.Folder), text) {
			p.Kernels = append(p.Kernels, k)
		}
	}
	for id, repo := range repos {
		if err := s.findResults(ctx, p, id, repo, text); err != nil {
			return nil, err
		}
		found, err := s.Source.FindChanges(ctx, id, p.Query, searchMost+1)
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			p.Changes = append(p.Changes, foundChange(c, repo))
		}
	}
	if prefixPattern.MatchString(text) {
		if err := s.findCommits(ctx, p, repos, text); err != nil {
			return nil, err
		}
	}
	p.Kernels, p.Changes, p.Commits, p.Results = atMost(p, p.Kernels), atMost(p, p.Changes), atMost(p, p.Commits), atMost(p, p.Results)
	return p, nil
}

func atMost[T any](p *SearchPage, list []T) []T {
	p.More = p.More || len(list) > searchMost
	return list[:min(len(list), searchMost)]
}

func foundChange(c ledger.ChangeRow, repo string) FoundChange {
	f := FoundChange{ID: c.ID.String(), Repo: repo, Number: c.ID.Number, Title: c.Title, Author: c.Author, Head: c.Head, State: "closed"}
	switch {
	case c.ID.Kind == change.Push:
		f.State = "push"
	case c.Merged:
		f.State = "merged"
	case c.Open:
		f.State = "open"
	}
	return f
}

// findResults adds the results of a folder whose title contains the text.
func (s *Server) findResults(ctx context.Context, p *SearchPage, id int64, repo, text string) error {
	runs, err := s.Source.Runs(ctx, ledger.RunFilter{RepoID: id, Limit: 1})
	if err != nil || len(runs) == 0 || runs[0].Change.Kind != "" {
		return err
	}
	runs, err = s.Source.Runs(ctx, ledger.RunFilter{RepoID: id, Limit: 1000})
	for _, r := range runs {
		if strings.Contains(strings.ToLower(r.Title), text) {
			p.Results = append(p.Results, rowOf(r, repo))
		}
	}
	return err
}

// findCommits adds each commit whose id begins with the prefix, once.
func (s *Server) findCommits(ctx context.Context, p *SearchPage, repos map[int64]string, prefix string) error {
	runs, err := s.Source.AtHead(ctx, prefix, 200)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, r := range runs {
		repo, mine := repos[r.Change.Repo]
		if mine && !seen[r.Head] {
			seen[r.Head] = true
			p.Commits = append(p.Commits, FoundCommit{r.Head, rowOf(r, repo)})
		}
	}
	return nil
}
