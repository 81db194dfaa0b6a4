package pages

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/runners/work/tune"
)

// A Searcher is a Source that has logs of searches (kernelgate tune).
type Searcher interface {
	// Searches returns the last searches that the filter chooses, newest first.
	Searches(ctx context.Context, f SearchFilter) ([]SearchLog, error)
	// Searching returns the searches that may be running.
	Searching(ctx context.Context) ([]SearchLog, error)
	SearchLog(ctx context.Context, name string) (SearchLog, error)
}

// A SearchFilter chooses searches; what is left out chooses all.
type SearchFilter struct {
	Repo   int64
	Folder string // of the kernel
}

// A SearchLog is the log of a search, which may still grow.
type SearchLog struct {
	Name    string // in URLs
	Repo    int64
	Kernel  string    // as it is shown; empty if only the log has it
	Change  string    // that asked for it, if any
	Changed time.Time // of its last line
	Text    []byte    // empty before a runner has begun
	Over    bool      // it ended, even if the log does not say so
}

// TuningPage is the page about one search: its state, the elite, all candidates, and failures.
type TuningPage struct {
	Name    string    `json:"name"`
	Changed time.Time `json:"changed"`
	Change  string    `json:"change,omitempty"`
	Waits   bool      `json:"waits,omitempty"` // no runner has begun
	tune.View
	Chart template.HTML `json:"-"`
}

// A TuningsPage lists searches.
type TuningsPage struct {
	Searches []TuningPage `json:"searches"`
	Unread   []string     `json:"unread,omitempty"` // logs that cannot be read, with the reason
}

// NewTuningPage makes the page from a log and nothing else. So the page of a log is the same wherever the
// log is stored.
func NewTuningPage(log SearchLog) (*TuningPage, error) {
	if len(log.Text) == 0 {
		p := &TuningPage{Name: log.Name, Changed: log.Changed, Change: log.Change, Waits: !log.Over, View: tune.View{Kernel: log.Kernel, Ended: log.Over}}
		if log.Over {
			p.Result = "The search ended before a runner had begun."
		}
		return p, nil
	}
	view, err := tune.ReadView(log.Name, log.Text)
	if err != nil {
		return nil, err
	}
	p := &TuningPage{Name: log.Name, Changed: log.Changed, Change: log.Change, View: *view}
	var best, arms []chart.RacePoint
	for _, m := range view.Curve {
		best = append(best, chart.RacePoint{Seconds: m.Seconds, Speedup: m.Speedup, Name: m.Best})
	}
	for _, row := range view.Raced {
		if row.Rounds > 0 && row.Speedup != nil {
			arms = append(arms, chart.RacePoint{Seconds: row.At, Speedup: *row.Speedup, Name: row.Name, Leads: row.Place > 0})
		}
	}
	if len(best) > 0 && len(view.Elite) > 0 {
		best[len(best)-1].Name = view.Elite[0].Name // the short name
	}
	p.Chart = picture(chart.Race("Best speedup over the seconds of measuring", best, arms))
	return p, nil
}

// Judged says what the gate said about a candidate.
func (p *TuningPage) Judged(name string) string {
	i := slices.IndexFunc(p.Verdicts, func(r tune.ViewRow) bool { return r.Name == name })
	switch {
	case i >= 0:
		return "the gate says " + p.Verdicts[i].Gate
	case name == p.Incumbent:
		return "the incumbent"
	}
	return "not judged by the gate"
}

// Unjudged is a sentence about a search without a winner whose fastest candidate was never judged. Its speedup is no result.
func (p *TuningPage) Unjudged() string {
	if !p.Ended || p.Winner != "" || len(p.Verdicts) == 0 || len(p.Elite) == 0 || p.Elite[0].Speedup == nil {
		return ""
	}
	best := p.Elite[0]
	if best.Name == p.Incumbent || slices.ContainsFunc(p.Verdicts, func(r tune.ViewRow) bool { return r.Name == best.Name }) {
		return ""
	}
	return fmt.Sprintf("The gate refused the first %s that it was asked about, and was not asked about %s, the fastest that is left (%s in the race): search again from it, or check it yourself.",
		number.Plural(len(p.Verdicts), "candidate"), best.Name, number.Speedup(*best.Speedup))
}

// mostSearches is how many searches are listed.
const mostSearches = 50

func (s *Server) tunings(ctx context.Context, v *visit) (any, error) {
	source, ok := s.Source.(Searcher)
	if !ok {
		return nil, ErrNotFound
	}
	logs, err := source.Searches(ctx, SearchFilter{})
	if err != nil {
		return nil, err
	}
	page := &TuningsPage{Searches: []TuningPage{}}
	for _, log := range logs {
		if _, err := s.repoName(ctx, v, log.Repo); err != nil || len(page.Searches) == mostSearches {
			continue
		}
		one, err := NewTuningPage(log)
		if err != nil {
			page.Unread = append(page.Unread, err.Error())
			continue
		}
		page.Searches = append(page.Searches, *one)
	}
	return page, nil
}

// searchesOf returns the last searches of a kernel that can be read.
func (s *Server) searchesOf(ctx context.Context, repo int64, folder, kernel string) ([]TuningPage, error) {
	source, ok := s.Source.(Searcher)
	if !ok {
		return nil, nil
	}
	logs, err := source.Searches(ctx, SearchFilter{Repo: repo, Folder: folder})
	var list []TuningPage
	for _, log := range logs {
		if one, err := NewTuningPage(log); err == nil && (log.Kernel != "" || one.Kernel == kernel) && len(list) < kernelSearches {
			list = append(list, *one)
		}
	}
	return list, err
}

// kernelSearches is how many searches a kernel's page lists.
const kernelSearches = 5

// addSearching adds the searches that run now.
func (s *Server) addSearching(ctx context.Context, p *HomePage, repos map[int64]string) error {
	source, ok := s.Source.(Searcher)
	if !ok {
		return nil
	}
	logs, err := source.Searching(ctx)
	for _, log := range logs {
		if _, mine := repos[log.Repo]; !mine || s.Now().Sub(log.Changed) > forgotten {
			continue
		}
		if one, err := NewTuningPage(log); err == nil && !one.Ended {
			p.Searching = append(p.Searching, *one)
		}
	}
	return err
}

// forgotten is how old the last line of a log may be for its search to count as running.
const forgotten = time.Hour

func (s *Server) tuning(ctx context.Context, v *visit) (any, error) {
	log, err := s.searchLogOf(ctx, v, v.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return NewTuningPage(log)
}

// searchLogOf returns a log if the viewer may read it.
func (s *Server) searchLogOf(ctx context.Context, v *visit, name string) (SearchLog, error) {
	source, ok := s.Source.(Searcher)
	if !ok {
		return SearchLog{}, ErrNotFound
	}
	log, err := source.SearchLog(ctx, name)
	if err == nil {
		_, err = s.repoName(ctx, v, log.Repo)
	}
	return log, err
}

// watchTuning streams the page of a search while its log grows.
func (s *Server) watchTuning(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if _, err := s.searchLogOf(r.Context(), s.visit(r), name); err != nil {
		s.fail(w, r, err)
		return
	}
	s.watch(w, r, "search "+name, func(ctx context.Context) (snapshot, bool) {
		log, err := s.Source.(Searcher).SearchLog(ctx, name)
		if err != nil {
			return snapshot{}, false
		}
		page, err := NewTuningPage(log)
		if err != nil {
			return snapshot{}, false
		}
		if page.Ended {
			return snapshot{over: true}, true
		}
		text, ok := s.piece("tuned", page)
		return snapshot{pieces: map[string]string{"tuned": text}}, ok
	})
}
