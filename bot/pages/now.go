package pages

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/runners"
)

// A Live is a run that is not finished.
type Live struct {
	Row
	Place    *Place         `json:"place,omitempty"`    // only while it waits
	Progress *runners.Event `json:"progress,omitempty"` // only while it runs
	Funnel   template.HTML  `json:"-"`                  // chart of how its interval narrows
}

// A Place is a run's position in the queue of all runs.
type Place struct {
	Position int     `json:"position,omitempty"`
	Begins   float64 `json:"begins_in_seconds"`
	Takes    float64 `json:"takes_seconds,omitempty"` // 0 if unknown
	Held     string  `json:"held,omitempty"`          // what it waits for in addition to a runner
}

func placeOf(p scheduler.Position) *Place {
	if p.Held != nil {
		return &Place{Held: p.Held.String()}
	}
	return &Place{Position: p.Ahead + 1, Begins: p.Wait.Seconds(), Takes: p.Took.Seconds()}
}

// liveOf adds the run's current progress or its place in the queue.
func (s *Server) liveOf(r Row, measuring []Runner, places map[string]scheduler.Position) Live {
	live := Live{Row: r}
	if p, ok := places[r.Job]; ok && r.Phase == change.Queued {
		live.Place = placeOf(p)
	}
	for _, m := range measuring {
		if m.Job == r.Job {
			live.Progress = m.Progress
		}
	}
	if live.Progress != nil && live.Progress.SoFar != nil {
		live.Funnel = funnel(s.Source.Said(r.Job))
	}
	return live
}

// funnel draws how the interval of a run narrows.
func funnel(said []runners.LogEntry) template.HTML {
	var rounds []chart.Narrowing
	var goal *float64
	shape := ""
	for _, e := range said {
		now := e.SoFar
		if now == nil || now.Speedup == nil || now.Speedup.Lower == nil || now.Speedup.Upper == nil {
			continue
		}
		if now.Shape != shape {
			shape, rounds = now.Shape, nil
		}
		goal = now.Goal
		rounds = append(rounds, chart.Narrowing{Round: e.Done, Value: now.Speedup.Value, Lower: *now.Speedup.Lower, Upper: *now.Speedup.Upper})
	}
	if len(rounds) == 0 {
		return ""
	}
	return picture(chart.Funnel("Speedup on "+shape+" so far, round by round", rounds, goal))
}

// logLines formats a log as text.
func logLines(said []runners.LogEntry) []string {
	var lines []string
	for _, e := range said {
		lines = append(lines, e.At.UTC().Format(time.TimeOnly)+"  "+report.Plain(e.String()))
	}
	return lines
}

// addNow adds the running and the queued runs, and the runners. Positions in the queue count all
// jobs, but jobs that the viewer may not see are not shown.
func (s *Server) addNow(ctx context.Context, p *HomePage, repos map[int64]string) error {
	if len(repos) == 0 {
		return nil
	}
	unfinished, err := s.Source.Unfinished(ctx)
	if err != nil {
		return err
	}
	measuring, places, mine := s.Source.Runners(), s.Source.Places(), map[string]bool{}
	var waiting []Row
	for _, r := range unfinished {
		repo, ok := repos[r.Change.Repo]
		if !ok {
			continue
		}
		mine[r.Job] = true
		if row := rowOf(r, repo); r.Phase == change.Queued {
			waiting = append(waiting, row)
		} else {
			p.Running = append(p.Running, s.liveOf(row, measuring, places))
		}
	}
	if err := s.addSearching(ctx, p, repos); err != nil {
		return err
	}
	slices.SortStableFunc(waiting, func(a, b Row) int { return cmp.Compare(inLine(places, a), inLine(places, b)) })
	for _, row := range waiting[:min(len(waiting), homeQueue)] {
		p.Queue = append(p.Queue, s.liveOf(row, nil, places))
	}
	p.Behind = len(waiting) - len(p.Queue)
	for _, r := range measuring {
		if r.Job != "" && !mine[r.Job] {
			r.Job, r.Progress = "elsewhere", nil
		}
		p.Runners = append(p.Runners, r.shown())
	}
	return nil
}

// inLine returns the sort key of a queued run. Runs that are held, or that no runner takes, come
// last.
func inLine(places map[string]scheduler.Position, r Row) time.Duration {
	if p, ok := places[r.Job]; ok && p.Held == nil {
		return p.Wait
	}
	return 1 << 62
}

// watchHome streams the home page as it changes, piece by piece.
func (s *Server) watchHome(w http.ResponseWriter, r *http.Request) {
	repos, err := s.openTo(r.Context(), s.visit(r))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	// Viewers who may read the same repositories share a topic.
	name := "home"
	for _, id := range slices.Sorted(maps.Keys(repos)) {
		name += fmt.Sprintf(" %d=%s", id, repos[id])
	}
	h := &homeTopic{server: s, repos: repos}
	s.watch(w, r, name, h.see)
}

// A homeTopic polls the home page for its watchers.
type homeTopic struct {
	server *Server
	repos  map[int64]string
	live   []string // jobs
	ended  bool     // one of them ended since the kernels were last read
	looks  int
}

// kernelsEvery is how often the runs are polled for each time that the kernels are read.
const kernelsEvery = 5

func (h *homeTopic) see(ctx context.Context) (snapshot, bool) {
	p, s := &HomePage{}, h.server
	if err := s.addNow(ctx, p, h.repos); err != nil {
		return snapshot{}, false
	}
	var live []string
	for _, list := range [][]Live{p.Running, p.Queue} {
		for _, r := range list {
			live = append(live, r.Job)
		}
	}
	for _, job := range h.live {
		h.ended = h.ended || !slices.Contains(live, job)
	}
	h.live = live
	names := []string{"now", "runners"}
	if h.looks++; h.ended && h.looks%kernelsEvery == 0 {
		if err := s.addKernels(ctx, p, h.repos); err != nil {
			return snapshot{}, false
		}
		h.ended = false
		names = append(names, "kernels", "recent")
	}
	seen := snapshot{pieces: map[string]string{}}
	for _, name := range names {
		text, ok := s.piece(name, p)
		if !ok {
			return snapshot{}, false
		}
		seen.pieces[name] = text
	}
	return seen, true
}
