package pages

import (
	"cmp"
	"context"
	"html/template"
	"maps"
	"slices"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// Bounds of the first page.
const (
	homeKernels = 200
	homeRuns    = 15 // of each kernel
	homeRecent  = 25
	homeQueue   = 50
	homeRepos   = 20
)

// A HomePage is what goes on.
type HomePage struct {
	Repos   []string    `json:"repositories,omitempty"`
	Kernels []KernelRow `json:"kernels"`
	More    bool        `json:"more_kernels,omitempty"`
	Running []Live      `json:"running"`
	Queue   []Live      `json:"queue"`
	Behind  int         `json:"more_in_queue,omitempty"` // than are listed
	Recent  []Row       `json:"recent"`
	Runners []Runner    `json:"runners"`
}

// A KernelRow is a kernel on one device: how it stands on the default branch, and what is proposed.
type KernelRow struct {
	Repo   string        `json:"repository"`
	Kernel string        `json:"kernel"`
	Device string        `json:"device"`
	Shape  string        `json:"shape,omitempty"` // that the line is of
	Values []float64     `json:"p50_us,omitempty"`
	Shapes []string      `json:"shapes,omitempty"` // that were timed lately
	Line   template.HTML `json:"-"`
	Main   *Row          `json:"main,omitempty"` // the last on the default branch that decided something
	Open   []Row         `json:"open,omitempty"` // the last of each open pull request that was measured lately, newest first
	Last   Row           `json:"last"`
}

// P50 is the newest time on the line, or 0. The last run may have none, or be of a
// change that was not merged.
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

// measured is the first page without what goes on, and whose kernels are on it.
func (s *Server) measured(ctx context.Context, v *visit) (*HomePage, map[int64]string, error) {
	p := &HomePage{}
	repos, err := s.openTo(ctx, v)
	if err == nil {
		err = s.addKernels(ctx, p, repos)
	}
	return p, repos, err
}

// openTo is the repositories that the viewer may read. Where nobody can be shown
// anything, that is no different from nothing being here.
func (s *Server) openTo(ctx context.Context, v *visit) (map[int64]string, error) {
	repos, err := s.repos(ctx, v)
	if _, open := s.Access.(Everybody); err == nil && len(repos) == 0 && s.Access.SignIn() == "" && !open {
		err = ErrNotFound
	}
	return repos, err
}

// addKernels adds what was measured.
func (s *Server) addKernels(ctx context.Context, p *HomePage, repos map[int64]string) error {
	ids := slices.SortedFunc(maps.Keys(repos), func(a, b int64) int { return cmp.Or(cmp.Compare(repos[a], repos[b]), cmp.Compare(a, b)) })
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

// kernelRows is one row for each device that the kernel was measured on lately. The
// line is of the default branch where that was measured, else of all attempts.
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
		if len(row.Values) > 1 {
			row.Line = picture(chart.Spark(row.Kernel+" on "+device+": "+row.Shape, row.Values))
		}
		rows = append(rows, row)
	}
	return rows
}

// openPulls is the last run of each open pull request.
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

// mainShape is the one that must gain, or the first by name.
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
