package agent

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/runners"
)

// TestSilentServer checks a server whose process hangs: it neither refuses a connection nor breaks
// it. Whatever the request, the next server is asked within seconds, and a job continues there.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"lease", "bundle", "result"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			asked, over := make(chan string, 1000), make(chan struct{})
			silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if path.Base(r.URL.Path) != at {
					f.ServeHTTP(w, r)
					return
				}
				asked <- at
				<-over
			}))
			t.Cleanup(func() { close(over); silent.Close() })
			c := f.config()
			c.Servers, c.Patience = []string{silent.URL, f.URL}, time.Second // a busy machine must not look silent
			stop, _ := f.run(c)
			if at == "lease" {
				next(t, asked, "the silent server to be asked")
			}
			for range cap(f.jobs) { // some jobs reach nobody, because the runner has lost patience
				f.hand("job", 1)
			}
			f.result()
			if at != "lease" {
				next(t, asked, "the silent server to have been asked")
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSlowServer checks that a server is not silent while bytes flow, however long that takes, and
// that the agent waits longer each time for a slow server.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	const patience = 50 * time.Millisecond
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path.Base(r.URL.Path) {
		case "bundle":
			for i := range f.bundle { // in total far beyond the patience
				_, _ = w.Write(f.bundle[i : i+1])
				if i%(len(f.bundle)/8) == 0 {
					w.(http.Flusher).Flush()
					<-time.After(patience / 2)
				}
			}
		case "result":
			<-time.After(3 * patience)
			f.ServeHTTP(w, r)
		default:
			f.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(slow.Close)
	c := f.config()
	c.Servers, c.Patience = []string{slow.URL}, patience
	stop, _ := f.run(c)
	for range cap(f.jobs) {
		f.hand("job", 1)
	}
	f.result()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestStaysWithItsServer checks that a request that the runner itself cancels, such as the hold
// request at the end of a job, is no reason to leave a server.
func TestStaysWithItsServer(t *testing.T) {
	t.Parallel()
	f, other := newFake(t), newFake(t)
	held := make(chan struct{}, 10)
	holds := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) == "hold" {
			held <- struct{}{}
			<-r.Context().Done()
			return
		}
		f.ServeHTTP(w, r)
	}))
	t.Cleanup(holds.Close)
	c := f.config()
	c.Servers = []string{holds.URL, other.URL}
	c.Measure = func(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error) {
		next(t, held, "the runner to show that it is alive")
		return quick(ctx, job, scratch, p)
	}
	stop, _ := f.run(c)
	for token := range uint64(3) {
		f.hand("job", token+1)
		f.result()
	}
	next(t, f.asked, "the first question")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if n := len(other.asked); n > 0 {
		t.Errorf("the other server was asked %d times for a job", n)
	}
}

// TestAsksAllServersAtOnce checks that a runner does not pause while there are servers that it has
// not asked.
func TestAsksAllServersAtOnce(t *testing.T) {
	t.Parallel()
	f, away := newFake(t), newFake(t)
	away.answer("lease", http.StatusServiceUnavailable)
	paused := make(chan time.Duration, 1000)
	c := f.config()
	c.Servers = []string{away.URL, away.URL, f.URL}
	c.After = func(d time.Duration) <-chan time.Time {
		paused <- d
		return hurried(d)
	}
	stop, _ := f.run(c)
	next(t, f.asked, "the third server to be asked")
	if len(paused) > 0 {
		t.Errorf("it has paused for %v", <-paused)
	}
	if len(away.asked) != 2 {
		t.Errorf("the others were asked %d times", len(away.asked))
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
