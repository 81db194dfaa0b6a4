package embedded

import (
	"net/http"
	"strings"
	"time"
)

// SetSlowDeliveryLists makes each page of an App's deliveries take a time, as it does at GitHub
// where there are hundreds of thousands; zero ends that. A client that hangs up waits no longer.
func (s *Server) SetSlowDeliveryLists(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = d
}

// listsInTime waits where a list is slow, and tells whether the client is still there.
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
