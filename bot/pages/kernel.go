package pages

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// Limits of a kernel's page.
const (
	kernelPoints = 60  // of a history without a range
	kernelPast   = 240 // of a history with a range
	kernelRuns   = 50
	kernelShapes = 12
)

// A KernelPage shows the history of a kernel's speed.
type KernelPage struct {
	Repo   string `json:"repository"`
	Kernel string `json:"kernel"` // the name to display
	Folder string `json:"folder"`
	// Branch means that the history shows the default branch; otherwise it shows every attempt.
	Branch   bool           `json:"default_branch"`
	Range    Range          `json:"range"`
	Shapes   []History      `json:"history"`
	Gained   *Gained        `json:"gained,omitempty"`
	Trends   []Trend        `json:"-"`
	Table    *PastTable     `json:"-"`
	Best     []BestState    `json:"best,omitempty"`
	Variants []VariantTable `json:"by_device,omitempty"`
	Rivals   *RivalTable    `json:"rivals,omitempty"`
	Searches []TuningPage   `json:"searches,omitempty"`
	Runs     []Row          `json:"runs"`
	Pages
	Lost []Negative `json:"negative_results,omitempty"`
}

// A History holds one shape's times on one device, oldest first.
type History struct {
	Shape  string       `json:"shape"`
	Device string       `json:"device"`
	Points []Past       `json:"points"`
	Marks  []chart.Mark `json:"marks,omitempty"`
	// Factor is set for the default branch only. It is the product of the speedups of all points,
	// each measured within one run.
	Factor float64 `json:"factor,omitempty"`
	// Next is the longest time with which the next change of the default branch would meet the goal of its last.
	Next *float64 `json:"next_us,omitempty"`
	Goal string   `json:"goal,omitempty"` // of the last change
}

// A Trend shows a shape's times on all devices.
type Trend struct {
	Shape string
	Lines []History
	Chart template.HTML
}

// A Past is the time of one commit.
type Past struct {
	Job     string        `json:"job"`
	Head    string        `json:"head"`
	P50     float64       `json:"p50_us"`
	Min     float64       `json:"min_us,omitempty"`
	P90     float64       `json:"p90_us,omitempty"`
	Outcome gates.Outcome `json:"outcome"`
	Variant string        `json:"variant,omitempty"`
	At      time.Time     `json:"at,omitzero"` // when it was measured
	row     Row
	place   int // index among the runs of the page
}

// A BestState is the high-water mark of one shape: the merged commit with the best cumulative
// speed.
type BestState struct {
	Shape      string    `json:"shape"`
	Device     string    `json:"device"`
	Commit     string    `json:"commit"`
	At         time.Time `json:"at,omitzero"`          // when it was measured
	Speedup    float64   `json:"speedup"`              // of the default branch relative to it: 0 or less
	Unmeasured int       `json:"unmeasured,omitempty"` // later merges that were not measured on the device
}

// bestStates returns the high-water marks of a kernel, one for each device and shape.
func (s *Server) bestStates(ctx context.Context, repo int64, folder string) ([]BestState, error) {
	history, err := s.Source.Merges(ctx, repo, folder)
	if err != nil {
		return nil, err
	}
	var list []BestState
	for _, d := range history.Devices() {
		for shape, p := range history.Marks(d) {
			list = append(list, BestState{Shape: shape.Name, Device: d.Name, Commit: p.Commit, At: p.At, Speedup: p.Level - 1, Unmeasured: p.Unmeasured})
		}
	}
	slices.SortFunc(list, func(a, b BestState) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Shape, b.Shape), cmp.Compare(a.Commit, b.Commit))
	})
	return list[:min(len(list), kernelShapes)], nil
}

func (s *Server) kernel(ctx context.Context, v *visit) (any, error) {
	id, repo, err := s.repoByName(ctx, v, v.PathValue("owner")+"/"+v.PathValue("repo"))
	if err != nil {
		return nil, err
	}
	p, err := s.kernelPage(ctx, id, repo, v.PathValue("kernel"), v.URL.Query())
	if err != nil {
		return nil, err
	}
	p.Runs, p.Pages, err = s.pageOfRuns(ctx, v, ledger.RunFilter{RepoID: id, Folder: p.Folder, Limit: kernelRuns}, repo)
	return p, err
}

