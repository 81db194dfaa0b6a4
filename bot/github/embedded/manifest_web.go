package embedded

import (
	"crypto/rand"
	"crypto/rsa"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// An offer is an App that a person has agreed to and nobody has fetched yet.
type offer struct {
	opt  AppOptions
	ends time.Time
}

// offerLife is how long GitHub's code is good for.
const offerLife = time.Hour

var newAppPage = regexp.MustCompile(`^(?:/organizations/([^/]+))?/settings/apps/new$`)

// serveNewApp is the page that a manifest is posted to. GitHub asks a person who
// has logged in to agree to the name; this hub knows no one, and agrees.
func (s *Server) serveNewApp(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "Post a manifest here.", http.StatusMethodNotAllowed)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
	m, wrong := readManifest(r.PostFormValue("manifest"))
	opt := AppOptions{Slug: slugOf(m.Name), Name: m.Name, Owner: newAppPage.FindStringSubmatch(r.URL.Path)[1], Description: m.Description,
		Site: m.URL, Permissions: m.Permissions, Events: m.Events}
	if len(wrong) == 0 { // before the lock: it takes its time
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		opt.Key = key
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if owner := s.users[opt.Owner]; opt.Owner != "" && (owner == nil || owner.kind != "Organization") {
		http.NotFound(w, r)
		return
	}
	if s.appNamed(opt.Slug) != nil {
		wrong = append(wrong, "Name is already taken")
	}
	if len(wrong) > 0 {
		text := "Invalid GitHub App configuration\nThe configuration does not appear to be a valid GitHub App manifest.\n"
		http.Error(w, text+"Error "+strings.Join(wrong, "\nError "), http.StatusUnprocessableEntity)
		return
	}
	if m.Hook != nil && (m.Hook.Active == nil || *m.Hook.Active) {
		opt.HookURL, opt.HookSecret = m.Hook.URL, s.secret("")
	}
	code := s.secret("")
	s.offers[code] = &offer{opt: opt, ends: s.opt.Clock().Add(offerLife)}
	back, _ := url.Parse(m.RedirectURL) // readManifest has parsed it
	q := back.Query()
	q.Set("code", code)
	if state := r.URL.Query().Get("state"); state != "" {
		q.Set("state", state)
	}
	back.RawQuery = q.Encode()
	w.Header().Set("Location", back.String())
	w.WriteHeader(http.StatusFound)
}

// postConversion makes the App that a code stands for, and shows its secrets this once.
// It needs no login: whoever has the code has the App.
func postConversion(rq *request) error {
	s, code := rq.s, rq.PathValue("code")
	o := s.offers[code]
	if o == nil || !s.opt.Clock().Before(o.ends) {
		return errNotFound()
	}
	if s.appNamed(o.opt.Slug) != nil {
		return &apiError{Status: http.StatusUnprocessableEntity, Message: "Name is already taken"}
	}
	delete(s.offers, code)
	a := s.register(o.opt)
	s.touch()
	return rq.reply(http.StatusCreated, with(a.render(), map[string]any{"permissions": o.opt.Permissions, "client_id": "Iv1." + nodeID("App", a.id),
		"client_secret": s.secret(""), "webhook_secret": orNil(o.opt.HookSecret), "pem": string(a.PrivateKeyPEM())}))
}
