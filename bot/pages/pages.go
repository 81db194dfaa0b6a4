// Package pages shows what is known of runs, kernels and changes to people: pages
// that the server writes, with pictures of package chart, and the same as JSON. They
// work without a script; a small one lets a run that is under way speak. Nothing is
// fetched from elsewhere, nothing is decided here: what somebody asks for by a button is
// passed on. Whatever a name, a log or a compiler says stays text.
//
// What is shown comes from a Source: the bot's stores, or a folder of results. Who
// may see what is an Access: what somebody may not see answers as what is not there.
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

// A Server answers for the pages. Its fields are set before Handler is called.
type Server struct {
	Source  Source
	Access  Access
	Version string
	Web     string // GitHub's address, such as https://github.com; "" leaves out what leads there
	URL     string // where readers find it, for what leaves the pages; "" leaves links relative
	Log     *slog.Logger
	Now     func() time.Time
	Done    <-chan struct{} // closed when the server stops: ends what is live
	Act     Actor           // nil where nobody can ask for anything

	templates *template.Template
	assets    map[string]asset
	live      topics
	caches    caches
}

//go:embed assets
var files embed.FS

// contentSecurityPolicy lets a page load this server's style sheet and script, and nothing else.
const contentSecurityPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ErrNotFound is a Source's word for what it does not have, and the answer to what is not
// for the asker.
var ErrNotFound = errors.New("there is no such page")

// A page makes what a template and the API show.
type page func(ctx context.Context, v *visit) (any, error)

// A visit is one request, and whose it is.
type visit struct {
	*http.Request
	Viewer
}

// query is what somebody searches for, which stays in the field.
func (v *visit) query() string {
	if v.URL.Path != "/search" {
		return ""
	}
	return v.URL.Query().Get("q")
}

// Handler serves every page.
func (s *Server) Handler() (http.Handler, error) {
	if err := s.prepare(); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for _, route := range s.Routes() {
		mux.HandleFunc("GET "+route.Pattern, s.html(route.name, route.page))
		if route.name != "" {
			pattern := strings.TrimSuffix(route.Pattern, "{$}")
			mux.HandleFunc("GET /api/v1"+strings.TrimSuffix(pattern, "/"), s.json(route.page))
		}
	}
	mux.HandleFunc("GET /runs/{job}/evidence.json", s.download("evidence"))
	mux.HandleFunc("GET /runs/{job}/verdict.json", s.download("verdict"))
	mux.HandleFunc("GET /live", s.watchHome)
	mux.HandleFunc("GET /runs/{job}/live", s.watchRun)
	mux.HandleFunc("GET /runs/{job}/intervals.svg", s.intervals)
	mux.HandleFunc("POST /changes/{change}/press", s.press)
	mux.HandleFunc("GET /badge/{owner}/{repo}/{kernel...}", s.badge)
	mux.HandleFunc("GET /feed.atom", s.feed)
	mux.HandleFunc("GET /api/v1/openapi.json", s.openapi)
	s.grafana(mux)
	mux.HandleFunc("GET /assets/{name}", s.asset)
	s.Access.Routes(mux, s.page)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.fail(w, r, ErrNotFound) })
	return headers(http.NewCrossOriginProtection().Handler(mux)), nil
}

// A Route is a page's address, with what it is made of.
type Route struct {
	Pattern string
	name    string // of its template
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

// visit finds out who asks.
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

// statusFor is the status of an answer: a page can be there and say that what was asked for is not.
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

// A frame is a page with what stands around it.
type frame struct {
	Page    any
	Login   string // who looks; "" for nobody in particular
	Member  bool   // has a session
	Sign    string // where to log in; "" where nobody can
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
	err := s.templates.ExecuteTemplate(&text, name, frame{
		Page: model, Login: v.Login, Member: v.Member, Sign: s.Access.SignIn(), Here: v.URL.RequestURI(), Query: v.query(), Version: s.Version,
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

// bearsProof tells whether a page has buttons, with the proof of a session in them.
func bearsProof(model any) bool {
	switch p := model.(type) {
	case *RunPage:
		return p.Buttons != nil
	case *ChangePage:
		return p.Buttons != nil
	}
	return false
}

// page lets an Access write its own.
func (s *Server) page(w http.ResponseWriter, r *http.Request, status int, name string, model any) {
	s.write(w, status, name, s.visit(r), model)
}

// A sorry is a page that is not there.
type sorry struct{ Title, Text string }

// fail says that something is not there, or that it cannot be shown now. What went
// wrong is for the log: it may name things that the reader must not know of.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, model := http.StatusNotFound, sorry{"Not found", "There is no such page, or it is not for everybody."}
	if !errors.Is(err, ErrNotFound) {
		status, model = http.StatusInternalServerError, sorry{"Not now", "This page cannot be shown at the moment. The server's log says why."}
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
