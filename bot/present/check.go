package present

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/gates/report"
)

// A Check is one check run as it should be, and a digest of everything in it but live
// progress and times: while that stays the same, GitHub shows what matters.
type Check struct {
	client.Check
	Digest string
	Mark   string `json:"-"` // what must be told even while it is unfinished
	State  string `json:"-"` // as a commit status: pending, success, failure or error
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
	noPolicyTitle = "No policy on the base branch yet"
	readingTitle  = "Reading the change"
)

// CommitStatus is the check as a commit status, for repositories where no App
// can write check runs.
func (c Check) CommitStatus() (state, description string) {
	description = report.Clip(c.Title, titleRunes)
	if c.Status != completed && c.Mark == "" {
		description = "Queued or being measured: the verdict will appear here" // nobody tells a status how far it is
	}
	return c.State, description
}

// externalID names what a check stands for, so that an event about it finds its
// way back.
func externalID(id change.ID, key change.KernelKey) string {
	text := id.String()
	if key.Device != "" {
		text += "@" + key.Device
	}
	if key.Folder != "" {
		text += "/" + key.Folder
	}
	return text
}

// ParseExternalID is the change, and the key of a run if it is one's own, that a check
// stands for.
func ParseExternalID(text string) (id change.ID, key change.KernelKey, err error) {
	before, folder, _ := strings.Cut(text, "/")
	before, device, _ := strings.Cut(before, "@")
	if id, err = change.ParseID(before); err != nil {
		return change.ID{}, change.KernelKey{}, fmt.Errorf("reading a check's external id: %w", err)
	}
	return id, change.KernelKey{Folder: folder, Device: device}, nil
}
