package controller_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// asks takes a job as a runner does, says once that it has it, and is never heard of again. It reports the lease, if there was
// one.
func (w *world) asks() (l protocol.LeaseResponse) {
	w.Helper()
	if w.tells("lease", protocol.LeaseRequest{Protocol: protocol.Version, Runner: "runner", Labels: []string{"cpu"}}, &l); l.Job != "" {
		w.tells("jobs/"+l.Job+"/beat", protocol.Heartbeat{Token: l.Token}, &protocol.HeartbeatResponse{})
	}
	return l
}

// tells sends a runner's message, and reads the answer if there is one.
func (w *world) tells(path string, message, answer any) {
	w.Helper()
	body, err := json.Marshal(message)
	w.no(err)
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, "http://"+w.addr+protocol.Prefix+path, bytes.NewReader(body))
	w.no(err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	w.no(err)
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		w.no(json.NewDecoder(resp.Body).Decode(answer))
	}
}

// A kernel that takes its runner along every time ends as ERROR, with what is known,
// and nobody gets it again.
func TestRunnersThatDieEveryTime(t *testing.T) {
	w := newWorld(t, worldOptions{absent: true, lease: 200 * time.Millisecond})
	pr := w.propose("deadly", "// speed 1.5\n", embedded.PROptions{})
	jobs := map[string]bool{}
	for leases := 0; leases < 3; {
		if l := w.asks(); l.Job != "" {
			jobs[l.Job] = true
			leases++
		}
	}
	c := w.concluded(pr.HeadSHA(), "failure")
	if len(jobs) != 1 || !strings.Contains(c.Title, "runner") {
		t.Errorf("%v, and the check says %q", jobs, c.Title)
	}
	w.said(pr, "the job has lost its runner 3 times and is not redelivered: runner had the job from")
	if l := w.asks(); l.Job != "" {
		t.Errorf("handed out once more: %+v", l)
	}
}
