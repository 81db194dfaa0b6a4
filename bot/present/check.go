package present

import (
	"fmt"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates/report"
)

// A Check is one check run as it should be. GitHub takes 50 annotations at a
// time.
type Check struct {
	Name        string
	HeadSHA     string
	ExternalID  string // see ParseExternalID
	DetailsURL  string
	Status      string // queued, in_progress or completed
	Conclusion  string // success, failure, action_required or cancelled, once completed
	StartedAt   time.Time
	CompletedAt time.Time
	Title       string // plain text
	Summary     string // Markdown
	Text        string // Markdown
	Annotations []Annotation
	Actions     []Action
	// Digest is of everything but live progress and times: while it stays the same,
	// GitHub shows what matters.
	Digest string
}

// An Annotation is a message on lines of a file.
type Annotation struct {
	Path      string // from the repository's root
	StartLine int
	EndLine   int
	Level     string // notice, warning or failure
	Title     string
	Message   string
}

// An Action is a button.
type Action struct {
	Label       string
	Description string
	Identifier  string
}

const (
	queued     = "queued"
	inProgress = "in_progress"
	completed  = "completed"

	success        = "success"
	failure        = "failure"
	actionRequired = "action_required"
	cancelled      = "cancelled"
)

const (
	titleRunes    = 140 // what a commit status takes
	maxOutput     = 65_535
	maxComment    = 65_536
	runnerTitle   = "Runner: "
	notFromForks  = "Code from forks is not run here"
	noPolicyTitle = "No policy on the base branch yet"
)

// CommitStatus is the check as a commit status, for repositories where no App
// can write check runs. A required status blocks until it is a success, so that
// what waits for a person is pending, and what nobody works at is an error.
func (c Check) CommitStatus() (state, description string) {
	description = report.Clip(c.Title, titleRunes)
	switch {
	case c.Status != completed:
		return "pending", description
	case c.Conclusion == success:
		return "success", description
	case c.Conclusion == actionRequired && c.Title != notFromForks:
		return "pending", description
	case c.Conclusion == cancelled, strings.HasPrefix(c.Title, runnerTitle):
		return "error", description
	}
	return "failure", description
}

// externalID names what a check stands for, so that an event about it finds its
// way back.
func externalID(id change.ID, kernel string) string {
	if kernel == "" {
		return id.String()
	}
	return id.String() + "/" + kernel
}

// ParseExternalID is the change, and the kernel if it is one's own, that a check
// stands for.
func ParseExternalID(text string) (id change.ID, kernel string, err error) {
	before, kernel, _ := strings.Cut(text, "/")
	if id, err = change.ParseID(before); err != nil {
		return change.ID{}, "", fmt.Errorf("reading a check's external id: %w", err)
	}
	return id, kernel, nil
}
