package pages

import (
	"context"
	"net/url"
	"strconv"

	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// repositoryRuns is the number of runs on one page of a list.
const repositoryRuns = 50

// A RepositoryPage lists a repository's kernels and, page by page, its runs.
type RepositoryPage struct {
	Repo    string      `json:"repository"`
	Kernels []KernelRow `json:"kernels"`
	More    bool        `json:"more_kernels,omitempty"`
	Runs    []Row       `json:"runs"`
	Pages
}

// Pages links to other pages of a list, which is sorted newest first.
type Pages struct {
	Older  string `json:"older,omitempty"`  // address of the next page
	Newest string `json:"newest,omitempty"` // address of the first page, unless this is the first
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

// pageOfRuns returns the page of a list of runs that the URL requests.
func (s *Server) pageOfRuns(ctx context.Context, v *visit, f ledger.RunFilter, repo string) ([]Row, Pages, error) {
	limit := f.Limit
	f.Limit++ // one more shows whether there is a next page
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
