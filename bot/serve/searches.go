package serve

import (
	"context"
	"errors"
	"slices"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/runners/work/search"
)

// listedSearches is the maximum number of changes whose searches are listed.
const listedSearches = 50

// Searches returns the logs of the last /tune commands. A runner sends the log while it measures.
func (s stores) Searches(ctx context.Context) ([]pages.SearchLog, error) {
	ids, err := s.Ledger.Commanded(ctx, "/tune", listedSearches)
	if err != nil {
		return nil, err
	}
	var all []pages.SearchLog
	for _, id := range ids {
		state, err := s.Change(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, r := range slices.Backward(state.Searches) {
			log, err := s.searchLog(ctx, state, r)
			if errors.Is(err, pages.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			all = append(all, log)
		}
	}
	return all, nil
}

// SearchLog returns the log of a tuning. The name is the name of its job.
func (s stores) SearchLog(ctx context.Context, name string) (pages.SearchLog, error) {
	id, err := change.OfJob(name)
	if err != nil {
		return pages.SearchLog{}, pages.ErrNotFound
	}
	state, err := s.Change(ctx, id)
	if err != nil {
		return pages.SearchLog{}, err
	}
	i := slices.IndexFunc(state.Searches, func(r change.Run) bool { return r.Job == name })
	if i < 0 {
		return pages.SearchLog{}, pages.ErrNotFound
	}
	return s.searchLog(ctx, state, state.Searches[i])
}

func (s stores) searchLog(ctx context.Context, state *change.State, r change.Run) (pages.SearchLog, error) {
	if r.Search.Name() != string(search.Tune) || r.Token == 0 {
		return pages.SearchLog{}, pages.ErrNotFound
	}
	text, err := s.Blob(ctx, fleet.ArtifactBlob(r.Job, r.Token, search.LogFile))
	if errors.Is(err, journal.ErrNotFound) {
		err = pages.ErrNotFound // nothing was sent yet
	}
	at := r.Ended
	if at.IsZero() {
		at = s.s.opt.Now()
	}
	return pages.SearchLog{Name: r.Job, Repo: state.ID.Repo, Changed: at, Text: text}, err
}

// searchPage returns the address of the page about a tuning, or "" if nobody can open such a page.
func (s *Server) searchPage(_, job string) string {
	return s.pageAt(s.repoOfJob(job), "/searches/"+job)
}
