package fleet

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

// A runner whose process ends is known to be gone by its connection: with a lease of an hour, the job is another's after
// three beats.
func TestDeadRunnerIsNoticed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	w.enqueue("l4", "job")
	// The agent's network is cut as the kernel does when a process is killed: everything at once, with no goodbye.
	begun, killed := make(chan struct{}), make(chan struct{})
	var dials cut
	stop := w.run("bob", func(ctx context.Context, _ runners.Job, _ string, _ runners.Progress) (runners.Measured, error) {
		close(begun)
		<-killed
		<-ctx.Done()
		return runners.Measured{}, ctx.Err()
	}, func(c *agent.Config) { c.Servers = []string{"unix://" + dials.between(t, w.socket)} })
	next(t, begun, "bob at work")
	w.holding(1)
	dials.sever()
	close(killed)
	w.lease("ann", "l4", "job", 2)
	go stop() // it cannot say goodbye
}

// The last heartbeat of a runner that died may arrive after its connection broke. It does not save the lease.
func TestLastHeartbeatOfADeadRunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	w.server.Heartbeat = 3 * time.Second // the heartbeat arrives within it, on a busy machine too
	w.enqueue("l4", "job")
	w.lease("bob", "l4", "job", 1)
	w.breakHold()
	status, answer := w.post("bob's", "jobs/job/beat", protocol.Heartbeat{Token: 1})
	w.expect("the heartbeat that was on its way", http.StatusOK, status, answer)
	w.lease("ann", "l4", "job", 2)
}

// A runner whose connection broke and that goes on to beat keeps its job.
func TestBrokenConnectionIsNoLoss(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	w.server.Heartbeat = 400 * time.Millisecond // enough for a busy machine to send two
	w.enqueue("l4", "job")
	w.lease("bob", "l4", "job", 1)
	w.breakHold()
	for range 2 {
		status, answer := w.post("bob's", "jobs/job/beat", protocol.Heartbeat{Token: 1})
		w.expect("a beat", http.StatusOK, status, answer)
	}
	// Nobody else gets it, though the time has passed in which it was to be heard again.
	w.server.Poll = 1500 * time.Millisecond
	status, answer := w.post("ann's", "lease", protocol.LeaseRequest{Protocol: protocol.Version, Runner: "ann", Labels: []string{"l4"}})
	w.expect("ann asks", http.StatusNoContent, status, answer)
	status, answer = w.post("bob's", "jobs/job/result", resultOf(1))
	w.expect("the result", http.StatusOK, status, answer)
}

// breakHold opens the connection by which bob holds the job, and breaks it.
func (w *world) breakHold() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		req, err := http.NewRequestWithContext(ctx, "GET", "http://localhost"+protocol.Prefix+"jobs/job/hold?token=1", nil)
		if err != nil {
			w.t.Error(err)
			return
		}
		req.Header.Set("Authorization", "Bearer bob's")
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", w.socket)
		}}
		defer transport.CloseIdleConnections()
		if resp, err := transport.RoundTrip(req); err == nil {
			resp.Body.Close()
		}
	}()
	w.holding(1)
	cancel()
	next(w.t, ended, "the end of the request")
	w.holding(0)
}
