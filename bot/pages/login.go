package pages

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"golang.org/x/oauth2"
)

// A door is the login page.
type door struct {
	To     string
	Wrong  string
	Token  bool
	GitHub bool
}

// A trip is one login at GitHub, from the redirect to GitHub until the return.
type trip struct {
	State    string `json:"state"`
	Verifier string `json:"verifier"`
	To       string `json:"to"`
	Until    int64  `json:"until"`
}

const tripSeconds = 600

// Routes adds the pages for login and logout.
func (g *Guard) Routes(mux *http.ServeMux, show showPage) {
	if g.SignIn() == "" {
		return
	}
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) {
		g.door(w, r, show, http.StatusOK, r.URL.Query().Get("to"), "")
	})
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		g.take(w, "session")
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	if g.Token != "" {
		mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) { g.byToken(w, r, show) })
	}
	if g.OAuth != nil {
		mux.HandleFunc("GET /login/github", func(w http.ResponseWriter, r *http.Request) { g.leave(w, r, show) })
		mux.HandleFunc("GET /login/callback", func(w http.ResponseWriter, r *http.Request) { g.back(w, r, show) })
	}
}

func (g *Guard) door(w http.ResponseWriter, r *http.Request, show showPage, status int, to, wrong string) {
	show(w, r, status, "login", door{To: local(to), Wrong: wrong, Token: g.Token != "", GitHub: g.OAuth != nil})
}

// local returns a path on this server. It replaces every other target by the root, so that a login
// cannot redirect to a foreign site.
func local(to string) string {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
		return "/"
	}
	return to
}

func (g *Guard) byToken(w http.ResponseWriter, r *http.Request, show showPage) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	to := r.PostFormValue("to")
	if !g.isToken(r.PostFormValue("token")) {
		g.door(w, r, show, http.StatusForbidden, to, "That is not the token.")
		return
	}
	sum := sha256.Sum256([]byte(g.Token))
	g.enter(w, r, session{Token: sum[:]}, to)
}

func (g *Guard) enter(w http.ResponseWriter, r *http.Request, s session, to string) {
	s.Until = g.now().Add(lasting).Unix()
	if err := g.give(w, "session", s, lasting); err != nil {
		http.Error(w, "The session cannot be stored.", http.StatusInternalServerError)
		return
	}
	http.Redirect(w, r, local(to), http.StatusSeeOther)
}

// leave redirects the browser to GitHub, with a state that it must bring back.
func (g *Guard) leave(w http.ResponseWriter, r *http.Request, show showPage) {
	t := trip{State: rand.Text(), Verifier: oauth2.GenerateVerifier(), To: local(r.URL.Query().Get("to")), Until: g.now().Unix() + tripSeconds}
	if len(t.To) > 1024 {
		t.To = "/"
	}
	if err := g.give(w, "trip", t, tripSeconds*1e9); err != nil {
		g.door(w, r, show, http.StatusInternalServerError, "/", "The login cannot be stored.")
		return
	}
	http.Redirect(w, r, g.OAuth.AuthCodeURL(t.State, oauth2.S256ChallengeOption(t.Verifier)), http.StatusSeeOther)
}

// back handles the return from GitHub. It refuses a browser in which the login did not begin,
// because an attacker may have sent the user here.
func (g *Guard) back(w http.ResponseWriter, r *http.Request, show showPage) {
	var t trip
	ok := g.read(r, "trip", &t) && g.now().Unix() < t.Until
	g.take(w, "trip")
	q := r.URL.Query()
	if !ok || subtle.ConstantTimeCompare([]byte(t.State), []byte(q.Get("state"))) != 1 || q.Get("code") == "" {
		g.door(w, r, show, http.StatusForbidden, "/", "This login did not start here, or took too long. Try again.")
		return
	}
	token, err := g.OAuth.Exchange(r.Context(), q.Get("code"), oauth2.VerifierOption(t.Verifier))
	var user User
	if err == nil {
		user, err = g.Login(r.Context(), token)
	}
	if err != nil || user.Login == "" || user.ID == 0 {
		g.log().Warn("a login with GitHub failed", "err", err)
		g.door(w, r, show, http.StatusBadGateway, t.To, "GitHub did not say who you are. Try again.")
		return
	}
	g.enter(w, r, session{Login: user.Login, ID: user.ID}, t.To)
}
