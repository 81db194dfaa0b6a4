package embedded

import (
	"net/http"
	"strings"
	"time"
)

// SetSlowDeliveryLists delays each page of an App's list of deliveries by d. GitHub is as slow when
// there are hundreds of thousands of deliveries. Zero ends the delay. A client that hangs up ends
// its wait.
func (s *Server) SetSlowDeliveryLists(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = d
}

// listsInTime delays a request for the list of deliveries, and reports whether the client is still
// connected.
func (s *Server) listsInTime(r *http.Request) bool {
	s.mu.Lock()
	slow := s.slow
	s.mu.Unlock()
	if slow <= 0 || r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/app/hook/deliveries") {
		return true
	}
	select {
	case <-time.After(slow):
		return true
	case <-r.Context().Done():
	case <-s.ctx.Done():
	}
	return false
}
