package fleet

import (
	"net/http"

	"github.com/kernelgate/kernelgate/bot/fleet/protocol"
)

// earlier tells a runner what is known of the machine code that it has built.
func (s *Server) earlier(w http.ResponseWriter, r *http.Request, name string) error {
	b, err := s.built(w, r, name)
	if err != nil {
		return err
	}
	answer, err := s.Results.Earlier(r.Context(), r.PathValue("id"), b.Token, b.Code)
	if err != nil {
		return err
	}
	patience(w, transfer)
	return answerJSON(w, answer)
}

// begin counts an attempt before the runner measures its first round.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, name string) error {
	b, err := s.built(w, r, name)
	if err != nil {
		return err
	}
	n, err := s.Results.Begin(r.Context(), r.PathValue("id"), b.Token, b.Code)
	if err != nil {
		return err
	}
	return answerJSON(w, protocol.BeginAnswer{Attempt: n})
}

// built reads what a runner says that it has built, if the job is its own.
func (s *Server) built(w http.ResponseWriter, r *http.Request, name string) (b protocol.Built, err error) {
	if err := readJSON(w, r, small, &b); err != nil {
		return b, err
	}
	if b.Code.Candidate == "" || b.Code.Device == "" {
		return b, refuse(http.StatusBadRequest, "name the candidate's machine code and the device")
	}
	l, err := s.attach(r, name, b.Token)
	if err != nil {
		return b, err
	}
	s.note(name, s.at(l))
	return b, nil
}
