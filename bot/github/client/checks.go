package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"
)

// A Check is the desired state of a check run. Zero fields are not sent, so an update leaves them
// unchanged.
type Check struct {
	Name, HeadSHA          string // HeadSHA cannot be updated
	ExternalID             string
	DetailsURL             string
	Status                 string // queued, in_progress, completed
	Conclusion             string // only for a completed check run
	StartedAt, CompletedAt time.Time
	Title, Summary, Text   string // set both Title and Summary or neither
	Annotations            []Annotation
	Actions                []Action

	// AnnotationsSent is the number of Annotations that GitHub already has. GitHub adds the
	// annotations of each update to the earlier ones. After a failure between requests,
	// ExistingCheck.Annotations has this number.
	AnnotationsSent int
}

// An Annotation marks lines of a file.
type Annotation struct {
	Path      string `json:"path"` // from the repository's root
	StartLine int    `json:"start_line"`
	EndLine   int    `json:"end_line"`
	// StartColumn is optional, and allowed only if the annotation covers one line.
	StartColumn int    `json:"start_column,omitempty"`
	EndColumn   int    `json:"end_column,omitempty"` // like StartColumn
	Level       string `json:"annotation_level"`     // notice, warning, failure
	Message     string `json:"message"`
	Title       string `json:"title,omitempty"`
	Full        string `json:"raw_details,omitempty"` // shown on demand
}

// An Action is a button on a completed check.
type Action struct{ Label, Description, Identifier string }

// An ExistingCheck is a check run at GitHub.
type ExistingCheck struct {
	ID                 int64
	Name               string
	App                string // slug of the App that created it; no other App can update it
	ExternalID         string
	Status, Conclusion string
	Title, Summary     string
	DetailsURL         string
	Annotations        int
}

const checksWrite = "Checks: read and write"

// checkBody is the body of both requests. The type that go-github has for updates lacks started_at.
type checkBody struct {
	Name        string                  `json:"name,omitempty"`
	HeadSHA     string                  `json:"head_sha,omitempty"`
	ExternalID  string                  `json:"external_id,omitempty"`
	DetailsURL  string                  `json:"details_url,omitempty"`
	Status      string                  `json:"status,omitempty"`
	Conclusion  string                  `json:"conclusion,omitempty"`
	StartedAt   string                  `json:"started_at,omitempty"`
	CompletedAt string                  `json:"completed_at,omitempty"`
	Output      *checkOutput            `json:"output,omitempty"`
	Actions     []github.CheckRunAction `json:"actions,omitempty"`
}

type checkOutput struct {
	Title       string       `json:"title"`
	Summary     string       `json:"summary"`
	Text        string       `json:"text,omitempty"`
	Annotations []Annotation `json:"annotations,omitempty"`
}

// CreateCheck creates a check run. If it fails after the check run was created, while annotations
// are still unsent, it returns the id together with the error.
func (h *GitHub) CreateCheck(ctx context.Context, repo string, c Check) (int64, error) {
	o := op{name: "create a check run", permission: checksWrite}
	if err := c.validate(true); err != nil {
		return 0, &Error{Op: o.name, Repo: repo, Err: err}
	}
	first, rest := c.bodies()
	var run github.CheckRun
	err := h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		return send(ctx, gh, "POST", fmt.Sprintf("repos/%s/%s/check-runs", owner, name), first, &run)
	})
	if err != nil {
		return 0, err
	}
	if slug := run.GetApp().GetSlug(); slug != "" {
		h.learn(slug + "[bot]")
	}
	return run.GetID(), h.updateCheck(ctx, repo, run.GetID(), rest)
}

// UpdateCheck updates a check run and adds the annotations that GitHub does not have yet. The first
// request carries the conclusion, because a verdict must not wait for its annotations.
func (h *GitHub) UpdateCheck(ctx context.Context, repo string, id int64, c Check) error {
	if err := c.validate(false); err != nil {
		return &Error{Op: "update a check run", Repo: repo, Err: err}
	}
	first, rest := c.bodies()
	first.HeadSHA = ""
	return h.updateCheck(ctx, repo, id, append([]checkBody{first}, rest...))
}

