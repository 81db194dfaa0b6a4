package actions

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// An environ is what GitHub tells a job.
type environ struct {
	eventName, eventPath string
	repo                 string // owner/name
	token                string
	apiURL, serverURL    string
	runID                string
	runAttempt           int // how often somebody has started this very job
	runner               string
	temp                 string
	summary, output      string // files; empty outside of a job
}

// gated are the events that lead to a verdict. The second is the first with the
// base branch's own workflow.
var gated = []string{"pull_request", "pull_request_target", "merge_group", "issue_comment", "pull_request_review", "pull_request_review_comment"}

func readEnv(getenv func(string) string) (environ, error) {
	e := environ{
		eventName: getenv("GITHUB_EVENT_NAME"), eventPath: getenv("GITHUB_EVENT_PATH"), repo: getenv("GITHUB_REPOSITORY"),
		token: strings.TrimSpace(cmp.Or(getenv("INPUT_TOKEN"), getenv("GITHUB_TOKEN"))), apiURL: getenv("GITHUB_API_URL"),
		serverURL: strings.TrimRight(getenv("GITHUB_SERVER_URL"), "/"), runID: getenv("GITHUB_RUN_ID"), runner: cmp.Or(getenv("RUNNER_NAME"), "this runner"),
		temp: cmp.Or(getenv("RUNNER_TEMP"), os.TempDir()), summary: getenv("GITHUB_STEP_SUMMARY"), output: getenv("GITHUB_OUTPUT"),
	}
	e.runAttempt, _ = strconv.Atoi(getenv("GITHUB_RUN_ATTEMPT")) // 0 where it does not say
	switch {
	case e.eventName == "" || e.eventPath == "" || e.repo == "":
		return e, strict.Mistakef("kernelgate: --github works in a job of GitHub Actions: GITHUB_EVENT_NAME, GITHUB_EVENT_PATH and GITHUB_REPOSITORY are not all set (elsewhere, leave --github out)")
	case !slices.Contains(gated, e.eventName):
		return e, strict.Mistakef("kernelgate: nothing is gated on the event %q (use on: pull_request, merge_group, issue_comment, pull_request_review and pull_request_review_comment)", e.eventName)
	case e.token == "":
		return e, strict.Mistakef("kernelgate: no token: add this to the workflow's step\n\n    env:\n      GITHUB_TOKEN: ${{ github.token }}")
	}
	return e, nil
}

func (e environ) event() (webhook.Event, error) {
	body, err := os.ReadFile(e.eventPath)
	if err != nil {
		return nil, strict.Mistakef("kernelgate: reading the event: %w (GITHUB_EVENT_PATH names its file)", err)
	}
	name := e.eventName
	if name == "pull_request_target" {
		name = "pull_request"
	}
	event, err := webhook.Decode(name, body)
	if err != nil {
		return nil, strict.Mistakef("kernelgate: %w (GITHUB_EVENT_PATH does not hold the event that GITHUB_EVENT_NAME says)", err)
	}
	return event, nil
}

// runURL is the page of the job's run.
func (e environ) runURL() string {
	if e.serverURL == "" || e.runID == "" {
		return ""
	}
	return e.serverURL + "/" + e.repo + "/actions/runs/" + e.runID
}
