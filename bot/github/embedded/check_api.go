package embedded

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/google/go-github/v60/github"
)

// checkInput is the body of a POST or PATCH of a check run. A field that is nil, or a
// name that is empty, was not sent.
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
		return invalid("CheckRun", "head_sha", "invalid", "No commit found for SHA: "+in.HeadSHA)
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
	if err := in.validate(); err != nil {
		return err
	}
	run.apply(in, rq.s)
	if err := run.settled(rq.actor.user); err != nil {
		return err
	}
	return rq.ok(run.render())
}

// apply takes over what was sent. Annotations add up over requests; everything
// else is replaced.
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
}

// settled tells of a completed run and lets the merge queue move on.
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

const (
	maxOutputText  = 65535
	maxAnnotations = 50
	maxActions     = 3
)

// validate refuses what GitHub refuses in a check run.
func (in checkInput) validate() error {
	statuses := []string{"queued", "in_progress", "completed"}
	conclusions := []string{"action_required", "cancelled", "failure", "neutral", "success", "skipped", "timed_out"}
	switch {
	case in.Status != nil && !slices.Contains(statuses, *in.Status):
		return invalid("CheckRun", "status", "invalid", *in.Status+" is not included in the list")
	case in.Conclusion != nil && !slices.Contains(conclusions, *in.Conclusion):
		return invalid("CheckRun", "conclusion", "invalid", *in.Conclusion+" is not included in the list")
	case in.Status != nil && *in.Status == "completed" && in.Conclusion == nil:
		return invalid("CheckRun", "conclusion", "missing_field", "a completed check run needs a conclusion")
	case in.Conclusion != nil && in.Status != nil && *in.Status != "completed":
		return invalid("CheckRun", "status", "invalid", "a check run with a conclusion is completed")
	case len(in.Actions) > maxActions:
		return invalid("CheckRun", "actions", "invalid", fmt.Sprintf("No more than %d items are allowed; %d were supplied.", maxActions, len(in.Actions)))
	}
	for _, a := range in.Actions {
		if err := cmp.Or(checkLength("CheckRun", "actions.label", a.Label, 1, 20),
			checkLength("CheckRun", "actions.description", a.Description, 1, 40),
			checkLength("CheckRun", "actions.identifier", a.Identifier, 1, 20)); err != nil {
			return err
		}
	}
	if in.Output == nil {
		return nil
	}
	return validateOutput(in.Output)
}

func validateOutput(o *github.CheckRunOutput) error {
	if o.Title == nil || *o.Title == "" {
		return invalid("CheckRun", "output.title", "missing_field", "")
	}
	if o.Summary == nil {
		return invalid("CheckRun", "output.summary", "missing_field", "")
	}
	if err := cmp.Or(checkLength("CheckRun", "output.summary", *o.Summary, 0, maxOutputText),
		checkLength("CheckRun", "output.text", o.GetText(), 0, maxOutputText)); err != nil {
		return err
	}
	if n := len(o.Annotations); n > maxAnnotations {
		return invalid("CheckRun", "output.annotations", "invalid", fmt.Sprintf("No more than %d items are allowed; %d were supplied.", maxAnnotations, n))
	}
	for _, a := range o.Annotations {
		levels := []string{"notice", "warning", "failure"}
		switch {
		case a.GetPath() == "":
			return invalid("CheckRun", "output.annotations.path", "missing_field", "")
		case a.StartLine == nil || a.EndLine == nil:
			return invalid("CheckRun", "output.annotations.start_line", "missing_field", "")
		case a.GetEndLine() < a.GetStartLine():
			return invalid("CheckRun", "output.annotations.end_line", "invalid", "end_line is before start_line")
		case a.GetMessage() == "":
			return invalid("CheckRun", "output.annotations.message", "missing_field", "")
		case !slices.Contains(levels, a.GetAnnotationLevel()):
			return invalid("CheckRun", "output.annotations.annotation_level", "invalid", a.GetAnnotationLevel()+" is not included in the list")
		case (a.StartColumn != nil || a.EndColumn != nil) && a.GetStartLine() != a.GetEndLine():
			return invalid("CheckRun", "output.annotations.start_column", "invalid", "columns are for annotations of one line")
		}
	}
	return nil
}

func checkLength(resource, field, text string, least, most int) error {
	switch n := utf8.RuneCountInString(text); {
	case n < least:
		return invalid(resource, field, "missing_field", "")
	case n > most:
		return invalid(resource, field, "invalid", fmt.Sprintf("is too long (maximum is %d characters)", most))
	}
	return nil
}
