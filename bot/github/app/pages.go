package app

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the pages
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strings"
)

//go:embed pages.html
var pagesText string

//go:embed pages.css
var pagesStyle string

// pages renders the pages for the browser. They contain no secret. The first contains the state, so
// only a client that knows its address can see it.
type pages struct {
	templates *template.Template
	policy    string
	first     firstPage
}

type firstPage struct {
	Title, Action, Owner, Site, Dir string
	GitHub                          string
	Manifest                        manifest
	JSON                            string
	Unreachable                     bool
}

type lastPage struct {
	Title, Dir string
	App        app
	Next       []step
}

type stopPage struct{ Title, What, Remedy string }

func newPages(j *job, m manifest, state string) (pages, error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return pages{}, fmt.Errorf("writing the App's manifest: %w", err)
	}
	style := strings.TrimSpace(pagesStyle)
	t, err := template.New("").Funcs(template.FuncMap{
		"style": func() template.CSS { return template.CSS(style) },
		"plain": func(word string) string { return strings.ReplaceAll(word, "_", " ") },
	}).Parse(pagesText)
	if err != nil {
		return pages{}, fmt.Errorf("reading the pages: %w", err)
	}
	sum := sha256.Sum256([]byte(style))
	return pages{
		templates: t,
		// Some browsers apply form-action to the redirect back from GitHub, too, so the policy
		// names this server.
		policy: fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; form-action %s 'self'; base-uri 'none'; frame-ancestors 'none'",
			base64.StdEncoding.EncodeToString(sum[:]), j.web),
		first: firstPage{Title: "Make the GitHub App", Action: j.form(state), Owner: j.owner(), Site: j.site, Dir: j.dir, GitHub: j.web.Host,
			Manifest: m, JSON: string(raw), Unreachable: j.unreachable()},
	}, nil
}

func (p pages) begin(w http.ResponseWriter) { p.write(w, http.StatusOK, "begin", p.first) }

func (p pages) finish(w http.ResponseWriter, j *job, made app) {
	p.write(w, http.StatusOK, "finish", lastPage{Title: "The App is made", Dir: j.dir, App: app{ID: made.ID, HTMLURL: made.HTMLURL}, Next: j.next(made)})
}

func (p pages) stop(w http.ResponseWriter, status int, what, remedy string) {
	p.write(w, status, "stop", stopPage{Title: "Not this way", What: what, Remedy: remedy})
}

func (p pages) write(w http.ResponseWriter, status int, name string, data any) {
	var page bytes.Buffer
	if err := p.templates.ExecuteTemplate(&page, name, data); err != nil {
		http.Error(w, "The page cannot be shown.", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", p.policy)
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Referrer-Policy", "strict-origin") // GitHub may want to know the origin of a form
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes()) // the client may have hung up
}
