package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/client"
)

// An app holds the secrets of a new App, which GitHub shows only once.
type app struct {
	ID            int64  `json:"id"`
	Slug          string `json:"slug"`
	HTMLURL       string `json:"html_url"`
	PEM           string `json:"pem"`
	WebhookSecret string `json:"webhook_secret"`
}

// errSpent means that the code can never be used again.
var errSpent = errors.New("GitHub refuses the code: the code was used already or is older than an hour: start again")

const exchangeTimeout = 30 * time.Second

var slugPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// exchange sends the code to GitHub and receives the App's secrets. Once begun, it runs to its end
// in spite of interrupts: the code is good for one exchange, and the answer exists nowhere else.
// Errors do not contain the code.
func (j *job) exchange(ctx context.Context, code string) (app, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchangeTimeout)
	defer cancel()
	client := github.NewClient(&http.Client{
		Transport:     j.opt.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
	client.BaseURL, client.UserAgent = j.api, "kernelgate"
	config, answer, err := client.Apps.CompleteAppManifest(ctx, code)
	if err != nil {
		return app{}, j.refusal(answer, err)
	}
	made := app{ID: config.GetID(), Slug: config.GetSlug(), HTMLURL: config.GetHTMLURL(), PEM: config.GetPEM(), WebhookSecret: config.GetWebhookSecret()}
	// Print and link to addresses of GitHub only.
	page, err := url.Parse(made.HTMLURL)
	if !slugPattern.MatchString(made.Slug) {
		made.Slug = ""
	}
	if err != nil || page.Scheme != j.web.Scheme || page.Host != j.web.Host {
		made.HTMLURL = j.web.String() + "/apps/" + made.Slug
	}
	return made, nil
}

func (j *job) refusal(answer *github.Response, err error) error {
	switch wire, ok := errors.AsType[*url.Error](err); {
	case answer == nil && ok:
		return fmt.Errorf("asking %s for the App's secrets: %w", j.api.Host, wire.Err)
	case answer == nil:
		return fmt.Errorf("asking %s for the App's secrets: no answer", j.api.Host)
	case answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusUnprocessableEntity:
		return errSpent
	}
	return fmt.Errorf("asking %s for the App's secrets: it answers %s", j.api.Host, answer.Status)
}

// check reports whether the bot could work with GitHub's answer.
func (a app) check() error {
	if _, err := client.NewApp(a.ID, []byte(a.PEM), client.Options{}); err != nil {
		return fmt.Errorf("GitHub's answer: %w", err)
	}
	if len(a.WebhookSecret) < 16 {
		return errors.New("GitHub's answer has no webhook secret")
	}
	return nil
}
