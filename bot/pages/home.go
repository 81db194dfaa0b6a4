package pages

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"maps"
	"slices"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates/number"
)

// Limits of the home page.
const (
	homeKernels = 200
	homeRuns    = 15 // per kernel
	homeRecent  = 25
	homeQueue   = 50
	homeRepos   = 20
)

// A HomePage shows the regressions of default branches, the kernels, current runs, the queue and the runners.
type HomePage struct {
	Repos   []string    `json:"repositories,omitempty"`
	Watches []Watch     `json:"watches,omitempty"`
	Kernels []KernelRow `json:"kernels"`
	More    bool        `json:"more_kernels,omitempty"`
	Running []Live      `json:"running"`
	// Searching are the searches that run.
	Searching []TuningPage `json:"searching,omitempty"`
	Queue     []Live       `json:"queue"`
	Behind    int          `json:"more_in_queue,omitempty"` // queued runs that are not listed
	Recent    []Row        `json:"recent"`
	Runners   []Runner     `json:"runners"`
}

// A KernelRow shows a kernel on one device: its state on the default branch, and the open pull
// requests.
type KernelRow struct {
	Repo   string        `json:"repository"`
	Kernel string        `json:"kernel"`
	Device string        `json:"device"`
	Shape  string        `json:"shape,omitempty"` // the shape that Values and Line show
	Values []float64     `json:"p50_us,omitempty"`
	Shapes []string      `json:"shapes,omitempty"` // shapes that were timed recently
	Line   template.HTML `json:"-"`
	// Spread is how far the last times on the default branch lie around their middle, as a share of it, over Runs runs.
	Spread float64 `json:"spread,omitempty"`
	Runs   int     `json:"spread_runs,omitempty"`
	Main   *Row    `json:"main,omitempty"` // last conclusive run on the default branch
	Open   []Row   `json:"open,omitempty"` // the last run of each open pull request with recent runs, newest first
	Last   Row     `json:"last"`
}

// P50 returns the newest time on the line, or 0. It does not use the last run, which may have no
// time, or belong to a change that was not merged.
func (r KernelRow) P50() float64 {
	if len(r.Values) == 0 {
		return 0
	}
	return r.Values[len(r.Values)-1]
}

func (s *Server) home(ctx context.Context, v *visit) (any, error) {
	p, repos, err := s.measured(ctx, v)
	if err != nil {
		return nil, err
	}
	return p, s.addNow(ctx, p, repos)
}

// measured builds the home page without the current runs. It also returns the repositories that the
// page covers.
func (s *Server) measured(ctx context.Context, v *visit) (*HomePage, map[int64]string, error) {
	p := &HomePage{}
	repos, err := s.openTo(ctx, v)
	if err == nil {
		err = s.addKernels(ctx, p, repos)
	}
	if err == nil {
		err = s.addWatches(ctx, p, repos)
	}
	return p, repos, err
}

// openTo returns the repositories that the viewer may read. If nobody can be shown anything, it
// returns ErrNotFound, so the server looks as if it had no pages.
func (s *Server) openTo(ctx context.Context, v *visit) (map[int64]string, error) {
	repos, err := s.repos(ctx, v)
	if _, open := s.Access.(Everybody); err == nil && len(repos) == 0 && s.Access.SignIn() == "" && !open {
		err = ErrNotFound
	}
	return repos, err
}

// addKernels adds the kernels and their results.
func (s *Server) addKernels(ctx context.Context, p *HomePage, repos map[int64]string) error {
	ids := slices.SortedFunc(maps.Keys(repos), func(a, b int64) int { return cmpRepos(repos, a, b) })
	var recent []ledger.RunRow
	for _, id := range ids {
		kernels, err := s.Source.Kernels(ctx, id)
		if err != nil {
			return err
		}
		if len(kernels) > 0 && len(p.Repos) < homeRepos && !slices.Contains(p.Repos, repos[id]) {
			p.Repos = append(p.Repos, repos[id])
		}
		for _, folder := range kernels {
			if len(p.Kernels) >= homeKernels {
				p.More = true
				break
			}
			runs, err := s.Source.Latest(ctx, id, folder, homeRuns)
			if err != nil {
				return err
			}
			main, err := s.Source.OnMain(ctx, id, folder, homeRuns)
			if err != nil {
				return err
			}
			recent = append(recent, runs...)
			p.Kernels = append(p.Kernels, kernelRows(runs, main, repos[id])...)
		}
	}
	slices.SortFunc(recent, func(a, b ledger.RunRow) int { return cmp.Compare(b.N, a.N) })
	for _, r := range recent {
		if r.Phase == change.Done && len(p.Recent) < homeRecent {
			p.Recent = append(p.Recent, rowOf(r, repos[r.Change.Repo]))
		}
	}
	return nil
}

