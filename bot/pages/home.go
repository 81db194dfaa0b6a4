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
	"github.com/kernelgate/kernelgate/runners"
)

// Bounds of the first page.
const (
	homeKernels = 200
	homeRuns    = 15 // of each kernel
	homeRecent  = 25
)

// A HomePage is what goes on.
type HomePage struct {
	Kernels []KernelRow `json:"kernels"`
	More    bool        `json:"more_kernels,omitempty"`
	Running []Live      `json:"running"`
	Queue   []Live      `json:"queue"`
	Recent  []Row       `json:"recent"`
	Runners []Runner    `json:"runners"`
}

// A KernelRow is a kernel on one device.
type KernelRow struct {
	Repo   string        `json:"repository"`
	Kernel string        `json:"kernel"`
	Device string        `json:"device"`
	Shape  string        `json:"shape,omitempty"` // that the line is of
	Values []float64     `json:"p50_us,omitempty"`
	Line   template.HTML `json:"-"`
	Last   Row           `json:"last"`
}

// P50 is the newest time on the line, or 0. The last run may have none, or be of a
// change that did not get in.
func (r KernelRow) P50() float64 {
	if len(r.Values) == 0 {
		return 0
	}
	return r.Values[len(r.Values)-1]
}

// A Live is a run that is not finished.
type Live struct {
	Row
	Position int            `json:"position,omitempty"` // in the queue
	Progress *runners.Event `json:"progress,omitempty"`
}

func (s *Server) home(ctx context.Context, v *visit) (any, error) {
	repos, err := s.repos(ctx, v)
	if err != nil {
		return nil, err
	}
	if len(repos) == 0 && s.Access.SignIn() == "" {
		// Nobody can be shown anything: that is no different from nothing being here.
		if _, open := s.Access.(Everybody); !open {
			return nil, ErrNotFound
		}
	}
	p := &HomePage{}
	ids := slices.SortedFunc(maps.Keys(repos), func(a, b int64) int { return cmp.Or(cmp.Compare(repos[a], repos[b]), cmp.Compare(a, b)) })
	var recent []ledger.RunRow
	for _, id := range ids {
		kernels, err := s.Source.Kernels(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, folder := range kernels {
			if len(p.Kernels) >= homeKernels {
				p.More = true
				break
			}
			runs, err := s.Source.Latest(ctx, id, folder, homeRuns)
			if err != nil {
				return nil, err
			}
			recent = append(recent, runs...)
			p.Kernels = append(p.Kernels, kernelRows(runs, repos[id])...)
		}
	}
	slices.SortFunc(recent, func(a, b ledger.RunRow) int { return cmp.Compare(b.N, a.N) })
	for _, r := range recent {
		if r.Phase == change.Done && len(p.Recent) < homeRecent {
			p.Recent = append(p.Recent, rowOf(r, repos[r.Change.Repo]))
		}
	}
	if len(repos) > 0 {
		p.Runners = s.runnersFor(ctx, v)
	}
	return p, s.addLive(ctx, p, repos)
}

// runnersFor hides what runners do for others.
func (s *Server) runnersFor(ctx context.Context, v *visit) []Runner {
	list := s.Source.Runners()
	for i, r := range list {
		if r.Job == "" {
			continue
		}
		if _, err := s.runOf(ctx, v, r.Job); err != nil {
			list[i].Job, list[i].Progress = "elsewhere", nil
		}
	}
	return list
}

// addLive adds what runs and what waits. A place in the queue counts everybody's
// jobs; those that the viewer may not see are not shown.
func (s *Server) addLive(ctx context.Context, p *HomePage, repos map[int64]string) error {
	live, err := s.Source.Unfinished(ctx)
	if err != nil {
		return err
	}
	queued := 0
	for _, r := range live {
		if r.Phase == change.Queued {
			queued++
		}
		repo, mine := repos[r.Change.Repo]
		if !mine {
			continue
		}
		if r.Phase == change.Queued {
			p.Queue = append(p.Queue, Live{Row: rowOf(r, repo), Position: queued})
			continue
		}
		p.Running = append(p.Running, Live{Row: rowOf(r, repo), Progress: s.progress(r.Job)})
	}
	return nil
}

// kernelRows is one row for each device that the kernel was measured on lately. The
// line is of the default branch where that was measured, else of all attempts.
func kernelRows(runs []ledger.RunRow, repo string) []KernelRow {
	var devices []string
	for _, r := range runs {
		if r.Phase == change.Done && !slices.Contains(devices, r.Device) {
			devices = append(devices, r.Device)
		}
	}
	var rows []KernelRow
	for _, device := range devices {
		its := slices.DeleteFunc(slices.Clone(runs), func(r ledger.RunRow) bool { return r.Device != device || r.Phase != change.Done || r.Side })
		if len(its) == 0 {
			continue
		}
		row := KernelRow{Repo: repo, Kernel: its[0].Kernel, Device: device, Last: rowOf(its[0], repo)}
		main := slices.DeleteFunc(slices.Clone(its), func(r ledger.RunRow) bool { return !r.Change.Kind.OnMain() })
		if len(main) < 2 {
			main = its
		}
		row.Shape = mainShape(main)
		for _, r := range slices.Backward(main) {
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
