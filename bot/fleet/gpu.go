package fleet

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/kernelgate/kernelgate/runners/protocol"
)

// A host with several GPUs has one token and one name, and is a runner for each GPU: gpu1/0, gpu1/1. Each has its own leases,
// health and duty; what an operator decides on gpu1 holds for all of them.

var gpuNumber = regexp.MustCompile(`^[0-9]{1,3}$`)

// gpuOf is which of its GPUs a runner speaks for, by its whole name.
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

// hostOf is the name that the token has.
func hostOf(name string) string {
	host, _, _ := strings.Cut(name, "/")
	return host
}

// within tells whether a runner is that one, or one of that host's.
func within(name, of string) bool { return name == of || hostOf(name) == of }

// credential is what the bot knows of a runner's token.
func (s *Server) credential(name string) (Credential, bool) {
	c, ok := s.Tokens[hostOf(name)]
	return c, ok
}

// names is the runners that somebody means by a name: that one, and the GPUs of the host that were heard of.
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
