package fakehub

import (
	"html/template"
	"net/http"
	"strconv"
	"strings"
)

type pageRepo struct {
	Name, Clone string
	Pulls       []pagePull
}

type pagePull struct {
	Number               int
	Title, Author, State string
	URL, Head            string
	Checks, Comments     []pageEntry
}

type pageEntry struct{ By, Text string }

func pageTemplate() *template.Template {
	return template.Must(template.New("page").Parse(`<!doctype html><html lang="en"><meta charset="utf-8"><title>fakehub</title>
<style>body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}pre{white-space:pre-wrap;background:#f6f8fa;padding:.7rem;border-radius:6px}</style>
{{range .}}<h1>{{.Name}}</h1><p><code>git clone {{.Clone}}</code></p>
{{range .Pulls}}<article id="pr{{.Number}}"><h2><a href="{{.URL}}">#{{.Number}}</a> {{.Title}}</h2><p>{{.State}}, by {{.Author}}, head <code>{{.Head}}</code></p>
{{range .Checks}}<p><b>{{.By}}</b>: {{.Text}}</p>{{end}}
{{range .Comments}}<p><b>{{.By}}</b></p><pre>{{.Text}}</pre>{{end}}</article>{{else}}<p>No pull request yet.</p>{{end}}
{{else}}<p>No repository yet.</p>{{end}}</html>`))
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
	if err := pageTemplate().Execute(w, repos); err != nil {
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
	p := pagePull{Number: pr.number, Title: pr.title, Author: pr.author.login, State: pr.state, URL: pr.repo.html("/pull/%d", pr.number), Head: pr.headSHA}
	if !pr.mergedAt.IsZero() {
		p.State = "merged"
	}
	for _, run := range pr.repo.latestRuns(pr.headSHA) {
		p.Checks = append(p.Checks, pageEntry{run.name, strings.TrimSpace(run.status + " " + run.conclusion + " " + run.title)})
	}
	for _, st := range pr.repo.latestStatuses(pr.headSHA) {
		p.Checks = append(p.Checks, pageEntry{st.context, st.state + " " + st.description})
	}
	for _, c := range pr.comments() {
		p.Comments = append(p.Comments, pageEntry{c.author.login, c.body})
	}
	return p
}
