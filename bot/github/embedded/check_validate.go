package embedded

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/google/go-github/v60/github"
)

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
