package serve

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/oauth2"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/controller"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/bot/submission"
	"github.com/kernelgate/kernelgate/runners"
)

// Pages is who may look at what was measured. What is not named is private.
type Pages struct {
	Public           []string     `yaml:"public" eg:"[owner/name]" default:"(none)" doc:"Repositories with public pages. A name means the repository that has it when the bot first sees it; owner/name@number means the repository with GitHub's number."`
	TokenFile        string       `yaml:"token_file" eg:"/etc/kernelgate/pages.token" doc:"File with a token that gives access to all pages."`
	ClientID         string       `yaml:"client_id" eg:"Iv23liAbCdEf" doc:"Client ID of the App, for login with GitHub. A user who can read a repository can then read its pages."`
	ClientSecretFile string       `yaml:"client_secret_file" eg:"/etc/kernelgate/client-secret" doc:"File with the client secret of the App."`
	Token            inlineSecret `yaml:"token" doc:"Refused: use token_file."`
	ClientSecret     inlineSecret `yaml:"client_secret" doc:"Refused: use client_secret_file."`
}

func (c *checker) checkPages() {
	c.publicRepositories()
	c.secretFile("pages.token_file", c.Pages.TokenFile)
	c.secretFile("pages.client_secret_file", c.Pages.ClientSecretFile)
	switch id, secret := c.Pages.ClientID, c.Pages.ClientSecretFile; {
	case id != "" && secret == "":
		c.at("pages.client_secret_file", "is required with client_id (make a secret on the App's page and write it into a file)")
	case id == "" && secret != "":
		c.at("pages.client_id", "is required with client_secret_file (write the client ID on the App's page)")
	case id != "" && c.URL == "":
		c.at("url", "is required for login with GitHub, which redirects users to it (write e.g. https://kernelgate.example.com)")
	}
}

// publicRepositories checks the names, each with or without GitHub's number.
func (c *checker) publicRepositories() {
	var names []string
	for i, entry := range c.Pages.Public {
		name, number, numbered := strings.Cut(entry, "@")
		if id, err := strconv.ParseInt(number, 10, 64); numbered && (err != nil || id <= 0 || strconv.FormatInt(id, 10) != number) {
			c.item("pages.public", i, "%q has no number of a repository after the @ (write owner/name, or owner/name@123456 with the id that GitHub's API has for it)", entry)
		}
		names = append(names, name)
	}
	c.repositories("pages.public", names)
}

// guard is who may read which pages.
func (s *Server) guard() (*pages.Guard, error) {
	key, err := s.sessionKey()
	if err != nil {
		return nil, err
	}
	g := &pages.Guard{
		Key: key, Public: s.opt.Pages.Public, Token: s.opt.Secrets.Pages, Secure: strings.HasPrefix(s.opt.Config.URL, "https://"),
		Log: s.log, Now: s.opt.Now,
		CanRead: func(ctx context.Context, repo ledger.RepoName, user pages.User) (bool, error) {
			role, id, err := s.Client.PermissionByID(ctx, repo.ID, repo.Name, user.Login)
			if e, ok := errors.AsType[*client.Error](err); ok && e.Status == http.StatusNotFound {
				return false, nil
			}
			return err == nil && id == user.ID && role != "" && role != "none", err
		},
	}
	if s.opt.Pages.ClientID == "" {
		return g, nil
	}
	api, web, err := client.Addresses(s.opt.GitHub.APIURL, s.opt.GitHub.GitURL)
	if err != nil {
		return nil, err
	}
	g.OAuth = &oauth2.Config{
		ClientID: s.opt.Pages.ClientID, ClientSecret: s.opt.Secrets.ClientSecret,
		RedirectURL: strings.TrimSuffix(s.opt.Config.URL, "/") + "/login/callback",
		Endpoint:    oauth2.Endpoint{AuthURL: web + "/login/oauth/authorize", TokenURL: web + "/login/oauth/access_token", AuthStyle: oauth2.AuthStyleInParams},
	}
	g.Login = func(ctx context.Context, token *oauth2.Token) (pages.User, error) { return whose(ctx, api, token) }
	return g, nil
}

// whose asks GitHub for the user behind a token.
func whose(ctx context.Context, api *url.URL, token *oauth2.Token) (pages.User, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, api.JoinPath("user").String(), nil)
	if err != nil {
		return pages.User{}, err
	}
	token.SetAuthHeader(request)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return pages.User{}, fmt.Errorf("asking GitHub who logged in: %w", err)
	}
	defer answer.Body.Close()
	var user struct {
		Login string `json:"login"`
		ID    int64  `json:"id"`
	}
	if answer.StatusCode != http.StatusOK {
		return pages.User{}, fmt.Errorf("asking GitHub who logged in: it answers %s", answer.Status)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&user); err != nil {
		return pages.User{}, fmt.Errorf("asking GitHub who logged in: %w", err)
	}
	return pages.User{ID: user.ID, Login: user.Login}, nil
}

