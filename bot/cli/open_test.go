package cli

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/pages"
)

// lineWriter passes on the first line.
type lineWriter struct{ line chan string }

func (w lineWriter) Write(p []byte) (int, error) {
	w.line <- string(p)
	return len(p), nil
}

// TestOpen checks that open serves a folder to this host, but not under a foreign name that
// resolves to it.
func TestOpen(t *testing.T) {
	results, err := pages.OpenFolder("kernels/sdpa_fp8/evidence/everywhere", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	out, ended := lineWriter{make(chan string, 1)}, make(chan error, 1)
	go func() { ended <- servePages(ctx, "127.0.0.1:0", results, out) }()
	var said string
	select {
	case said = <-out.line:
	case err := <-ended:
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(said, " at ")
	address := strings.Fields(rest)[0]
	for host, want := range map[string]int{"": http.StatusOK, "localhost:1234": http.StatusOK, "evil.example": http.StatusMisdirectedRequest} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != want || strings.Contains(string(body), "sdpa_fp8") != (want == http.StatusOK) {
			t.Errorf("as %q: %s %v", host, answer.Status, err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"everywhere": {[]string{"open", "kernels", "--listen", "0.0.0.0:0"}, "not a loopback address"},
		"no folder":  {[]string{"open", "no-such-folder"}, "kernelgate check writes them"},
		"no policy":  {[]string{"open", "kernels", "--policy", "no-such-policy"}, "no-such-policy"},
	} {
		var stderr bytes.Buffer
		if status := Run(tt.args, io.Discard, &stderr); status != exitInput || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%s: %d %s", name, status, stderr.String())
		}
	}
}