func (h *GitHub) updateCheck(ctx context.Context, repo string, id int64, bodies []checkBody) error {
	for _, body := range bodies {
		// Annotations accumulate, so a request with annotations is not repeatable. All other fields
		// are replaced.
		o := op{name: fmt.Sprintf("update check run %d", id), permission: checksWrite, repeatable: body.Output == nil || len(body.Output.Annotations) == 0}
		err := h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
			return send(ctx, gh, "PATCH", fmt.Sprintf("repos/%s/%s/check-runs/%d", owner, name, id), body, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ListChecks returns the check runs with a name on a commit, newest first. An App gets only its
// own. A workflow does not know its App before it has written something. Until then it gets the
// check runs of all Apps, and GitHub answers 403 if it updates one of another App.
func (h *GitHub) ListChecks(ctx context.Context, repo, sha, name string) ([]ExistingCheck, error) {
	o := op{name: "list the check runs of " + sha, permission: "Checks: read"}
	if err := validSHA(sha); err != nil {
		return nil, &Error{Op: o.name, Repo: repo, Err: err}
	}
	all := "all"
	opt := &github.ListCheckRunsOptions{CheckName: orNil(name), Filter: &all}
	if h.app != nil {
		opt.AppID = &h.app.id
	}
	var out []ExistingCheck
	err := h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		runs, err := pages(func(at github.ListOptions) ([]*github.CheckRun, *github.Response, error) {
			opt.ListOptions = at
			list, answer, err := gh.Checks.ListCheckRunsForRef(ctx, owner, name, sha, opt)
			if err != nil {
				return nil, answer, err
			}
			return list.CheckRuns, answer, nil
		})
		me := h.knownLogin()
		for _, r := range runs {
			app := r.GetApp().GetSlug()
			if h.app == nil && me != "" && app != "" && !strings.EqualFold(app+"[bot]", me) {
				continue
			}
			out = append(out, ExistingCheck{ID: r.GetID(), Name: r.GetName(), App: app, ExternalID: r.GetExternalID(), Status: r.GetStatus(), Conclusion: r.GetConclusion(),
				Title: r.GetOutput().GetTitle(), Summary: r.GetOutput().GetSummary(), DetailsURL: r.GetDetailsURL(), Annotations: r.GetOutput().GetAnnotationsCount()})
		}
		return err
	})
	slices.SortFunc(out, func(a, b ExistingCheck) int { return cmp.Compare(b.ID, a.ID) })
	return out, err
}

// send makes a request for which go-github has no method or lacks fields.
func send(ctx context.Context, gh *github.Client, method, path string, body, into any) error {
	rq, err := gh.NewRequest(method, path, body)
	if err != nil {
		return err
	}
	_, err = gh.Do(ctx, rq, into)
	return err
}

func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// A Status is a commit status. It replaces the check run if there is no App.
type Status struct {
	Context     string
	State       string // error, failure, pending, success
	Description string // truncated to 140 characters
	TargetURL   string
}

// maxStatusText is the limit of a status's description, in characters.
const maxStatusText = 140

var statusStates = []string{"error", "failure", "pending", "success"}

// SetStatus sets the status of a context on a commit.
func (h *GitHub) SetStatus(ctx context.Context, repo, sha string, s Status) error {
	// This is repeatable: the newest status of a context counts, and setting it twice has the same
	// effect.
	o := op{name: "set the status of " + sha, permission: "Commit statuses: read and write", repeatable: true}
	err := validSHA(sha)
	switch {
	case err != nil:
	case s.Context == "":
		err = fmt.Errorf("a status needs a context")
	case !slices.Contains(statusStates, s.State):
		err = fmt.Errorf("%q is not a status; use one of %s", s.State, strings.Join(statusStates, ", "))
	default:
		err = webAddress(s.TargetURL)
	}
	if err != nil {
		return &Error{Op: o.name, Repo: repo, Err: err}
	}
	return h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		text := cut(s.Description, maxStatusText)
		set, _, err := gh.Repositories.CreateStatus(ctx, owner, name, sha, &github.RepoStatus{Context: &s.Context, State: &s.State,
			Description: orNil(text), TargetURL: orNil(s.TargetURL)})
		h.learn(set.GetCreator().GetLogin())
		return err
	})
}

// cut truncates a text to most characters and ends a truncated text with an ellipsis.
func cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return strings.TrimRight(string(runes[:most-1]), " ") + "…"
}
