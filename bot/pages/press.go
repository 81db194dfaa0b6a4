package pages

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
)

// An Actor executes what a visitor requests on a page. It decides whether the visitor may, by the
// role that the command needs.
type Actor interface {
	Press(ctx context.Context, id change.ID, press, by, head string, c grammar.Command) error
}

// A Refused is an Actor's refusal, in words for the visitor.
type Refused string

func (r Refused) Error() string { return string(r) }

// Buttons are the buttons of a change.
type Buttons struct {
	Change string
	Head   string
	Folder string // one kernel; empty for all
	Device string // one device of the policy; empty for all
	Press  string // id of this form: a form that is sent twice counts once
	Proof  string // proves that the form belongs to this session
	Cancel bool   // something is in progress and can be cancelled
}

// buttons returns the buttons for a visitor with a GitHub login, on an open pull request. It
// returns nil for others.
func (s *Server) buttons(v *visit, state *change.State, head, folder string) *Buttons {
	if s.Act == nil || v.Login == "" || v.Proof == "" || state == nil || state.ID.Kind != change.Pull || !state.Facts.Open || state.Facts.Head != head {
		return nil
	}
	busy := func(r change.Run) bool { return r.Phase == change.Queued || r.Phase == change.Running }
	return &Buttons{Change: state.ID.String(), Head: head, Folder: folder, Press: rand.Text(), Proof: v.Proof, Cancel: slices.ContainsFunc(state.Runs, busy)}
}

var pressPattern = regexp.MustCompile(`^[A-Z2-7]{20,40}$`)

// press handles a submitted form. It answers 404 if the sender may not read the change. Other
// senders must be logged in at GitHub and present the proof of their session.
func (s *Server) press(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	v := s.visit(r)
	state, _, err := s.changeOf(r.Context(), v, r.PathValue("change"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	refuse := func(status int, title, text string) { s.write(w, status, "sorry", v, sorry{Title: title, Text: text}) }
	form := func(name string) string { return r.PostFormValue(name) }
	var asked grammar.Command
	switch form("what") {
	case "rebench":
		again := grammar.Rebench{}
		if folder := form("kernel"); folder != "" {
			again.Kernels, again.Device = []string{folder}, form("device")
		}
		asked = again
	case "cancel":
		asked = grammar.Cancel{}
	}
	planned := func(k change.Kernel) bool {
		return k.Folder == form("kernel") && (form("device") == "" || k.Device == form("device"))
	}
	switch {
	case s.Act == nil || v.Login == "" || v.Proof == "":
		refuse(http.StatusForbidden, "Log in with GitHub", "Log in with GitHub to ask for this: the bot must know your role in the repository.")
		return
	case subtle.ConstantTimeCompare([]byte(form("proof")), []byte(v.Proof)) != 1 || !pressPattern.MatchString(form("press")):
		refuse(http.StatusForbidden, "Not sent from this page", "No form of this session sent this. Load the page again and press its button.")
		return
	case asked == nil || form("kernel") != "" && (state.Plan == nil || !slices.ContainsFunc(state.Plan.Kernels, planned)):
		refuse(http.StatusBadRequest, "Not understood", "This page has no such button. Load the page again.")
		return
	case s.buttons(v, state, form("head"), "") == nil:
		refuse(http.StatusConflict, "Too late", "The change is closed, or has a different head by now. Load its page again.")
		return
	}
	if err := s.Act.Press(r.Context(), state.ID, form("press"), v.Login, form("head"), asked); err != nil {
		if no, ok := errors.AsType[Refused](err); ok {
			refuse(http.StatusConflict, "Not now", string(no))
			return
		}
		s.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/changes/"+url.PathEscape(state.ID.String())+"?noted="+form("what")+"#asked", http.StatusSeeOther)
}
