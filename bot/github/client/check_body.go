package client

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/policies/ident"
)

// These are GitHub's limits for a check run. Long texts are counted in bytes, short ones in
// characters.
const (
	MaxCheckText       = 65535 // bytes
	maxActionLabel     = 20
	maxActionID        = 20
	maxActionText      = 40
	maxAnnotationTitle = 255
	maxAnnotationBytes = 64 << 10

	maxActions            = 3
	annotationsPerRequest = 50
)

// bodies returns the first request, which carries everything, and further requests for the
// annotations that exceed the limit of one request.
func (c Check) bodies() (first checkBody, rest []checkBody) {
	first = checkBody{Name: c.Name, HeadSHA: c.HeadSHA, ExternalID: c.ExternalID, DetailsURL: c.DetailsURL, Status: c.Status, Conclusion: c.Conclusion,
		StartedAt: stamp(c.StartedAt), CompletedAt: stamp(c.CompletedAt)}
	for _, a := range c.Actions {
		first.Actions = append(first.Actions, github.CheckRunAction(a))
	}
	if c.Title == "" {
		return first, nil
	}
	first.Output = &checkOutput{Title: c.Title, Summary: c.Summary, Text: c.Text}
	for batch := range slices.Chunk(c.Annotations[c.AnnotationsSent:], annotationsPerRequest) {
		if first.Output.Annotations == nil {
			first.Output.Annotations = batch
			continue
		}
		rest = append(rest, checkBody{Name: c.Name, Output: &checkOutput{Title: c.Title, Summary: c.Summary, Text: c.Text, Annotations: batch}})
	}
	return first, rest
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

var (
	checkStatuses    = []string{"queued", "in_progress", "completed"}
	checkConclusions = []string{"action_required", "cancelled", "failure", "neutral", "success", "skipped", "timed_out"}
	annotationLevels = []string{"notice", "warning", "failure"}
)

// validate refuses a check run that GitHub would refuse, with a message that names the field.
func (c Check) validate(create bool) error {
	completed := c.Status == "completed"
	switch {
	case create && c.Name == "":
		return errors.New("a check run needs a name")
	case c.Status != "" && !slices.Contains(checkStatuses, c.Status):
		return fmt.Errorf("%q is not a check run's status; use one of %s", c.Status, strings.Join(checkStatuses, ", "))
	case completed && !slices.Contains(checkConclusions, c.Conclusion):
		return fmt.Errorf("%q is not a conclusion; use one of %s", c.Conclusion, strings.Join(checkConclusions, ", "))
	case !completed && c.Conclusion != "":
		return fmt.Errorf("the conclusion %s needs the status completed", c.Conclusion)
	case !completed && !c.CompletedAt.IsZero():
		return errors.New("a time of completion needs the status completed")
	case c.Title == "" && (c.Summary != "" || c.Text != "" || len(c.Annotations) > 0), c.Title != "" && c.Summary == "":
		return errors.New("a check run's output needs both title and summary")
	case c.AnnotationsSent < 0 || c.AnnotationsSent > len(c.Annotations):
		return fmt.Errorf("%d annotations are said to be sent of %d; give all, old and new", c.AnnotationsSent, len(c.Annotations))
	case len(c.Actions) > maxActions:
		return fmt.Errorf("%d buttons; GitHub shows %d", len(c.Actions), maxActions)
	}
	if create {
		if err := validSHA(c.HeadSHA); err != nil {
			return err
		}
	}
	if err := cmp.Or(withinBytes("the summary", c.Summary, MaxCheckText), withinBytes("the text", c.Text, MaxCheckText), webAddress(c.DetailsURL)); err != nil {
		return err
	}
	for _, a := range c.Actions {
		if err := cmp.Or(within("a button's label", a.Label, 1, maxActionLabel), within("a button's description", a.Description, 1, maxActionText),
			within("a button's identifier", a.Identifier, 1, maxActionID)); err != nil {
			return err
		}
	}
	for i, a := range c.Annotations {
		if err := a.validate(); err != nil {
			return fmt.Errorf("annotation %d on %q: %w", i, a.Path, err)
		}
	}
	return nil
}

func (a Annotation) validate() error {
	switch {
	case a.Path == "" || strings.HasPrefix(a.Path, "/"):
		return errors.New("the path must be relative to the repository")
	case a.StartLine < 1 || a.EndLine < a.StartLine:
		return fmt.Errorf("lines %d to %d are no range", a.StartLine, a.EndLine)
	case (a.StartColumn != 0 || a.EndColumn != 0) && a.StartLine != a.EndLine:
		return errors.New("columns are for annotations of one line")
	case a.StartColumn < 0 || a.EndColumn < 0 || a.EndColumn != 0 && a.EndColumn < a.StartColumn:
		return fmt.Errorf("columns %d to %d are no range", a.StartColumn, a.EndColumn)
	case !slices.Contains(annotationLevels, a.Level):
		return fmt.Errorf("%q is not a level; use one of %s", a.Level, strings.Join(annotationLevels, ", "))
	case a.Message == "":
		return errors.New("the message is empty")
	}
	return cmp.Or(withinBytes("the message", a.Message, maxAnnotationBytes), withinBytes("the message's details", a.Full, maxAnnotationBytes),
		within("the title", a.Title, 0, maxAnnotationTitle))
}

// withinBytes is for texts that GitHub counts in bytes: a text of 30,000 characters may be too
// long.
func withinBytes(what, text string, most int) error {
	if len(text) > most {
		return fmt.Errorf("%s has %d bytes, GitHub takes %d; shorten it", what, len(text), most)
	}
	return nil
}

// within counts characters, as GitHub does for short texts.
func within(what, text string, least, most int) error {
	switch n := utf8.RuneCountInString(text); {
	case n < least:
		return fmt.Errorf("%s is empty", what)
	case n > most:
		return fmt.Errorf("%s has %d characters, GitHub takes %d; shorten it", what, n, most)
	}
	return nil
}

func webAddress(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%q is not a web address", text)
	}
	return nil
}

func validSHA(sha string) error {
	if !ident.IsCommit(sha) {
		return fmt.Errorf("%q is not a full commit SHA", sha)
	}
	return nil
}
