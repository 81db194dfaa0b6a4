package pages

import (
	"context"
	"net/http"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/highwater"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/runners"
)

// A Source knows what is shown. It answers for everything it has: who may see it is
// not its business. Of what it does not have it says ErrNotFound.
type Source interface {
	RepoNames(ctx context.Context) ([]ledger.RepoName, error)
	Kernels(ctx context.Context, repo int64) ([]string, error) // by folder
	Latest(ctx context.Context, repo int64, folder string, limit int) ([]ledger.RunRow, error)
	OnMain(ctx context.Context, repo int64, folder string, limit int) ([]ledger.RunRow, error)
	// Merges is what a kernel's high-water mark is derived from.
	Merges(ctx context.Context, repo int64, folder string) (highwater.History, error)
	// Runs is one page of a list of runs, newest first.
	Runs(ctx context.Context, f ledger.RunFilter) ([]ledger.RunRow, error)
	// FindChanges is the changes of a repository with that number or text, newest first.
	FindChanges(ctx context.Context, repo int64, text string, limit int) ([]ledger.ChangeRow, error)
	Run(ctx context.Context, job string) (ledger.RunRow, error)
	// AtHead is the last runs of commits whose id begins so, of whatever repository.
	AtHead(ctx context.Context, prefix string, limit int) ([]ledger.RunRow, error)
	Unfinished(ctx context.Context) ([]ledger.RunRow, error)
	Attempts(ctx context.Context, id change.ID) ([]ledger.RunRow, error)
	Change(ctx context.Context, id change.ID) (*change.State, error)
	// Audit is the last commands about a change, newest first.
	Audit(ctx context.Context, id change.ID, limit int) ([]ledger.Entry, error)
	// Blob is stored evidence, a verdict or a log.
	Blob(ctx context.Context, name string) ([]byte, error)
	// Runners is who measures.
	Runners() []Runner
	// Places is where jobs stand in line, by job. One that no runner of now would take has none.
	Places() map[string]scheduler.Position
	// Said is the log of a job that is at a runner, from its beginning.
	Said(job string) []runners.LogEntry
}

// An Access says who somebody is, and what they may read.
type Access interface {
	Viewer(r *http.Request) Viewer
	// SignIn is the address of the page where one can log in, or "".
	SignIn() string
	// Routes adds pages of its own, written by what it is given.
	Routes(mux *http.ServeMux, show showPage)
}

// showPage writes a page by one of the templates.
type showPage = func(w http.ResponseWriter, r *http.Request, status int, name string, model any)

// A Viewer is whoever asks for a page.
type Viewer struct {
	Login   string // "" for nobody in particular
	Member  bool   // has logged in, by whatever way
	Proof   string // what a form of this session bears; "" where there is none
	MayRead func(ctx context.Context, repo string) bool
}

// Everybody may read everything: for pages that nobody else can reach.
type Everybody struct{}

// Viewer is anyone.
func (Everybody) Viewer(*http.Request) Viewer {
	return Viewer{MayRead: func(context.Context, string) bool { return true }}
}

// SignIn is nowhere.
func (Everybody) SignIn() string { return "" }

// Routes has none.
func (Everybody) Routes(*http.ServeMux, showPage) {}

// repos is the repositories that the viewer may read.
func (s *Server) repos(ctx context.Context, v *visit) (map[int64]string, error) {
	all, err := s.Source.RepoNames(ctx)
	if err != nil {
		return nil, err
	}
	mine := map[int64]string{}
	for _, r := range all {
		if v.MayRead(ctx, r.Name) {
			mine[r.ID] = r.Name
		}
	}
	return mine, nil
}

// repoName is the newest name of a repository that the viewer may read. A run may
// bear an older one, which may be another repository's by now.
func (s *Server) repoName(ctx context.Context, v *visit, id int64) (string, error) {
	all, err := s.Source.RepoNames(ctx)
	if err != nil {
		return "", err
	}
	for _, r := range all {
		if r.ID == id && v.MayRead(ctx, r.Name) {
			return r.Name, nil
		}
	}
	return "", ErrNotFound
}

// runOf finds a run that the viewer may read.
func (s *Server) runOf(ctx context.Context, v *visit, job string) (ledger.RunRow, error) {
	row, err := s.Source.Run(ctx, job)
	if err != nil {
		return row, err
	}
	row.Repo, err = s.repoName(ctx, v, row.Change.Repo)
	return row, err
}
