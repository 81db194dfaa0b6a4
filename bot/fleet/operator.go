package fleet

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/runners/protocol"
)

// OperatorPrefix is the path of the API for operators, who need the operator token.
//
//	GET  runners                  → 200 the runners, as a list of Listed
//	POST runners/{name}/drain     {"why": "..."} → 200: it finishes what it has, and takes no more
//	POST runners/{name}/return    → 200: it takes jobs again
//	POST runners/{name}/test      → 200: it tests itself before its next job
//
// A name is a runner's, gpu1/0, or that of a host with several GPUs, gpu1.
const OperatorPrefix = "/fleet/v1/"

// A Listed runner is a runner as operators see it.
type Listed struct {
	Runner
	Job          string           `json:"job,omitempty"` // "" while it has none
	Kernel       string           `json:"kernel,omitempty"`
	Since        time.Time        `json:"since,omitzero"`     // when it got the job
	LastSeen     time.Time        `json:"last_seen,omitzero"` // since the bot was started
	Health       *protocol.Health `json:"health,omitempty"`   // as last reported, since the bot started
	Availability                  // as last read, with its self-tests
}

// State returns the state of the runner in one word.
func (l Listed) State(now time.Time) string {
	switch {
	case l.LastSeen.IsZero() || now.Sub(l.LastSeen) > Away:
		return "away"
	case l.Quarantined != nil:
		return "quarantined"
	case l.Drained != nil && l.Job != "":
		return "draining"
	case l.Drained != nil:
		return "drained"
	case l.Job != "" && l.Compiles():
		return "building"
	case l.Job != "":
		return "busy"
	}
	return "idle"
}

// Away is how long a runner may be silent and still counts as connected: a poll and a lease, with
// time to spare.
const Away = 90 * time.Second

// OperatorHandler serves OperatorPrefix.
func (s *Server) OperatorHandler() http.Handler {
	s.once.Do(s.setDefaults)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+OperatorPrefix+"runners", s.operated(s.list))
	mux.HandleFunc("POST "+OperatorPrefix+"runners/{name}/drain", s.operated(s.drain))
	mux.HandleFunc("POST "+OperatorPrefix+"runners/{name}/return", s.operated(s.giveBack))
	mux.HandleFunc("POST "+OperatorPrefix+"runners/{name}/test", s.operated(s.askTest))
	return mux
}

// operated refuses requests without the operator's token. The token of a runner does not count.
func (s *Server) operated(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		sum := sha256.Sum256([]byte(token))
		if s.Operator == nil || !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(sum[:], s.Operator[:]) != 1 {
			s.Log.WarnContext(r.Context(), "an operator without a valid token was refused", "remote", r.RemoteAddr, "path", r.URL.Path)
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "unauthorized (operator_token_file in the bot's configuration names the token)", http.StatusUnauthorized)
			return
		}
		if err := h(w, r); err != nil {
			s.Log.WarnContext(r.Context(), "an operator's request failed", "path", r.URL.Path, "error", err)
			http.Error(w, err.Error(), statusOf(err))
		}
	}
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) error {
	all := []Listed{}
	for _, state := range s.Runners() {
		var err error
		if state.Availability, err = s.availability(r.Context(), state.Name); err != nil {
			return err
		}
		all = append(all, state.Listed)
	}
	return answerJSON(w, all)
}

func (s *Server) drain(w http.ResponseWriter, r *http.Request) error {
	var word Decision
	if err := readJSON(w, r, small, &word); err != nil {
		return err
	}
	name, err := s.known(r)
	if err != nil {
		return err
	}
	return s.Drain(r.Context(), name, cmp.Or(strings.TrimSpace(word.Why), "no reason was given"))
}

func (s *Server) giveBack(_ http.ResponseWriter, r *http.Request) error {
	name, err := s.known(r)
	if err != nil {
		return err
	}
	return s.Return(r.Context(), name)
}

func (s *Server) askTest(_ http.ResponseWriter, r *http.Request) error {
	name, err := s.known(r)
	if err != nil {
		return err
	}
	return s.Test(r.Context(), name, "an operator asks for it")
}

func (s *Server) known(r *http.Request) (string, error) {
	name := r.PathValue("name")
	_, gpu, several := strings.Cut(name, "/")
	if _, ok := s.credential(name); !ok || several && !gpuNumber.MatchString(gpu) {
		return "", refuse(http.StatusNotFound, "no runner has the name %q (kernelgate fleet list shows the names)", name)
	}
	return name, nil
}
