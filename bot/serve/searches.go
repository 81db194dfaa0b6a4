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

// Searching returns the searches that runners are performing.
func (s stores) Searching(ctx context.Context) ([]pages.SearchLog, error) {
	var all []pages.SearchLog
	for _, r := range s.s.Runners.Runners() {
		if r.Job == "" || !s.s.here(r.LastSeen) {
			continue
		}
		log, err := s.SearchLog(ctx, r.Job)
		if errors.Is(err, pages.ErrNotFound) {
			continue // it does something else
		}
		if err != nil {
			return nil, err
		}
		all = append(all, log)
	}
	return all, nil
}

// Searches returns the logs of the last /tune commands. A runner sends the log while it measures.
func (s stores) Searches(ctx context.Context, f pages.SearchFilter) ([]pages.SearchLog, error) {
	ids, err := s.Ledger.Commanded(ctx, "/tune", listedSearches)
	if err != nil {
		return nil, err
	}
	var all []pages.SearchLog
	for _, id := range ids {
		if f.Repo != 0 && id.Repo != f.Repo {
			continue
		}
		state, err := s.Change(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, r := range slices.Backward(state.Searches) {
			if f.Folder != "" && r.Folder != f.Folder {
				continue
			}
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
	if r.Search.Name() != string(search.Tune) {
		return pages.SearchLog{}, pages.ErrNotFound
	}
	log := pages.SearchLog{Name: r.Job, Repo: state.ID.Repo, Kernel: r.Name, Change: state.ID.String(), Changed: r.Ended, Over: !r.Unfinished()}
	if log.Changed.IsZero() {
		log.Changed = s.s.opt.Now()
	}
	if r.Token == 0 {
		return log, nil // no runner has begun
	}
	text, err := s.Blob(ctx, fleet.ArtifactBlob(r.Job, r.Token, search.LogFile))
	if errors.Is(err, journal.ErrNotFound) {
		err = nil // nothing was sent yet
	}
	log.Text = text
	return log, err
}

// searchPage returns the address of the page about a tuning, or "" if nobody can open such a page.
func (s *Server) searchPage(_, job string) string {
	return s.pageAt(s.repoOfJob(job), "/searches/"+job)
}
