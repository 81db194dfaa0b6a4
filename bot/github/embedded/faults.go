package embedded

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// A FaultKind is one way for a call of the API to go wrong.
type FaultKind string

// The kinds of faults. Each but LostAnswer leaves the hub's state as it was.
const (
	ServerError FaultKind = "500"
	BadGateway  FaultKind = "502"
	unavailable FaultKind = "503"
	TooMany     FaultKind = "429"         // with Retry-After
	Secondary   FaultKind = "secondary"   // 403 with Retry-After
	Reset       FaultKind = "reset"       // the connection breaks before the call is carried out
	LostAnswer  FaultKind = "lost answer" // the call is carried out, then the connection breaks
)

// Faults make a fraction of the API's calls fail. Whether a call fails depends on
// Seed, its method, its path and how often it was made before, and on nothing
// else: the same story has the same faults, whatever the scheduling.
type Faults struct {
	Rate       float64
	Seed       uint64
	Kinds      []FaultKind              // all unless given
	RetryAfter time.Duration            // one second unless given
	Only       func(*http.Request) bool // which calls; all unless given
}

// SetFaults starts faults; the zero value ends them.
func (s *Server) SetFaults(f Faults) {
	if len(f.Kinds) == 0 {
		f.Kinds = []FaultKind{ServerError, BadGateway, unavailable, TooMany, Secondary, Reset, LostAnswer}
	}
	f.RetryAfter = max(f.RetryAfter, time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
	clear(s.seen)
}

type fault struct {
	kind FaultKind
	Faults
}

func (s *Server) drawFault(r *http.Request) fault {
	f := s.faults
	if f.Rate <= 0 || (f.Only != nil && !f.Only(r)) {
		return fault{}
	}
	call := r.Method + " " + r.URL.RequestURI()
	s.seen[call]++
	h := fnv.New64a()
	h.Write([]byte(call))
	h.Write(binary.LittleEndian.AppendUint64(nil, s.seen[call]))
	draw := rand.New(rand.NewPCG(f.Seed, h.Sum64()))
	if draw.Float64() >= f.Rate {
		return fault{}
	}
	return fault{kind: f.Kinds[draw.IntN(len(f.Kinds))], Faults: f}
}

// before says whether the fault has ended the call before it was carried out.
func (f fault) before(w http.ResponseWriter) bool {
	fail := func(err *apiError) bool {
		for name, values := range err.Header {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(err.Status)
		_ = json.NewEncoder(w).Encode(err.body()) // whoever hung up wants no answer
		return true
	}
	switch f.kind {
	case ServerError:
		return fail(&apiError{Status: 500, Message: "Server Error"})
	case BadGateway:
		return fail(&apiError{Status: 502, Message: "Server Error"})
	case unavailable:
		return fail(&apiError{Status: 503, Message: "No server is currently available to service your request. Sorry about that. Please try resubmitting your request."})
	case TooMany, Secondary:
		err := secondary(f.RetryAfter, "Please wait a few minutes before you try again.")
		if f.kind == TooMany {
			err.Status = http.StatusTooManyRequests
		}
		return fail(err)
	case Reset:
		breakConnection(w)
		return true
	}
	return false
}

// breakConnection sends a TCP reset, not an orderly end.
func breakConnection(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it the end is merely orderly
	}
	_ = conn.Close()
}
