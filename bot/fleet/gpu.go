package fleet

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/kernelgate/kernelgate/runners/protocol"
)

// A host with several GPUs has one token and one name, and one runner for each GPU: gpu1/0, gpu1/1.
// Each runner has its own leases, health and availability. A decision about gpu1 applies to all of
// them.

var gpuNumber = regexp.MustCompile(`^[0-9]{1,3}$`)

// gpuOf returns the number of the GPU in a runner's full name.
func gpuOf(name string, r *http.Request) (string, error) {
	gpu := r.Header.Get(protocol.GPUHeader)
	switch {
	case gpu == "":
		return name, nil
	case !gpuNumber.MatchString(gpu):
		return name, refuse(http.StatusBadRequest, "%s: %q is not the number of a GPU", protocol.GPUHeader, gpu)
	}
	return name + "/" + gpu, nil
}

// hostOf returns the name that the token belongs to.
func hostOf(name string) string {
	host, _, _ := strings.Cut(name, "/")
	return host
}

// within reports whether a runner has this name, or belongs to the host of this name.
func within(name, of string) bool { return name == of || hostOf(name) == of }

// credential returns what the bot knows about a runner's token.
func (s *Server) credential(name string) (Credential, bool) {
	c, ok := s.Tokens[hostOf(name)]
	return c, ok
}

// names returns the runners that a name means: that runner, and the known GPUs of that host.
func (s *Server) names(of string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []string{of}
	for name := range s.seen {
		if name != of && within(name, of) {
			all = append(all, name)
		}
	}
	return all
}
