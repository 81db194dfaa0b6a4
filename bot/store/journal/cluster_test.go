package journal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/bot/store/journal/natstest"
)

// A cluster is three servers, each a process.
type cluster struct{ *natstest.Servers }

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return &cluster{natstest.New(t, clusterPorts(t))}
}

// clusterPorts are two for each of three servers.
func clusterPorts(t *testing.T) []string {
	t.Helper()
	var held []net.Listener
	var ports []string
	for range 2 * 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, l)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		ports = append(ports, port)
	}
	for _, l := range held {
		l.Close()
	}
	return ports
}

// open waits until the cluster has a leader.
func (c *cluster) open(t *testing.T, o Options) *Journal {
	t.Helper()
	o.URL = c.URLs
	ctx := testContext(t)
	for {
		j, err := Open(ctx, o)
		if err == nil {
			t.Cleanup(func() { j.Close() })
			return j
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// One cluster for all: its first leaders take five seconds to be found.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	t.Run("replicas", c.replicas)
	t.Run("reads what it wrote", c.reads)
	t.Run("health", c.health)
	t.Run("deleted twice", func(t *testing.T) { deletesTwice(t, c.open(t, Options{Replicas: 3})) })
	t.Run("servers killed", c.killed)
	t.Run("a silent server", c.silent)
}

func replicasOf(t *testing.T, j *Journal) map[int]int {
	t.Helper()
	count := map[int]int{}
	for info := range j.js.ListStreams(testContext(t)).Info() {
		count[info.Config.Replicas]++
	}
	return count
}

// Copies are made on as many servers as were asked for, opening takes none away, and the error of a cluster that is too small says
// what to change.
func (c *cluster) replicas(t *testing.T) {
	first := c.open(t, Options{})
	if got := replicasOf(t, first); len(got) != 1 || got[1] != len(order) {
		t.Errorf("streams by replicas: %v, want all with 1", got)
	}
	fill(t, testContext(t), first)
	for _, asked := range []int{3, 0, 1} {
		j := c.open(t, Options{Replicas: asked})
		if got := replicasOf(t, j); len(got) != 1 || got[3] != len(order) {
			t.Errorf("after %d replicas were asked for, streams by replicas: %v, want all with 3", asked, got)
		}
		if asked == 1 {
			verify(t, testContext(t), j)
		}
	}
	alone := external(t)
	_, err := Open(testContext(t), Options{URL: alone.ClientURL(), Replicas: 3})
	if err == nil || !strings.Contains(err.Error(), "3 copies need as many servers in the cluster") {
		t.Errorf("three copies on one server: %v", err)
	}
	if _, err := Open(testContext(t), Options{Dir: t.TempDir(), Replicas: 3}); err == nil || !strings.Contains(err.Error(), "give the URLs of a cluster") {
		t.Errorf("three copies in the embedded server: %v", err)
	}
}

// What was just written is read back, whichever server answers: no job, lease or event is missing.
func (c *cluster) reads(t *testing.T) {
	j := c.open(t, Options{Replicas: 3})
	ctx := testContext(t)
	var all sync.WaitGroup
	var failures atomic.Int32
	fail := func(what string, err error) {
		if failures.Add(1) < 5 {
			t.Errorf("%s: %v", what, err)
		}
	}
	for g := range 8 {
		all.Go(func() {
			for i := range 10 {
				id := fmt.Sprintf("job-%d-%d", g, i)
				job, err := j.PutJob(ctx, "l4", id, []byte("b"))
				if err != nil {
					fail("put a job", err)
					return
				}
				if there, err := j.StoredJob(ctx, "l4", id); err != nil || there.Seq != job {
					fail("read a job", fmt.Errorf("%d after %d: %w", there.Seq, job, err))
				}
				revision, err := j.WriteLease(ctx, id, i, 0)
				if err != nil {
					fail("write a lease", err)
					return
				}
				var rec int
				if got, err := j.ReadLease(ctx, id, &rec); err != nil || got != revision || rec != i {
					fail("read a lease", fmt.Errorf("%d at %d after %d: %w", rec, got, revision, err))
				}
				seq, err := j.Append(ctx, id, 0, "kind", i)
				if err != nil {
					fail("append", err)
				}
				if last, err := j.Last(ctx, id); err != nil || last.Seq != seq {
					fail("last", fmt.Errorf("%d after %d: %w", last.Seq, seq, err))
				}
				if got, err := j.ReplayRun(ctx, id, func(Event) error { return nil }); err != nil || got != seq {
					fail("replay", fmt.Errorf("%d after %d: %w", got, seq, err))
				}
				if err := j.DeleteJob(ctx, job); err != nil {
					fail("delete a job", err)
				}
			}
		})
	}
	all.Wait()
}

// kills is how often a server is killed; KERNELGATE_CLUSTER_KILLS asks for more.
func kills() int {
	if n, err := strconv.Atoi(os.Getenv("KERNELGATE_CLUSTER_KILLS")); err == nil {
		return n
	}
	return 2
}

// One server after the other is killed and comes back, while deliveries come and are handled: each that was accepted is
// stored once and handled, and the events read back.
func (c *cluster) killed(t *testing.T) {
	j := c.open(t, Options{Replicas: 3})
	ctx, stop := context.WithCancel(testContext(t))
	defer stop()
	before, err := j.deliveries.Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	accepted, handled := map[string]bool{}, map[string]int{}
	var longest time.Duration
	var all sync.WaitGroup
	all.Go(func() {
		err := j.Process(ctx, func(_ context.Context, d webhook.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			handled[d.ID]++
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	enough := make(chan struct{})
	var callers sync.WaitGroup
	for g := range 6 {
		callers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-enough:
					return
				case <-time.After(10 * time.Millisecond): // a server that comes back must be able to catch up
				}
				d := webhook.Delivery{ID: fmt.Sprintf("d-%d-%d", g, i), Event: "push", Body: make([]byte, 2000)}
				for { // as GitHub's redelivery does
					start := time.Now()
					_, err := j.Accept(ctx, d)
					mu.Lock()
					longest = max(longest, time.Since(start))
					accepted[d.ID] = accepted[d.ID] || err == nil
					done := accepted[d.ID]
					mu.Unlock()
					if done || ctx.Err() != nil {
						break
					}
				}
				var seq uint64
				run := fmt.Sprintf("run-%d", g)
				if last, err := j.Last(ctx, run); err == nil {
					seq = last.Seq
				} else if !errors.Is(err, ErrNotFound) {
					continue
				}
				if _, err := j.Append(ctx, run, seq, "kind", d.ID); errors.Is(err, ErrConflict) {
					t.Logf("run %s: %v", run, err) // its own, whose answer was lost
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range kills() {
		i := rng.IntN(c.Len())
		c.Kill(i)
		had := len(snapshot(&mu, accepted))
		eventually(t, "deliveries are accepted without a server", func() bool { return len(snapshot(&mu, accepted)) > had+20 })
		c.Start(i)
		eventually(t, "all servers are there again", func() bool { return current(ctx, j) })
	}
	close(enough)
	callers.Wait()
	eventually(t, "everything that was accepted is handled", func() bool {
		mu.Lock()
		defer mu.Unlock()
		for id, ok := range accepted {
			if ok && handled[id] == 0 {
				return false
			}
		}
		return true
	})
	info, err := j.deliveries.Info(ctx)
	if err != nil || int(info.State.Msgs-before.State.Msgs) != len(accepted) {
		t.Errorf("%d deliveries are stored, %d were accepted (%v)", info.State.Msgs-before.State.Msgs, len(accepted), err)
	}
	events := 0
	if _, err := j.Replay(ctx, 0, func(Event) error { events++; return nil }); err != nil {
		t.Error(err)
	}
	if info, err := j.events.Info(ctx); err != nil || int(info.State.Msgs) != events {
		t.Errorf("%d events were read of %d (%v)", events, info.State.Msgs, err)
	}
	twice := 0
	for _, n := range handled {
		if n > 1 {
			twice++
		}
	}
	t.Logf("%d kills: %d deliveries accepted, %d handled twice, the longest wait %v, %d events", kills(), len(accepted), twice, longest.Round(time.Millisecond), events)
	stop()
	all.Wait()
}

func snapshot(mu *sync.Mutex, m map[string]bool) map[string]bool {
	mu.Lock()
	defer mu.Unlock()
	got := map[string]bool{}
	for k, v := range m {
		if v {
			got[k] = true
		}
	}
	return got
}

// current tells whether every copy of every stream is there and up to date.
func current(ctx context.Context, j *Journal) bool {
	ctx, cancel := context.WithTimeout(ctx, healthWithin) // a server that dies over the question does not answer
	defer cancel()
	streams := 0
	for info := range j.js.ListStreams(ctx).Info() {
		streams++
		if info.Cluster == nil || info.Cluster.Leader == "" || len(info.Cluster.Replicas) != 2 {
			return false
		}
		for _, r := range info.Cluster.Replicas {
			if r.Offline || !r.Current {
				return false
			}
		}
	}
	return streams == len(order)
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// A server that falls silent without closing its connections is left within seconds.
func (c *cluster) silent(t *testing.T) {
	j := c.open(t, Options{Replicas: 3})
	ctx := testContext(t)
	i := 0
	for !strings.HasSuffix(j.nc.ConnectedUrl(), c.Addr(i)) {
		i++
	}
	if err := c.Signal(i, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for n := 0; ; n++ {
		if _, err := j.Accept(ctx, webhook.Delivery{ID: "silent", Event: "push"}); err == nil {
			break
		} else if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("the journal hung on a silent server for %v", took)
	} else {
		t.Logf("accepted %v after its server fell silent", took.Round(time.Millisecond))
	}
}
