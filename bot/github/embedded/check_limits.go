package embedded

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"unicode/utf8"

	"github.com/google/go-github/v60/github"
)

// These are GitHub's limits for a check run. Long texts are counted in bytes, short ones in
// characters.
const (
	maxOutputBytes     = 65535
	maxAnnotations     = 50 // in one request
	maxAnnotationBytes = 64 << 10
	maxAnnotationTitle = 255
	maxActions         = 3
)

var (
	checkStatuses    = []string{"queued", "in_progress", "completed"} // GitHub Actions has more
	checkConclusions = []string{"action_required", "cancelled", "failure", "neutral", "success", "skipped", "timed_out"}
	annotationLevels = []string{"notice", "warning", "failure"}
)

// validate refuses a check run that GitHub would refuse.
func (in checkInput) validate() error {
	switch {
	case in.Status != nil && !slices.Contains(checkStatuses, *in.Status):
		return invalid("CheckRun", "status", "invalid", *in.Status+" is not included in the list")
	case in.Conclusion != nil && !slices.Contains(checkConclusions, *in.Conclusion):
		return invalid("CheckRun", "conclusion", "invalid", *in.Conclusion+" is not included in the list")
	case in.Status != nil && *in.Status == "completed" && in.Conclusion == nil:
		return invalid("CheckRun", "conclusion", "missing_field", "a completed check run needs a conclusion")
	case in.Conclusion != nil && in.Status != nil && *in.Status != "completed":
		return invalid("CheckRun", "status", "invalid", "a check run with a conclusion is completed")
	case in.CompletedAt != nil && in.Conclusion == nil:
		return invalid("CheckRun", "conclusion", "missing_field", "a check run with a completed_at needs a conclusion")
	case in.DetailsURL != nil && !isWebAddress(*in.DetailsURL):
		return invalid("CheckRun", "details_url", "invalid", "details_url must use http or https scheme")
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
	if err := cmp.Or(checkBytes("CheckRun", "output.summary", *o.Summary, maxOutputBytes),
		checkBytes("CheckRun", "output.text", o.GetText(), maxOutputBytes)); err != nil {
		return err
	}
	if n := len(o.Annotations); n > maxAnnotations {
		return invalid("CheckRun", "output.annotations", "invalid", fmt.Sprintf("No more than %d items are allowed; %d were supplied.", maxAnnotations, n))
	}
	for _, a := range o.Annotations {
		if err := validateAnnotation(a); err != nil {
			return err
		}
	}
	return nil
}

func validateAnnotation(a *github.CheckRunAnnotation) error {
	const at = "output.annotations."
	switch {
	case a.GetPath() == "":
		return invalid("CheckRun", at+"path", "missing_field", "")
	case a.StartLine == nil || a.EndLine == nil:
		return invalid("CheckRun", at+"start_line", "missing_field", "")
	case a.GetStartLine() < 1:
		return invalid("CheckRun", at+"start_line", "invalid", "lines start at 1")
	case a.GetEndLine() < a.GetStartLine():
		return invalid("CheckRun", at+"end_line", "invalid", "end_line is before start_line")
	case a.GetMessage() == "":
		return invalid("CheckRun", at+"message", "missing_field", "")
	case !slices.Contains(annotationLevels, a.GetAnnotationLevel()):
		return invalid("CheckRun", at+"annotation_level", "invalid", a.GetAnnotationLevel()+" is not included in the list")
	case (a.StartColumn != nil || a.EndColumn != nil) && a.GetStartLine() != a.GetEndLine():
		return invalid("CheckRun", at+"start_column", "invalid", "columns are for annotations of one line")
	case a.StartColumn != nil && a.GetStartColumn() < 1, a.EndColumn != nil && a.GetEndColumn() < max(a.GetStartColumn(), 1):
		return invalid("CheckRun", at+"start_column", "invalid", "columns start at 1, and the last is not before the first")
	}
	return cmp.Or(checkBytes("CheckRun", at+"message", a.GetMessage(), maxAnnotationBytes), checkBytes("CheckRun", at+"raw_details", a.GetRawDetails(), maxAnnotationBytes),
		checkLength("CheckRun", at+"title", a.GetTitle(), 0, maxAnnotationTitle))
}

func isWebAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// checkBytes refuses a text that is longer than most bytes.
func checkBytes(resource, field, text string, most int) error {
	if len(text) > most {
		return invalid(resource, field, "invalid", fmt.Sprintf("is too long (maximum is %d bytes)", most))
	}
	return nil
}

// checkLength refuses a text with fewer than least or more than most characters.
func checkLength(resource, field, text string, least, most int) error {
	switch n := utf8.RuneCountInString(text); {
	case n < least:
		return invalid(resource, field, "missing_field", "")
	case n > most:
		return invalid(resource, field, "invalid", fmt.Sprintf("is too long (maximum is %d characters)", most))
	}
	return nil
}
