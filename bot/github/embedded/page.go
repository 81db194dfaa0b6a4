package embedded

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
)

//go:embed page.html
var pageText string

type pageAll struct {
	Title string
	Repos []pageRepo
}

type pageRepo struct {
	Name, Clone string
	Pulls       []pagePull
}

type pagePull struct {
	Number               int
	Title, Author, State string
	URL, Head, Base      string
	Checks               []pageCheck
	Comments             []pageComment
}

type pageCheck struct{ By, State, Mark, Text string }

type pageComment struct {
	By        string
	Bot       bool
	HTML      template.HTML
	Reactions []string
}

var (
	hiddenPattern  = regexp.MustCompile(`(?s)<!--.*?-->`)
	tagPattern     = regexp.MustCompile(`</?([A-Za-z][A-Za-z0-9-]*)[^<>]*>`)
	harmlessTags   = strings.Fields("a b blockquote br code del details em h1 h2 h3 h4 h5 h6 hr input li ol p pre strong sub summary sup table tbody td th thead tr ul")
	escapedBracket = strings.NewReplacer("<", "&lt;", ">", "&gt;")
)

// rendered is Markdown as GitHub shows it: with tables, and such HTML as does no
// more than text. Other tags are shown; and whatever slips through cannot run, for
// the page's security policy allows no script.
func rendered(text string) template.HTML {
	var out bytes.Buffer
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe(), html.WithHardWraps()))
	if err := md.Convert([]byte(text), &out); err != nil {
		return template.HTML("<pre>" + template.HTMLEscapeString(text) + "</pre>")
	}
	text = tagPattern.ReplaceAllStringFunc(hiddenPattern.ReplaceAllString(out.String(), ""), func(tag string) string {
		if name := strings.ToLower(tagPattern.FindStringSubmatch(tag)[1]); slices.Contains(harmlessTags, name) {
			return tag
		}
		return escapedBracket.Replace(tag)
	})
	return template.HTML(text)
}

// servePage shows what is there to a person: everything at /, one pull request at
// its own address. It shows public repositories only, for it knows no one.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	owner, name, number := "", "", ""
	if m := pullPage.FindStringSubmatch(r.URL.Path); m != nil {
		owner, name, number = m[1], m[2], m[3]
	}
	s.mu.Lock()
	repos := s.pageRepos(owner, name, number)
	s.mu.Unlock()
	if number != "" && (len(repos) == 0 || len(repos[0].Pulls) == 0) {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	shown := pageAll{Repos: repos}
	if number != "" {
		shown.Title = repos[0].Pulls[0].Title
	}
	if err := template.Must(template.New("page").Parse(pageText)).Execute(w, shown); err != nil {
		s.opt.Log.Info("page ended early", "err", err)
	}
}

func (s *Server) pageRepos(owner, name, number string) []pageRepo {
	var out []pageRepo
	for _, r := range s.repos {
		if r.private || owner != "" && r.fullName() != owner+"/"+name {
			continue
		}
		p := pageRepo{Name: r.fullName(), Clone: r.html(".git")}
		for _, pr := range r.pulls {
			if number == "" || number == strconv.Itoa(pr.number) {
				p.Pulls = append(p.Pulls, pr.page())
			}
		}
		out = append(out, p)
	}
	return out
}

func (pr *PR) page() pagePull {
	p := pagePull{Number: pr.number, Title: pr.title, Author: pr.author.login, State: pr.state, URL: pr.repo.html("/pull/%d", pr.number), Head: pr.headSHA, Base: pr.baseRef}
	switch {
	case !pr.mergedAt.IsZero():
		p.State = "merged"
	case pr.draft && pr.state == "open":
		p.State = "draft"
	}
	for _, run := range pr.repo.latestRuns(pr.headSHA) {
		state := run.conclusion
		if state == "" {
			state = run.status
		}
		p.Checks = append(p.Checks, pageCheck{run.name, state, mark(state), run.title})
	}
	for _, st := range pr.repo.latestStatuses(pr.headSHA) {
		p.Checks = append(p.Checks, pageCheck{st.context, st.state, mark(st.state), st.description})
	}
	for _, c := range pr.comments() {
		shown := pageComment{By: c.author.login, Bot: strings.HasSuffix(c.author.login, "[bot]"), HTML: rendered(c.body)}
		for _, kind := range slices.Sorted(maps.Keys(emoji)) {
			n := 0
			for _, r := range c.reactions {
				if r.content == kind {
					n++
				}
			}
			if n > 0 {
				shown.Reactions = append(shown.Reactions, fmt.Sprintf("%s %d", emoji[kind], n))
			}
		}
		p.Comments = append(p.Comments, shown)
	}
	return p
}

var emoji = map[string]string{
	"+1": "👍", "-1": "👎", "laugh": "😄", "hooray": "🎉", "confused": "😕", "heart": "❤️", "rocket": "🚀", "eyes": "👀",
}

// mark is a check's state as one sign.
func mark(state string) string {
	switch state {
	case "success":
		return "✓"
	case "failure", "error":
		return "✗"
	case "cancelled":
		return "⊘"
	}
	return "●"
}
