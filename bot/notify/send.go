package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/gates/result"
)

// Limits of the attempts to send.
const (
	timeout    = 10 * time.Second
	tries      = 8
	firstPause = time.Second
	lastPause  = time.Minute
)

// Headers of the plain format.
const (
	HeaderEvent    = "X-Kernelgate-Event"
	HeaderDelivery = "X-Kernelgate-Delivery" // the same for every attempt
	// HeaderSignature has sha256= followed by the HMAC of the body, in hex.
	HeaderSignature = "X-Kernelgate-Signature-256"
)

// News is one verdict in the plain format: where it comes from, and its result in the form that all
// programs read.
type News struct {
	ID      string         `json:"id"`
	Event   string         `json:"event"`
	Repo    string         `json:"repository"`
	Folder  string         `json:"folder"`
	Change  string         `json:"change"`
	Pull    int            `json:"pull_request,omitempty"`
	Title   string         `json:"title,omitempty"`
	Attempt int            `json:"attempt"`
	Job     string         `json:"job"`
	Page    string         `json:"page,omitempty"`
	At      time.Time      `json:"at"`
	Result  *result.Result `json:"result"`

	line, head string
}

// send retries until the event is delivered, is refused, or has used up its attempts.
func (t *Teller) send(ctx context.Context, h Hook, n *News) {
	wait := firstPause
	for try := 1; ; try++ {
		after, err := t.post(ctx, h, n)
		if err == nil || ctx.Err() != nil {
			return
		}
		if _, final := errors.AsType[*refusal](err); final || try == tries {
			t.Log.Error("a notification was not taken", "hook", h.Name, "news", n.ID, "tries", try, "err", err)
			return
		}
		t.Log.Warn("a notification was not taken; it is sent again", "hook", h.Name, "news", n.ID, "err", err)
		if t.Pause(ctx, min(max(wait, after), lastPause)) != nil {
			return
		}
		wait *= 2
	}
}

// A refusal is an answer that will not change.
type refusal struct{ status string }

func (r *refusal) Error() string {
	return "it answers " + r.status + " (look at url_file)"
}

// post sends once. Its error does not contain the address.
func (t *Teller) post(ctx context.Context, h Hook, n *News) (after time.Duration, err error) {
	body, err := h.body(n)
	if err != nil {
		return 0, &refusal{err.Error()}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return 0, &refusal{"nothing, for its address cannot be read"}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "kernelgate")
	if !h.Slack {
		r.Header.Set(HeaderEvent, n.Event)
		r.Header.Set(HeaderDelivery, n.ID)
		if len(h.Secret) > 0 {
			// This is the format of GitHub's webhooks.
			r.Header.Set(HeaderSignature, webhook.Sign(h.Secret, body))
		}
	}
	answer, err := t.client.Do(r)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err // without the address
		}
		return 0, err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16)) // so that the connection can be reused
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		return 0, nil
	case code == http.StatusTooManyRequests || code >= 500:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return time.Duration(min(max(seconds, 0), 3600)) * time.Second, fmt.Errorf("it answers %s", answer.Status)
	}
	return 0, &refusal{answer.Status}
}

func (h Hook) body(n *News) ([]byte, error) {
	if h.Slack {
		return json.Marshal(map[string]string{"text": n.slack()})
	}
	return json.Marshal(n)
}

// slackText returns a text for Slack in one line of limited length. It contains no links and
// notifies nobody.
func slackText(text string) string {
	const most = 500
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\n", " ", "\r", " ").Replace(text)
}

// slack returns the event in one line.
func (n *News) slack() string {
	mark := map[gates.Outcome]string{gates.Pass: ":white_check_mark:", gates.Defer: ":double_vertical_bar:", gates.Error: ":warning:"}[n.Result.Outcome]
	if n.Result.Outcome == gates.Defer && n.Result.Reason.ProvenWrong() {
		mark = ":x:"
	}
	where := slackText(n.Repo)
	if n.Pull > 0 {
		where += fmt.Sprintf(" #%d", n.Pull)
	} else {
		where += " " + report.Short(n.head)
	}
	if n.Page != "" {
		where = "<" + n.Page + "|" + strings.ReplaceAll(where, "|", "∣") + ">"
	}
	if n.Event == Regression {
		where = "on the default branch of " + where
	}
	text := mark + " " + slackText(n.line) + " — " + where
	if n.Title != "" && n.Pull > 0 {
		text += " " + slackText(n.Title)
	}
	return text
}
