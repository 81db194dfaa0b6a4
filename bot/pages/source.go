package pages

import (
	"context"
	"net/http"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/highwater"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/bot/watch"
	"github.com/kernelgate/kernelgate/runners"
)

// A Source provides the data of the pages. It answers for everything that it has and knows nothing
// about viewers. It returns ErrNotFound for things that it does not have.
type Source interface {
	RepoNames(ctx context.Context) ([]ledger.RepoName, error)
	Kernels(ctx context.Context, repo int64) ([]string, error) // their folders
	Latest(ctx context.Context, repo int64, folder string, limit int) ([]ledger.RunRow, error)
	OnMain(ctx context.Context, repo int64, folder string, limit int) ([]ledger.RunRow, error)
	// Merges returns the history from which a kernel's high-water mark is derived.
	Merges(ctx context.Context, repo int64, folder string) (highwater.History, error)
	// Watched returns the watched kernels of a repository, by folder.
	Watched(ctx context.Context, repo int64) ([]*watch.State, error)
	// Runs returns one page of a list of runs, newest first.
	Runs(ctx context.Context, f ledger.RunFilter) ([]ledger.RunRow, error)
	// FindChanges returns the changes of a repository that match a number or a text, newest first.
	FindChanges(ctx context.Context, repo int64, text string, limit int) ([]ledger.ChangeRow, error)
	Run(ctx context.Context, job string) (ledger.RunRow, error)
	// AtHead returns the last runs of commits whose id begins with prefix, in all repositories.
	AtHead(ctx context.Context, prefix string, limit int) ([]ledger.RunRow, error)
	Unfinished(ctx context.Context) ([]ledger.RunRow, error)
	Attempts(ctx context.Context, id change.ID) ([]ledger.RunRow, error)
	Change(ctx context.Context, id change.ID) (*change.State, error)
	// Audit returns the last commands about a change, newest first.
	Audit(ctx context.Context, id change.ID, limit int) ([]ledger.Entry, error)
	// Blob returns stored evidence, a verdict or a log.
	Blob(ctx context.Context, name string) ([]byte, error)
	// Runners returns the runners.
	Runners() []Runner
	// Places returns the positions in the queue, by job. A job that no current runner would take
	// has none.
	Places() map[string]scheduler.Position
	// Said returns the log of a running job, from its beginning.
	Said(job string) []runners.LogEntry
}

// An Access identifies viewers and says what they may read.
type Access interface {
	Viewer(r *http.Request) Viewer
	// SignIn returns the address of the login page, or an empty string.
	SignIn() string
	// Routes adds pages of the Access. It renders them with show.
	Routes(mux *http.ServeMux, show showPage)
}

// showPage renders a page with one of the templates.
type showPage = func(w http.ResponseWriter, r *http.Request, status int, name string, model any)

// A Viewer is the person or program that requests a page.
type Viewer struct {
	Login   string // empty if anonymous
	Member  bool   // has logged in, in any way
	Proof   string // proof of this session for forms; empty without a session
	MayRead func(ctx context.Context, repo ledger.RepoName) bool
}

// Everybody lets everybody read everything. It is for pages that only their owner can reach.
type Everybody struct{}

// Viewer returns a viewer who may read everything.
func (Everybody) Viewer(*http.Request) Viewer {
	return Viewer{MayRead: func(context.Context, ledger.RepoName) bool { return true }}
}

// SignIn returns an empty string: there is no login.
func (Everybody) SignIn() string { return "" }

// Routes adds no pages.
func (Everybody) Routes(*http.ServeMux, showPage) {}

// repos returns the repositories that the viewer may read.
func (s *Server) repos(ctx context.Context, v *visit) (map[int64]string, error) {
	all, err := s.Source.RepoNames(ctx)
	if err != nil {
		return nil, err
	}
	mine := map[int64]string{}
	for _, r := range all {
		if v.MayRead(ctx, r) {
			mine[r.ID] = r.Name
		}
	}
	return mine, nil
}

// repoName returns the current name of a repository if the viewer may read it. A run may bear an
// older name, which may belong to a different repository by now, so the number decides.
func (s *Server) repoName(ctx context.Context, v *visit, id int64) (string, error) {
	all, err := s.Source.RepoNames(ctx)
	if err != nil {
		return "", err
	}
	for _, r := range all {
		if r.ID == id && v.MayRead(ctx, r) {
			return r.Name, nil
		}
	}
	return "", ErrNotFound
}

// runOf returns a run if the viewer may read it.
func (s *Server) runOf(ctx context.Context, v *visit, job string) (ledger.RunRow, error) {
	row, err := s.Source.Run(ctx, job)
	if err != nil {
		return row, err
	}
	row.Repo, err = s.repoName(ctx, v, row.Change.Repo)
	return row, err
}
