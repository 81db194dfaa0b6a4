package embedded

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/go-github/v60/github"
)

type checkSuite struct {
	id               int64
	repo             *Repo
	app              *App
	branch           string // empty for a fork's commit
	headSHA, before  string
	created, updated time.Time
}

// suite finds an App's suite for a commit, or makes it.
func (r *Repo) suite(app *App, sha string) *checkSuite {
	if s := find(r.suites, func(s *checkSuite) bool { return s.app == app && s.headSHA == sha }); s != nil {
		return s
	}
	s := &checkSuite{id: r.s.id(), repo: r, app: app, headSHA: sha, before: zeroSHA, created: r.s.now(), updated: r.s.now()}
	for branch, head := range r.heads {
		if head == sha && (s.branch == "" || branch < s.branch) {
			s.branch = branch
		}
	}
	r.suites = append(r.suites, s)
	return s
}

// requestSuites makes a suite for each App that writes checks here, and asks it
// to get to work.
func (r *Repo) requestSuites(branch, before, after string) {
	for _, app := range r.s.apps {
		if app.opt.Permissions["checks"] != "write" || app.installationFor(r) == nil {
			continue
		}
		known := len(r.suites)
		s := r.suite(app, after)
		if len(r.suites) == known {
			continue
		}
		s.branch, s.before = branch, cmp.Or(before, zeroSHA)
		s.emit(r.owner, "requested")
	}
}

func (s *checkSuite) emit(who *account, action string) {
	more := map[string]any{"head_commit": nil, "latest_check_runs_count": len(s.runs()), "check_runs_url": s.repo.api("/check-suites/%d/check-runs", s.id)}
	if tip, ok := s.repo.git.commit(s.headSHA); ok {
		more["head_commit"] = renderSimple(tip)
	}
	s.repo.emit(who, "check_suite", action, s.app, map[string]any{"check_suite": with(s.render(), more)})
}

func (s *checkSuite) runs() []*checkRun {
	return slices.DeleteFunc(s.repo.latestRuns(s.headSHA), func(run *checkRun) bool { return run.suite != s })
}

// sum is the suite's state, drawn from its runs: the worst conclusion counts.
func (s *checkSuite) sum() (status, conclusion string) {
	runs := s.runs()
	if len(runs) == 0 {
		return "queued", ""
	}
	order := []string{"skipped", "neutral", "success", "stale", "cancelled", "timed_out", "action_required", "failure"}
	worst := -1
	for _, run := range runs {
		if run.Status != "completed" {
			return "in_progress", ""
		}
		worst = max(worst, slices.Index(order, run.Conclusion))
	}
	return "completed", order[max(worst, 0)]
}

func (s *checkSuite) render() *github.CheckSuite {
	r := s.repo
	status, conclusion := s.sum()
	out := &github.CheckSuite{ID: &s.id, NodeID: ptr(nodeID("CheckSuite", s.id)), HeadBranch: orNil(s.branch), HeadSHA: &s.headSHA,
		URL: ptr(r.api("/check-suites/%d", s.id)), BeforeSHA: &s.before, AfterSHA: &s.headSHA, Status: &status, Conclusion: orNil(conclusion),
		CreatedAt: when(s.created), UpdatedAt: when(s.updated), App: s.app.render()}
	out.PullRequests = each(r.pullsAt(s.headSHA), (*PR).renderMinimal)
	return out
}