func (s *Server) repoByName(ctx context.Context, v *visit, name string) (int64, string, error) {
	all, err := s.Source.RepoNames(ctx)
	if err != nil {
		return 0, "", err
	}
	mine := slices.DeleteFunc(all, func(r ledger.RepoName) bool { return !strings.EqualFold(r.Name, name) || !v.MayRead(ctx, r) })
	found, ok := ledger.Named(mine, name)
	if !ok {
		return 0, "", ErrNotFound
	}
	return found.ID, found.Name, nil
}

func (s *Server) kernelPage(ctx context.Context, id int64, repo, folder string, query url.Values) (*KernelPage, error) {
	latest, err := s.Source.Latest(ctx, id, folder, kernelRuns)
	if err != nil {
		return nil, err
	}
	if len(latest) == 0 {
		return nil, ErrNotFound
	}
	p := &KernelPage{Repo: repo, Kernel: latest[0].Kernel, Folder: folder, Branch: true}
	p.Lost = s.negatives(ctx, latest, repo)
	main, err := s.Source.OnMain(ctx, id, folder, kernelPast)
	if err != nil {
		return nil, err
	}
	if len(main) == 0 {
		p.Branch = false
		main = slices.DeleteFunc(slices.Clone(latest), func(r ledger.RunRow) bool { return r.Phase != change.Done || r.Extra })
	}
	if p.Best, err = s.bestStates(ctx, id, folder); err != nil {
		return nil, err
	}
	newest := main[:min(len(main), kernelPoints)]
	p.Rivals = s.rivals(ctx, newest)
	p.Variants = s.variants(ctx, append(slices.Clone(latest), newest...))
	slices.Reverse(main)
	var shown []ledger.RunRow
	p.Range, shown = rangeOf(main, query)
	p.Shapes = s.histories(ctx, shown, p.Branch)
	if p.Searches, err = s.searchesOf(ctx, id, folder, p.Kernel); err != nil {
		return nil, err
	}
	p.Trends, p.Table = s.trends(p.Shapes, p.Rivals, p.Branch), pastTable(p.Shapes)
	p.Gained = p.gained()
	return p, nil
}

// Gained is the one factor of a kernel's page: what all its steps gained together on the target shape.
type Gained struct {
	Factor float64 `json:"factor"`
	Shape  string  `json:"shape"`
	Device string  `json:"device"`
	// Of the default branch, Commits is the number of commits behind the factor. Otherwise it is that of Variant over From.
	Commits int    `json:"commits,omitempty"`
	Chosen  bool   `json:"chosen,omitempty"` // the visitor chose the range of commits
	Variant string `json:"variant,omitempty"`
	From    string `json:"from,omitempty"`
}

// Words returns the factor in a sentence that says what it is the product of.
func (g *Gained) Words() string {
	if g.Commits > 0 && g.Chosen {
		return fmt.Sprintf("Over the %s shown, the default branch became %s as fast on %s: the product of their speedups on %s.", number.Plural(g.Commits, "commit"), number.Factor(g.Factor), g.Shape, deviceName(g.Device))
	}
	if g.Commits > 0 {
		return fmt.Sprintf("The default branch is %s as fast on %s as before its first measured commit: the product of the speedups of %s on %s.", number.Factor(g.Factor), g.Shape, number.Plural(g.Commits, "commit"), deviceName(g.Device))
	}
	return fmt.Sprintf("%s, the fastest variant that passed, is %s as fast on %s as %s: the product of the speedups of the steps between them on %s.", g.Variant, number.Factor(g.Factor), g.Shape, g.From, deviceName(g.Device))
}

// gained returns what the default branch has gained, or else the fastest variant that passed.
func (p *KernelPage) gained() *Gained {
	if p.Branch {
		if len(p.Shapes) == 0 || p.Shapes[0].Factor <= 0 || len(p.Shapes[0].Points) < 2 {
			return nil
		}
		h := p.Shapes[0]
		return &Gained{Factor: h.Factor, Shape: h.Shape, Device: h.Device, Commits: len(h.Points), Chosen: p.Range.Chosen}
	}
	var best *Gained
	for _, t := range p.Variants {
		for _, row := range t.Rows {
			passed := slices.ContainsFunc(row.Verdicts, func(w Word) bool { return w.Outcome == gates.Pass })
			if passed && row.Gain != nil && row.Factor > 0 && (best == nil || row.Factor > best.Factor) {
				best = &Gained{Factor: row.Factor, Shape: row.Shape, Device: t.Device, Variant: row.Variant, From: t.Rows[0].Variant}
			}
		}
	}
	return best
}
