package embedded

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-github/v60/github"
)

type checkRun struct {
	Check
	suite *checkSuite
}

// A Check is a snapshot of a check run.
type Check struct {
	ID                     int64
	Name, ExternalID       string
	DetailsURL             string
	Status, Conclusion     string
	StartedAt, CompletedAt time.Time
	Title, Summary, Text   string
	Annotations            []*github.CheckRunAnnotation
	Actions                []*github.CheckRunAction
	run                    *checkRun
}

// Checks returns all check runs of a commit, oldest first.
func (r *Repo) Checks(sha string) []Check {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return each(r.runsAt(sha), (*checkRun).snapshot)
}

// runsAt returns all check runs of a commit, oldest first.
func (r *Repo) runsAt(sha string) []*checkRun {
	return slices.DeleteFunc(slices.Clone(r.runs), func(run *checkRun) bool { return run.suite.headSHA != sha })
}

// Check returns the newest check run with a name on a commit.
func (r *Repo) Check(sha, name string) (Check, bool) {
	all := r.Checks(sha)
	for _, c := range slices.Backward(all) {
		if c.Name == name {
			return c, true
		}
	}
	return Check{}, false
}

func (c *checkRun) snapshot() Check {
	out := c.Check
	out.Annotations, out.Actions, out.run = slices.Clone(c.Annotations), slices.Clone(c.Actions), c
	return out
}

// press performs a click on one of the check's buttons. GitHub shows the buttons only to users with
// write access.
func (c Check) press(user, what string, do func(who *account) error) error {
	r := c.run.suite.repo
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	who := r.s.user(user)
	if !r.role(who).atLeast(Write) {
		return fmt.Errorf("%s %s of %s as %s: write access is needed", what, c.Name, r.fullName(), user)
	}
	if err := do(who); err != nil {
		return fmt.Errorf("%s %s of %s as %s: %w", what, c.Name, r.fullName(), user, err)
	}
	r.s.touch()
	return nil
}

// Rerequest presses the "Re-run" button of this check.
func (c Check) Rerequest(user string) error {
	return c.press(user, "re-run", func(who *account) error {
		if c.run.Status != "completed" {
			return &apiError{Status: 422, Message: "This check run is not rerequestable"}
		}
		c.run.emit(who, "rerequested", nil, c.run.suite.app)
		c.run.reset()
		return nil
	})
}

// RerequestSuite presses the "Re-run all checks" button.
func (c Check) RerequestSuite(user string) error {
	return c.press(user, "re-run the suite of", func(who *account) error {
		c.run.suite.emit(who, "rerequested")
		for _, run := range c.run.suite.runs() {
			run.reset()
		}
		return nil
	})
}

// RequestAction presses a button that the App added to its completed check.
func (c Check) RequestAction(user, identifier string) error {
	return c.press(user, "press a button of", func(who *account) error {
		if c.run.Status != "completed" {
			return fmt.Errorf("the check is %s, and its buttons show once it is completed", c.run.Status)
		}
		if !slices.ContainsFunc(c.run.Actions, func(a *github.CheckRunAction) bool { return a.Identifier == identifier }) {
			return fmt.Errorf("it has no button %q", identifier)
		}
		c.run.emit(who, "requested_action", &github.RequestedAction{Identifier: identifier}, c.run.suite.app)
		return nil
	})
}

// reset sets the check back to queued. GitHub does the same after it has sent "rerequested" to the
// App.
func (c *checkRun) reset() { c.Status, c.Conclusion, c.CompletedAt = "queued", "", time.Time{} }

func (c *checkRun) emit(who *account, action string, button *github.RequestedAction, only *App) {
	run := c.render()
	run.CheckSuite = c.suite.render()
	c.suite.repo.emit(who, "check_run", action, only, &github.CheckRunEvent{CheckRun: run, RequestedAction: button})
}

func (c *checkRun) render() *github.CheckRun {
	r := c.suite.repo
	url := r.api("/check-runs/%d", c.ID)
	out := &github.CheckRun{ID: &c.ID, NodeID: ptr(nodeID("CheckRun", c.ID)), HeadSHA: &c.suite.headSHA, ExternalID: ptr(c.ExternalID), URL: &url,
		HTMLURL: ptr(r.html("/runs/%d", c.ID)), DetailsURL: ptr(cmp.Or(c.DetailsURL, c.suite.app.s.url)), Status: ptr(c.Status), Conclusion: orNil(c.Conclusion),
		StartedAt: when(c.StartedAt), CompletedAt: when(c.CompletedAt), Name: ptr(c.Name), App: c.suite.app.render(),
		CheckSuite: &github.CheckSuite{ID: &c.suite.id},
		Output: &github.CheckRunOutput{Title: orNil(c.Title), Summary: orNil(c.Summary), Text: orNil(c.Text),
			AnnotationsCount: ptr(len(c.Annotations)), AnnotationsURL: ptr(url + "/annotations")}}
	out.PullRequests = each(r.pullsAt(c.suite.headSHA), (*PR).renderMinimal)
	return out
}

// latestRuns returns the newest check run of each App and name on a commit.
func (r *Repo) latestRuns(sha string) []*checkRun {
	type key struct {
		app  *App
		name string
	}
	seen := map[key]bool{}
	var out []*checkRun
	for _, run := range slices.Backward(r.runsAt(sha)) {
		if k := (key{run.suite.app, run.Name}); !seen[k] {
			seen[k] = true
			out = append(out, run)
		}
	}
	return out
}

type checkSuite struct {
	id               int64
	repo             *Repo
	app              *App
	branch           string // empty for a commit from a fork
	headSHA, before  string
	created, updated time.Time
}

// suite returns an App's check suite for a commit and creates it if needed. Only the App that runs
// workflows has several suites for a commit; GitHub picks any one of them.
func (r *Repo) suite(app *App, sha string) *checkSuite {
	all := slices.DeleteFunc(slices.Clone(r.suites), func(s *checkSuite) bool { return s.app != app || s.headSHA != sha })
	switch len(all) {
	case 0:
		return r.newSuite(app, sha)
	case 1:
		return all[0]
	}
	return all[r.s.rand.IntN(len(all))]
}

// StartWorkflow starts a workflow run with one job at a commit. Each workflow run has its own
// suite. If the workflow's token creates a check, GitHub adds that check to any of the App's suites
// for the commit, which may be the suite of another run. The check is then shown and rerun with
// that suite.
func (r *Repo) StartWorkflow(app *App, sha, job string) Check {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	run := &checkRun{Check: Check{ID: r.s.id(), Name: job, Status: "in_progress", StartedAt: r.s.now()}, suite: r.newSuite(app, sha)}
	r.runs = append(r.runs, run)
	run.emit(app.bot, "created", nil, nil)
	r.s.touch()
	return run.snapshot()
}

// Suite returns the number of the check's suite.
func (c Check) Suite() int64 { return c.run.suite.id }

func (r *Repo) newSuite(app *App, sha string) *checkSuite {
	s := &checkSuite{id: r.s.id(), repo: r, app: app, headSHA: sha, before: zeroSHA, created: r.s.now(), updated: r.s.now()}
	for branch, head := range r.heads {
		if head == sha && (s.branch == "" || branch < s.branch) {
			s.branch = branch
		}
	}
	r.suites = append(r.suites, s)
	return s
}

// requestSuites creates a suite for each App that writes checks in this repository, and sends the
// App "requested".
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

// sum derives the suite's state from its runs: the worst conclusion counts.
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
