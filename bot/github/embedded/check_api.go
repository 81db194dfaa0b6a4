package embedded

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/google/go-github/v60/github"
)

// checkInput is the body of a POST or PATCH of a check run. A nil field or an empty name was not
// sent.
type checkInput github.CreateCheckRunOptions

func postCheckRun(rq *request) error {
	var in checkInput
	if err := rq.read(&in); err != nil {
		return err
	}
	if in.Name == "" {
		return invalid("CheckRun", "name", "missing_field", "")
	}
	if in.HeadSHA == "" {
		return invalid("CheckRun", "head_sha", "missing_field", "")
	}
	if sha, ok := rq.repo.git.resolve(in.HeadSHA); !ok || sha != in.HeadSHA {
		return noCommit(in.HeadSHA)
	}
	if err := rq.repo.replicated(in.HeadSHA); err != nil {
		return err
	}
	if err := in.validate(); err != nil {
		return err
	}
	r := rq.repo
	run := &checkRun{Check: Check{ID: rq.s.id(), Status: "queued"}, suite: r.suite(rq.actor.inst().app, in.HeadSHA)}
	run.apply(in, rq.s)
	r.runs = append(r.runs, run)
	run.emit(rq.actor.user, "created", nil, nil)
	if err := run.settled(rq.actor.user); err != nil {
		return err
	}
	rq.header.Set("Location", r.api("/check-runs/%d", run.ID))
	return rq.reply(http.StatusCreated, run.render())
}

func patchCheckRun(rq *request, run *checkRun) error {
	if run.suite.app != rq.actor.inst().app {
		return forbidden("Invalid app_id `" + itoa(rq.actor.inst().app.id) + "` - check run can only be modified by the GitHub App that created it.")
	}
	var in checkInput
	if err := rq.read(&in); err != nil {
		return err
	}
	var sent struct{ Name *string }
	if err := rq.read(&sent); err != nil {
		return err
	}
	if sent.Name != nil && *sent.Name == "" {
		return invalid("CheckRun", "name", "missing_field", "")
	}
	if err := in.validate(); err != nil {
		return err
	}
	run.apply(in, rq.s)
	if err := run.settled(rq.actor.user); err != nil {
		return err
	}
	return rq.ok(run.render())
}

// apply copies the fields that were sent. Annotations accumulate over requests; all other fields
// are replaced.
func (c *checkRun) apply(in checkInput, s *Server) {
	set := func(to *string, from *string) {
		if from != nil {
			*to = *from
		}
	}
	c.Name = cmp.Or(in.Name, c.Name)
	set(&c.DetailsURL, in.DetailsURL)
	set(&c.ExternalID, in.ExternalID)
	set(&c.Status, in.Status)
	if c.StartedAt.IsZero() {
		c.StartedAt = s.now()
	}
	if in.StartedAt != nil {
		c.StartedAt = in.StartedAt.UTC()
	}
	switch {
	case in.Conclusion != nil:
		c.Status, c.Conclusion, c.CompletedAt = "completed", *in.Conclusion, s.now()
		if in.CompletedAt != nil {
			c.CompletedAt = in.CompletedAt.UTC()
		}
	case in.Status != nil:
		c.Conclusion = ""
	}
	if in.Output != nil {
		set(&c.Title, in.Output.Title)
		set(&c.Summary, in.Output.Summary)
		set(&c.Text, in.Output.Text)
		c.Annotations = append(c.Annotations, in.Output.Annotations...)
	}
	if in.Actions != nil {
		c.Actions = in.Actions
	}
	c.suite.updated = s.now()
	s.touch()
	if s.opt.OnCheck != nil {
		s.opt.OnCheck(c.suite.headSHA, c.snapshot())
	}
}

// settled emits the events for a completed run and advances the merge queue.
func (c *checkRun) settled(who *account) error {
	if c.Status != "completed" {
		return nil
	}
	c.emit(who, "completed", nil, nil)
	if status, _ := c.suite.sum(); status == "completed" {
		c.suite.emit(who, "completed")
	}
	return c.suite.repo.advance()
}

func (rq *request) checkRun() (*checkRun, error) {
	return there(find(rq.repo.runs, func(c *checkRun) bool { return c.ID == rq.pathInt("id") }))
}

func listRunsForRef(rq *request, sha string) error {
	if err := cmp.Or(rq.oneOf("CheckRun", "filter", "latest", "all"), rq.oneOf("CheckRun", "status", checkStatuses...)); err != nil {
		return err
	}
	runs := rq.repo.latestRuns(sha)
	if rq.query("filter") == "all" {
		runs = rq.repo.runsAt(sha)
		slices.Reverse(runs)
	}
	other := func(name, value string) bool { return rq.query(name) != "" && rq.query(name) != value }
	runs = slices.DeleteFunc(runs, func(run *checkRun) bool {
		return other("check_name", run.Name) || other("status", run.Status) || other("app_id", itoa(run.suite.app.id))
	})
	return rq.ok(map[string]any{"total_count": len(runs), "check_runs": each(page(rq, runs), (*checkRun).render)})
}