// sessionKey is made once and stays, so that people stay logged in over a restart.
func (s *Server) sessionKey() ([]byte, error) {
	const bytes = 32
	file := filepath.Join(s.opt.Data, "session.key")
	key, err := os.ReadFile(file)
	if err == nil && len(key) == bytes {
		return key, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the key of sessions: %w", err)
	}
	key = make([]byte, bytes)
	rand.Read(key) // never fails
	if err := os.WriteFile(file, key, 0o600); err != nil {
		return nil, fmt.Errorf("keeping the key of sessions: %w", err)
	}
	return key, nil
}

// pageOf is where a change can be looked at, or "" where nobody could.
func (s *Server) pageOf(_ string, id change.ID) string {
	return s.pageAt(s.repoOf(id.Repo), "/changes/"+id.String())
}

// pageOfRun is the same of a run.
func (s *Server) pageOfRun(_, job string) string { return s.pageAt(s.repoOfJob(job), "/runs/"+job) }

// runPage is the same with the kernel's page, and with a picture, which GitHub fetches as nobody, and by https only.
func (s *Server) runPage(repo, folder, job string) present.Page {
	r := s.repoOfJob(job)
	p := present.Page{URL: s.pageAt(r, "/runs/"+job), History: s.pageAt(r, pages.KernelPath(repo, folder))}
	if strings.HasPrefix(p.URL, "https://") && s.access.IsPublic(r) {
		p.Picture = p.URL + "/intervals.png"
	}
	return p
}

// repoOfJob is the repository of a job, by the job's name.
func (s *Server) repoOfJob(job string) ledger.RepoName {
	id, err := change.OfJob(job)
	if err != nil {
		return ledger.RepoName{}
	}
	return s.repoOf(id.Repo)
}

// repoOf is a repository as the ledger knows it. One that it does not know is not public.
func (s *Server) repoOf(id int64) ledger.RepoName {
	found, err := s.Ledger.RepoName(context.Background(), id) // a look at one row
	if err != nil {
		return ledger.RepoName{ID: id}
	}
	return found
}

func (s *Server) pageAt(repo ledger.RepoName, path string) string {
	if s.opt.Config.URL == "" || s.access == nil || !s.access.Readable(repo) {
		return ""
	}
	return strings.TrimSuffix(s.opt.Config.URL, "/") + path
}

// pages serves what the stores hold.
func (s *Server) pages(done <-chan struct{}) (http.Handler, error) {
	_, web, err := client.Addresses(s.opt.GitHub.APIURL, s.opt.GitHub.GitURL)
	if err != nil {
		return nil, err
	}
	site := &pages.Server{Source: stores{s, s.Ledger}, Access: s.access, Web: web, Version: s.opt.Version, URL: s.opt.Config.URL, Log: s.log, Now: s.opt.Now, Done: done, Act: actor{s.Bot}}
	return site.Handler()
}

// stores are the ledger, the artifacts and the fleet as a source of pages.
type stores struct {
	s *Server
	*ledger.Ledger
}

func (s stores) Run(ctx context.Context, job string) (ledger.RunRow, error) {
	return found(s.Ledger.Run(ctx, job))
}

func (s stores) Change(ctx context.Context, id change.ID) (*change.State, error) {
	return found(s.Ledger.Change(ctx, id))
}

func found[T any](value T, err error) (T, error) {
	if ledger.IsNotFound(err) {
		err = pages.ErrNotFound
	}
	return value, err
}

func (s stores) Blob(ctx context.Context, name string) ([]byte, error) {
	return s.s.Journal.Artifacts.Read(ctx, name)
}

func (s stores) Runners() []pages.Runner {
	var list []pages.Runner
	for _, r := range s.s.Runners.Runners() {
		off := ""
		switch {
		case r.Availability.Quarantined != nil:
			off = pages.Quarantined
		case r.Availability.Drained != nil:
			off = pages.Drained
		}
		job, progress := r.Job, r.Progress
		if submission.IsSubmission(job) { // it is shown to its owner only, and not here
			job, progress = "", nil
		}
		list = append(list, pages.Runner{
			Name: r.Name, Labels: r.Labels, Seen: r.LastSeen, Here: s.s.here(r.LastSeen), Job: job, Progress: progress,
			Health: r.Health, Tests: r.Availability.Tests, Off: off,
		})
	}
	return list
}

func (s stores) Places() map[string]scheduler.Position { return s.s.Jobs.Positions() }

func (s stores) Said(job string) []runners.LogEntry { return s.s.Runners.Said(job) }

// An actor says in a page's words why something cannot be asked for.
type actor struct{ bot *controller.Controller }

func (a actor) Press(ctx context.Context, id change.ID, press, by, head string, c grammar.Command) error {
	err := a.bot.SubmitCommand(ctx, id, press, by, head, c)
	switch {
	case errors.Is(err, controller.ErrMovedOn):
		return pages.Refused("The change is closed or has a new head. Reload its page.")
	case errors.Is(err, controller.ErrNotLeader), errors.Is(err, journal.ErrNotLeading):
		return pages.Refused("A different bot is the leader now. Press the button there, or write the command as a comment on the pull request.")
	}
	return err
}

// publicNames are the public repositories that the configuration names without a number.
func (s *Server) publicNames() (names []string) {
	for _, entry := range s.opt.Pages.Public {
		if name, number := pages.SplitPublic(entry); number == "" {
			names = append(names, name)
		}
	}
	return names
}
