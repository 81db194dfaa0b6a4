package pages

import (
	"context"
	"net/url"
	"strconv"

	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// repositoryRuns is how many runs a page of a list has.
const repositoryRuns = 50

// A RepositoryPage is a repository's kernels, and its runs page by page.
type RepositoryPage struct {
	Repo    string      `json:"repository"`
	Kernels []KernelRow `json:"kernels"`
	More    bool        `json:"more_kernels,omitempty"`
	Runs    []Row       `json:"runs"`
	Pages
}

// Pages is where a list goes on. It is newest first.
type Pages struct {
	Older  string `json:"older,omitempty"`  // the address of the page that follows
	Newest string `json:"newest,omitempty"` // of the first, where this is another
}

func (s *Server) repository(ctx context.Context, v *visit) (any, error) {
	id, repo, err := s.repoByName(ctx, v, v.PathValue("owner")+"/"+v.PathValue("repo"))
	if err != nil {
		return nil, err
	}
	home := &HomePage{}
	p := &RepositoryPage{Repo: repo}
	if p.Runs, p.Pages, err = s.pageOfRuns(ctx, v, ledger.RunFilter{RepoID: id, Limit: repositoryRuns}, repo); err != nil {
		return nil, err
	}
	if p.Newest == "" {
		err = s.addKernels(ctx, home, map[int64]string{id: repo})
	}
	p.Kernels, p.More = home.Kernels, home.More
	return p, err
}

// pageOfRuns is the page of a list of runs that the address asks for.
func (s *Server) pageOfRuns(ctx context.Context, v *visit, f ledger.RunFilter, repo string) ([]Row, Pages, error) {
	limit := f.Limit
	f.Limit++ // one more tells that there are more
	if before, err := strconv.ParseInt(v.URL.Query().Get("before"), 10, 64); err == nil && before > 0 {
		f.Before = before
	}
	runs, err := s.Source.Runs(ctx, f)
	if err != nil {
		return nil, Pages{}, err
	}
	var pages Pages
	if f.Before > 0 {
		pages.Newest = v.URL.EscapedPath()
	}
	if len(runs) > limit {
		runs = runs[:limit]
		pages.Older = v.URL.EscapedPath() + "?" + url.Values{"before": {strconv.FormatInt(runs[limit-1].N, 10)}}.Encode() + "#runs"
	}
	var rows []Row
	for _, r := range runs {
		rows = append(rows, rowOf(r, repo))
	}
	return rows, pages, nil
}