// cmpRepos orders repositories by name.
func cmpRepos(names map[int64]string, a, b int64) int {
	return cmp.Or(cmp.Compare(names[a], names[b]), cmp.Compare(a, b))
}

// kernelRows returns one row for each device on which the kernel was measured recently. The line
// shows the default branch if it was measured, and otherwise all attempts.
func kernelRows(latest, main []ledger.RunRow, repo string) []KernelRow {
	decided := slices.DeleteFunc(slices.Clone(latest), func(r ledger.RunRow) bool { return r.Phase != change.Done || r.Extra })
	var devices []string
	for _, r := range slices.Concat(decided, main) {
		if !slices.Contains(devices, r.Device) {
			devices = append(devices, r.Device)
		}
	}
	var rows []KernelRow
	for _, device := range devices {
		elsewhere := func(r ledger.RunRow) bool { return r.Device != device }
		its, merged := slices.DeleteFunc(slices.Clone(decided), elsewhere), slices.DeleteFunc(slices.Clone(main), elsewhere)
		line := merged
		if len(merged) == 0 {
			line = its
		}
		if len(its) == 0 {
			its = merged
		}
		row := KernelRow{Repo: repo, Kernel: its[0].Kernel, Device: device, Last: rowOf(its[0], repo), Open: openPulls(its, repo)}
		if len(merged) > 0 {
			last := rowOf(merged[0], repo)
			row.Main = &last
		}
		timed := map[string]bool{}
		for _, r := range slices.Concat(its, merged) {
			for shape := range r.P50 {
				timed[shape] = true
			}
		}
		row.Shape, row.Shapes = mainShape(line), slices.Sorted(maps.Keys(timed))
		for _, r := range slices.Backward(line) {
			if v, ok := r.P50[row.Shape]; ok {
				row.Values = append(row.Values, v)
			}
		}
		if len(merged) > 0 {
			row.Spread, row.Runs = spread(row.Values)
		}
		if len(row.Values) > 1 {
			row.Line = picture(chart.Spark(row.Kernel+" on "+device+": "+row.Shape, row.Values))
		}
		rows = append(rows, row)
	}
	return rows
}

// spread returns how far times lie around their middle, as a share of it, and how many they are. Times before the last permanent
// change do not count.
func spread(values []float64) (share float64, runs int) {
	points := make([]Past, len(values))
	for i, v := range values {
		points[i].P50 = v
	}
	if found := steps(points); len(found) > 0 {
		values = values[found[len(found)-1]:]
	}
	if len(values) == 0 {
		return 0, 0
	}
	low, high := slices.Min(values), slices.Max(values)
	if low+high > 0 {
		share = (high - low) / (high + low)
	}
	return share, len(values)
}

// Around returns the spread in words, or an empty string for less than two runs.
func (r KernelRow) Around() string {
	if r.Runs < 2 {
		return ""
	}
	return fmt.Sprintf("%s over %d runs", number.Reach(-r.Spread, r.Spread), r.Runs)
}

// openPulls returns the last run of each open pull request.
func openPulls(runs []ledger.RunRow, repo string) []Row {
	var list []Row
	seen := map[int]bool{}
	for _, r := range runs {
		if r.Change.Kind == change.Pull && r.Open && !seen[r.Change.Number] {
			seen[r.Change.Number] = true
			list = append(list, rowOf(r, repo))
		}
	}
	return list
}

// mainShape returns the target shape, or the first shape by name.
func mainShape(runs []ledger.RunRow) string {
	for _, r := range runs {
		for _, from := range []map[string]float64{r.Speedups, r.P50} {
			for _, name := range slices.Sorted(maps.Keys(from)) {
				if _, timed := r.P50[name]; timed {
					return name
				}
			}
		}
	}
	return ""
}
