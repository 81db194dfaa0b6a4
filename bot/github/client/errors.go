package client

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"
)

var (
	// ErrUnknown means that a write may or may not have happened: it was sent, but the answer was
	// lost or does not say. Read the current state before you write again.
	ErrUnknown = errors.New("it may or may not have happened; look before doing it again")

	// ErrLimited means that a rate limit requires a longer wait than the context allows. Nothing
	// was done. Error.RetryAt says when to retry.
	ErrLimited = errors.New("a rate limit asks for more patience than there is time")

	// ErrShed means that there was no room for a write that is not urgent. Nothing was done.
	// Error.RetryAt says when there may be room.
	ErrShed = errors.New("the writes that GitHub allows are kept for verdicts")

	// ErrUnavailable means that the bot cannot work in the repository at present: it is archived or
	// disabled, the App is not installed there or suspended, or an IP allow list refuses this
	// machine. Only users can change that, at GitHub.
	ErrUnavailable = errors.New("the repository takes no part: it is archived or disabled, or the App is not installed there or is suspended, or an IP allow list refuses this machine")

	// ErrNeedsApp means that only a GitHub App can do this.
	ErrNeedsApp = errors.New("only a GitHub App can do this; configure an App, or name the repositories in the configuration")
)

// An Error describes the failure of one operation.
type Error struct {
	Op      string // such as "create a check run"
	Repo    string // owner/name, or empty
	Status  int    // of GitHub's answer, 0 if there was none
	Message string // GitHub's message
	Hint    string // what to do next
	RetryAt time.Time
	Err     error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Repo != "" {
		b.WriteString(" in " + e.Repo)
	}
	if inner, ok := errors.AsType[*Error](e.Err); ok {
		return b.String() + ": " + inner.Error()
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, ": GitHub answered %d: %s", e.Status, e.Message)
		if errors.Is(e.Err, ErrUnknown) {
			fmt.Fprintf(&b, "; %v", ErrUnknown)
		}
	} else if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// NotFound reports whether GitHub answered 404.
func NotFound(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Status == http.StatusNotFound
}

// Deleted reports whether GitHub answered that an issue or a comment does not exist any more.
func Deleted(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && (e.Status == http.StatusNotFound || e.Status == http.StatusGone && strings.Contains(e.Message, "deleted"))
}

// IsPermanent reports whether GitHub refused permanently: it understood the request, will not
// execute it, and did not. Rate limits, faults and expired tokens are not permanent.
func IsPermanent(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok || errors.Is(err, ErrUnknown) {
		return false
	}
	switch e.Status {
	case http.StatusForbidden, http.StatusNotFound, http.StatusGone, http.StatusUnprocessableEntity, http.StatusUnavailableForLegalReasons:
		return true
	}
	return errors.Is(err, ErrUnavailable)
}

// A limitedError says when a wait would end that the client did not start.
type limitedError struct {
	until  time.Time
	spared bool
}

func (e *limitedError) Error() string {
	return fmt.Sprintf("%v: try again at %s", e.kind(), e.until.UTC().Format(time.RFC3339))
}
func (e *limitedError) Is(target error) bool { return target == e.kind() }

func (e *limitedError) kind() error {
	if e.spared {
		return ErrShed
	}
	return ErrLimited
}

// explain turns err into an Error that names the operation.
func (h *GitHub) explain(o op, repo string, c *call, err error) error {
	if err == nil {
		return nil
	}
	if inner, ok := errors.AsType[*Error](err); ok { // such as a failed request for a token
		return &Error{Op: o.name, Repo: repo, Status: inner.Status, Message: inner.Message, Hint: inner.Hint, RetryAt: inner.RetryAt, Err: err}
	}
	e := &Error{Op: o.name, Repo: repo, Err: err}
	if limited, ok := errors.AsType[*limitedError](err); ok {
		e.RetryAt = limited.until
	}
	if refusal, ok := errors.AsType[*github.ErrorResponse](err); ok && refusal.Response != nil {
		e.Status, e.Message = refusal.Response.StatusCode, words(refusal)
		e.Hint = h.hint(o, repo, e.Status, e.Message)
		if away(e.Status, e.Message) {
			e.Err = fmt.Errorf("%w (%w)", ErrUnavailable, err)
		}
	}
	if c != nil && c.uncertain.Load() {
		e.Err = fmt.Errorf("%w (%w)", ErrUnknown, e.Err)
	}
	return e
}

// allowList occurs in GitHub's refusal of a caller whose address is not on an organisation's IP
// allow list.
const allowList = "IP allow list"

// away reports whether a refusal concerns the whole repository or installation.
func away(status int, message string) bool {
	if status == http.StatusUnavailableForLegalReasons {
		return true
	}
	return status == http.StatusForbidden && slices.ContainsFunc([]string{"archived", "suspended", "access blocked", "repository is disabled", "Repository disabled", allowList},
		func(sign string) bool { return strings.Contains(message, sign) })
}

// words returns GitHub's message with the details of a failed validation.
func words(r *github.ErrorResponse) string {
	text := r.Message
	if text == "" {
		text = http.StatusText(r.Response.StatusCode)
	}
	for _, e := range r.Errors {
		detail := strings.Trim(strings.Join([]string{e.Field, e.Code, e.Message}, " "), " ")
		if detail != "" {
			text += " (" + detail + ")"
		}
	}
	return text
}

func (h *GitHub) hint(o op, repo string, status int, message string) string {
	isApp := h.app != nil
	switch status {
	case http.StatusUnauthorized:
		switch {
		case isApp && (strings.Contains(message, "claim") || strings.Contains(message, "assertion")):
			return "set this machine's clock"
		case isApp:
			return "check the App's id and private key"
		}
		return "the token is wrong, expired or revoked: make a new one"
	case http.StatusForbidden:
		switch {
		case strings.Contains(message, allowList):
			return "add this machine's address to the IP allow list, in the organisation's security settings"
		case o.permission == "":
			return ""
		case h.opt.Checks:
			return fmt.Sprintf("grant %q under \"permissions\" in the workflow", o.permission)
		case isApp:
			return fmt.Sprintf("grant the permission %q, and accept it in the installation", o.permission)
		}
		return fmt.Sprintf("give the token the scope \"repo\" or the permission %q, and its owner write access", o.permission)
	case http.StatusGone:
		if strings.Contains(message, "Issues are disabled") {
			return "turn issues on in the settings of " + repo
		}
	case http.StatusNotFound:
		switch {
		case strings.Contains(message, "Integration not found"):
			return "check the App's id"
		case repo == "":
			return ""
		case isApp:
			return "check that it exists and that the App is installed on " + repo
		}
		return "check that it exists and that the token may see " + repo
	}
	return ""
}
