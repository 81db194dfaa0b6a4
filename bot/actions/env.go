package actions

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// An environ is the environment that GitHub gives a job.
type environ struct {
	eventName, eventPath string
	repo                 string // owner/name
	token                string
	apiURL, serverURL    string
	runID                string
	runAttempt           int // how often this job was started
	runner               string
	temp                 string
	summary, output      string // files; empty outside of a job
	report               string // reportStatus or reportChecks
}

// The values of report say how a job reports verdicts. Commit statuses are the default. GitHub puts
// a check run that a workflow creates into an arbitrary check suite of the commit, so it may appear
// among the jobs of an unrelated workflow, and only the App that created it can update it. A status
// belongs to no suite. GitHub shows the newest status of a name, from any author, and the status
// links to the job.
const (
	reportStatus = "status"
	reportChecks = "checks"
)

// gated are the events that lead to a verdict. pull_request_target is pull_request with the
// workflow of the base branch.
var gated = []string{"pull_request", "pull_request_target", "merge_group", "issue_comment", "pull_request_review", "pull_request_review_comment"}

func readEnv(getenv func(string) string) (environ, error) {
	e := environ{
		eventName: getenv("GITHUB_EVENT_NAME"), eventPath: getenv("GITHUB_EVENT_PATH"), repo: getenv("GITHUB_REPOSITORY"),
		token: strings.TrimSpace(cmp.Or(getenv("INPUT_TOKEN"), getenv("GITHUB_TOKEN"))), apiURL: getenv("GITHUB_API_URL"),
		serverURL: strings.TrimRight(getenv("GITHUB_SERVER_URL"), "/"), runID: getenv("GITHUB_RUN_ID"), runner: cmp.Or(getenv("RUNNER_NAME"), "this runner"),
		temp: cmp.Or(getenv("RUNNER_TEMP"), os.TempDir()), summary: getenv("GITHUB_STEP_SUMMARY"), output: getenv("GITHUB_OUTPUT"),
		report: cmp.Or(strings.TrimSpace(getenv("KERNELGATE_REPORT")), reportStatus),
	}
	e.runAttempt, _ = strconv.Atoi(getenv("GITHUB_RUN_ATTEMPT")) // 0 if not set
	switch {
	case e.eventName == "" || e.eventPath == "" || e.repo == "":
		return e, usage.Errorf("kernelgate: --github works in a job of GitHub Actions: GITHUB_EVENT_NAME, GITHUB_EVENT_PATH and GITHUB_REPOSITORY are not all set (elsewhere, leave --github out)")
	case !slices.Contains(gated, e.eventName):
		return e, usage.Errorf("kernelgate: nothing is gated on the event %q (use on: pull_request, merge_group, issue_comment, pull_request_review and pull_request_review_comment)", e.eventName)
	case e.report != reportStatus && e.report != reportChecks:
		return e, usage.Errorf("kernelgate: KERNELGATE_REPORT is %q: write %q for commit statuses (the default) or %q for check runs", e.report, reportStatus, reportChecks)
	case e.token == "":
		return e, usage.Errorf("kernelgate: no token: add this to the workflow's step\n\n    env:\n      GITHUB_TOKEN: ${{ github.token }}")
	}
	return e, nil
}

// event returns the event that started the job. relabelled is true if the event is only about
// labels or the title of a pull request, by which a policy selects rules.
func (e environ) event() (event webhook.Event, relabelled bool, err error) {
	body, err := os.ReadFile(e.eventPath)
	if err != nil {
		return nil, false, usage.Errorf("kernelgate: reading the event: %w (GITHUB_EVENT_PATH names its file)", err)
	}
	name := e.eventName
	if name == "pull_request_target" {
		name = "pull_request"
	}
	event, err = webhook.Decode(name, body)
	if err != nil {
		return nil, false, usage.Errorf("kernelgate: %w (GITHUB_EVENT_PATH does not hold the event that GITHUB_EVENT_NAME says)", err)
	}
	var told struct {
		Action  string
		Changes struct{ Base json.RawMessage }
	}
	if name == "pull_request" && json.Unmarshal(body, &told) == nil {
		relabelled = told.Action == "labeled" || told.Action == "unlabeled" || told.Action == "edited" && len(told.Changes.Base) == 0
	}
	return event, relabelled, nil
}

// runsURL returns the prefix of the pages of all workflow runs.
func (e environ) runsURL() string { return e.serverURL + "/" + e.repo + "/actions/runs/" }

// pullPage returns the page of the job's run, as GitHub links to it from a pull request. A status
// has no field for its subject, so its link contains the pull request and the digest of the rules.
// Accounts that may write statuses are trusted; authors of comments are not.
func (e environ) pullPage(number int, rules string) string {
	if e.runURL() == "" {
		return ""
	}
	return fmt.Sprintf("%s?pr=%d&rules=%s", e.runURL(), number, rules)
}

// pullOf parses the pull request and the rules from a pullPage.
func (e environ) pullOf(page string) (number int, rules string, ok bool) {
	u, err := url.Parse(page)
	if err != nil || !strings.HasPrefix(page, e.runsURL()) {
		return 0, "", false
	}
	number, err = strconv.Atoi(u.Query().Get("pr"))
	return number, u.Query().Get("rules"), err == nil && number > 0
}

// runURL returns the page of the job's run.
func (e environ) runURL() string {
	if e.serverURL == "" || e.runID == "" {
		return ""
	}
	return e.runsURL() + e.runID
}
