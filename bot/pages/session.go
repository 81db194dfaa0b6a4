package pages

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// A session is the content of the login cookie: who logged in, and until when.
type session struct {
	Login string `json:"login,omitempty"`
	ID    int64  `json:"id,omitempty"` // of the user: another user may get the login
	// Token is the digest of the token that was presented. A new token ends the session.
	Token []byte `json:"token,omitempty"`
	Until int64  `json:"until"`
}

// lasting is the duration of a login.
const lasting = 12 * time.Hour

// cookieName uses the __Host- prefix with https, which protects the cookie from other hosts of the
// same domain.
func (g *Guard) cookieName(what string) string {
	if g.Secure {
		return "__Host-kernelgate-" + what
	}
	return "kernelgate-" + what
}

func (g *Guard) session(r *http.Request) (s session, ok bool) {
	if !g.read(r, "session", &s) || g.now().Unix() >= s.Until {
		return session{}, false
	}
	if s.Token != nil {
		sum := sha256.Sum256([]byte(g.Token))
		if g.Token == "" || subtle.ConstantTimeCompare(s.Token, sum[:]) != 1 {
			return session{}, false
		}
	} else if s.Login == "" || s.ID == 0 || g.OAuth == nil {
		return session{}, false
	}
	return s, true
}

// read decodes a signed cookie. It ignores a cookie with a wrong signature.
func (g *Guard) read(r *http.Request, what string, into any) bool {
	c, err := r.Cookie(g.cookieName(what))
	if err != nil {
		return false
	}
	body, mac, found := strings.Cut(c.Value, ".")
	given, err := base64.RawURLEncoding.DecodeString(mac)
	if !found || err != nil || !hmac.Equal(given, g.sign(what, body)) {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(body)
	return err == nil && json.Unmarshal(text, into) == nil
}

// sign binds a text to its purpose, so that a cookie of one kind is not valid as another kind.
func (g *Guard) sign(what, body string) []byte {
	mac := hmac.New(sha256.New, g.Key)
	mac.Write([]byte(what + "\x00" + body))
	return mac.Sum(nil)
}

// give sets a signed cookie. SameSite is Lax, because users follow links from GitHub.
func (g *Guard) give(w http.ResponseWriter, what string, value any, lasting time.Duration) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	body := base64.RawURLEncoding.EncodeToString(text)
	g.set(w, what, body+"."+base64.RawURLEncoding.EncodeToString(g.sign(what, body)), int(lasting.Seconds()))
	return nil
}

func (g *Guard) take(w http.ResponseWriter, what string) { g.set(w, what, "", -1) }

func (g *Guard) set(w http.ResponseWriter, what, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: g.cookieName(what), Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: g.Secure, SameSite: http.SameSiteLaxMode,
	})
}
