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

// A Check is a check run at one moment.
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

// Checks reads all check runs of a commit, oldest first.
func (r *Repo) Checks(sha string) []Check {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return each(r.runsAt(sha), (*checkRun).snapshot)
}

// runsAt are all check runs of a commit, oldest first.
func (r *Repo) runsAt(sha string) []*checkRun {
	return slices.DeleteFunc(slices.Clone(r.runs), func(run *checkRun) bool { return run.suite.headSHA != sha })
}

// Check reads the newest check run of a name on a commit.
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

// press is a person at one of the buttons of a check, which GitHub shows to those
// who may write.
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

// Rerequest presses "Re-run" of this check.
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

// RerequestSuite presses "Re-run all checks".
func (c Check) RerequestSuite(user string) error {
	return c.press(user, "re-run the suite of", func(who *account) error {
		c.run.suite.emit(who, "rerequested")
		for _, run := range c.run.suite.runs() {
			run.reset()
		}
		return nil
	})
}

// RequestAction presses a button that the App put on its completed check.
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

// reset is what GitHub does to a check of which it has told the App that it is asked for again.
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

// latestRuns are the newest check runs of each App and name on a commit.
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
