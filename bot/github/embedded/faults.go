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

// A FaultKind is one way in which an API call can fail.
type FaultKind string

// The kinds of faults. All except LostAnswer leave the hub's state unchanged.
const (
	ServerError FaultKind = "500"
	BadGateway  FaultKind = "502"
	Unavailable FaultKind = "503"
	TooMany     FaultKind = "429"         // with Retry-After
	Secondary   FaultKind = "secondary"   // 403 with Retry-After
	Reset       FaultKind = "reset"       // the connection breaks before the call is executed
	LostAnswer  FaultKind = "lost answer" // the call is executed, then the connection breaks
)

// Faults makes a fraction of the API calls fail. Whether a call fails depends only on Seed, its
// method, its path and how often it was made before. The same scenario therefore has the same
// faults under any scheduling.
type Faults struct {
	Rate       float64
	Seed       uint64
	Kinds      []FaultKind              // defaults to all
	RetryAfter time.Duration            // defaults to one second
	Only       func(*http.Request) bool // which calls; defaults to all
}

// SetFaults starts injecting faults; the zero value stops it.
func (s *Server) SetFaults(f Faults) {
	if len(f.Kinds) == 0 {
		f.Kinds = []FaultKind{ServerError, BadGateway, Unavailable, TooMany, Secondary, Reset, LostAnswer}
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

// before injects the faults that strike before the call is executed, and reports whether it ended
// the call.
func (f fault) before(w http.ResponseWriter) bool {
	fail := func(err *apiError) bool {
		for name, values := range err.Header {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(err.Status)
		_ = json.NewEncoder(w).Encode(err.body()) // the client may have hung up
		return true
	}
	switch f.kind {
	case ServerError:
		return fail(&apiError{Status: 500, Message: "Server Error"})
	case BadGateway:
		return fail(&apiError{Status: 502, Message: "Server Error"})
	case Unavailable:
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

// breakConnection sends a TCP reset instead of closing the connection in an orderly way.
func breakConnection(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it, Close sends FIN, not RST
	}
	_ = conn.Close()
}
