// Package pages serves web pages about runs, kernels and changes to people, and the same data as
// JSON. The pages are rendered on the server, with SVG charts from package chart. They work without
// JavaScript; a small script updates runs that are in progress. A Source provides the data: the
// bot's stores or a folder of results. An Access decides who may see what; a page that a viewer may
// not see answers like one that does not exist. The package loads nothing from other hosts and
// decides nothing: it passes button presses on to an Actor, and it escapes all text from names,
// logs and compilers.
package pages

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// A Server serves the pages. Set its fields before calling Handler.
type Server struct {
	Source  Source
	Access  Access
	Version string
	// Web is GitHub's URL, such as https://github.com. Without it there are no links to GitHub.
	Web string
	// URL is this server's URL, for links in feeds and badges. Without it links are relative.
	URL  string
	Log  *slog.Logger
	Now  func() time.Time
	Done <-chan struct{} // closed when the server stops; ends live streams
	Act  Actor           // nil if the pages have no buttons

	templates *template.Template
	assets    map[string]asset
	live      topics
	caches    caches
}

//go:embed assets
var files embed.FS

// contentSecurityPolicy lets a page load this server's style sheet and script, and nothing else.
const contentSecurityPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ErrNotFound is returned by a Source for things that it does not have. It is also the answer for
// things that the viewer may not see.
var ErrNotFound = errors.New("there is no such page")

// A page builds the model that a template or the API shows.
type page func(ctx context.Context, v *visit) (any, error)

// A visit is one request with its viewer.
type visit struct {
	*http.Request
	Viewer
}

// query returns the search text, which stays in the search field.
func (v *visit) query() string {
	if v.URL.Path != "/search" {
		return ""
	}
	return v.URL.Query().Get("q")
}

// Handler returns the handler of all pages.
func (s *Server) Handler() (http.Handler, error) {
	if err := s.prepare(); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for _, route := range s.Routes() {
		mux.HandleFunc("GET "+route.Pattern, s.html(route.name, route.page))
	}
	for _, e := range s.endpoints() {
		mux.HandleFunc("GET "+e.pattern, e.handle)
	}
	mux.HandleFunc("POST /changes/{change}/press", s.press)
	mux.HandleFunc("GET /api/v1/openapi.json", s.openapi)
	mux.HandleFunc("GET /assets/{name}", s.asset)
	s.Access.Routes(mux, s.page)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.fail(w, r, ErrNotFound) })
	return headers(http.NewCrossOriginProtection().Handler(mux)), nil
}

// A Route is the address of a page, with its template and model.
type Route struct {
	Pattern string
	name    string // name of its template
	page    page
}

// Routes lists the pages.
func (s *Server) Routes() []Route {
	return []Route{
		{"/{$}", "home", s.home},
		{"/runs/{job}", "run", s.run},
		{"/changes/{change}", "change", s.change},
		{"/kernels/{owner}/{repo}", "repository", s.repository},
		{"/search", "search", s.search},
		{"/kernels/{owner}/{repo}/{kernel...}", "kernel", s.kernel},
		{"/compare", "compare", s.compare},
		{"/policy", "policy", s.policy},
		{"/searches", "tunings", s.tunings},
		{"/searches/{name}", "tuning", s.tuning},
	}
}

func headers(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", contentSecurityPolicy)
		head.Set("Cache-Control", "private, no-cache")
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Referrer-Policy", "same-origin")
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("X-Frame-Options", "DENY")
		h.ServeHTTP(w, r)
	})
}

// visit identifies the viewer of a request.
func (s *Server) visit(r *http.Request) *visit { return &visit{Request: r, Viewer: s.Access.Viewer(r)} }

func (s *Server) html(name string, p page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := s.visit(r)
		model, err := p(r.Context(), v)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		status, _ := statusFor(model)
		s.write(w, status, name, v, model)
	}
}

// statusFor returns the status of an answer. A page can exist and say that the requested thing does
// not.
func statusFor(model any) (status int, why string) {
	if m, ok := model.(interface{ status() (int, string) }); ok {
		return m.status()
	}
	return http.StatusOK, ""
}

func (s *Server) json(p page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		model, err := p(r.Context(), s.visit(r))
		s.answer(w, r, model, err)
	}
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, model any, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	status, why := statusFor(model)
	if why != "" {
		model = map[string]string{"error": why}
	}
	writeJSON(w, r, status, model)
}

func writeJSON(w http.ResponseWriter, r *http.Request, status int, model any) {
	text, err := json.Marshal(model)
	if err != nil {
		text, status = []byte(`{"error": "this cannot be shown as JSON"}`), http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	send(w, r, status, append(text, '\n'), false)
}

// A frame is a page with the data for the layout around it.
type frame struct {
	Page    any
	Login   string // the viewer; empty if anonymous
	Member  bool   // the viewer has a session
	Sign    string // address of the login page, or empty
	Finds   bool   // there may be searches
	Here    string
	Query   string // of a search
	Version string
	Style   string
	Script  string
	Icon    string
	Preview *preview
}

func (s *Server) write(w http.ResponseWriter, status int, name string, v *visit, model any) {
	var text bytes.Buffer
	_, finds := s.Source.(Searcher)
	err := s.templates.ExecuteTemplate(&text, name, frame{
		Finds: finds,
		Page:  model, Login: v.Login, Member: v.Member, Sign: s.Access.SignIn(), Here: v.URL.RequestURI(), Query: v.query(), Version: s.Version,
		Style: s.assets["style.css"].path, Script: s.assets["live.js"].path, Icon: s.assets["favicon.svg"].path, Preview: s.previewOf(model),
	})
	if err != nil {
		s.Log.Error("a page cannot be written", "page", name, "url", v.URL.Path, "err", err)
		http.Error(w, "The page cannot be shown.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	send(w, v.Request, status, text.Bytes(), bearsProof(model))
}

// bearsProof reports whether a page has buttons, which contain the proof of a session.
func bearsProof(model any) bool {
	switch p := model.(type) {
	case *RunPage:
		return p.Buttons != nil
	case *ChangePage:
		return p.Buttons != nil
	}
	return false
}

// page renders a page on behalf of an Access.
func (s *Server) page(w http.ResponseWriter, r *http.Request, status int, name string, model any) {
	s.write(w, status, name, s.visit(r), model)
}

// A sorry is an error page.
type sorry struct {
	Title, Text string
	Lost        bool // the page says where else to look
}

// fail answers that a page does not exist, or cannot be shown now. The error goes only to the log,
// because it may name things that the viewer must not know about.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, model := http.StatusNotFound, sorry{"Not found", "There is no such page, or you may not read it.", true}
	if !errors.Is(err, ErrNotFound) {
		status, model = http.StatusInternalServerError, sorry{Title: "Not now", Text: "This page cannot be shown at the moment. Load it again in a minute; the server's log says why."}
		if r.Context().Err() == nil {
			s.Log.Error("a page cannot be shown", "url", r.URL.Path, "err", err)
		}
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		writeJSON(w, r, status, map[string]string{"error": model.Text})
		return
	}
	s.write(w, status, "sorry", s.visit(r), model)
}

func (s *Server) prepare() (err error) {
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.caches, err = newCaches(); err != nil {
		return err
	}
	if s.assets, err = readAssets(); err != nil {
		return err
	}
	s.templates, err = template.New("").Funcs(s.functions()).ParseFS(files, "assets/*.html")
	if err != nil {
		return fmt.Errorf("reading the pages: %w", err)
	}
	return nil
}
