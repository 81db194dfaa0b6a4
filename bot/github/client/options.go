package client

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"
)

// Options configures the client: which GitHub it uses, its time limits and its rate limits. The
// zero value is github.com with the limits of github.com.
type Options struct {
	BaseURL   string            // defaults to github.com; Enterprise: https://host or https://host/api/v3
	GitURL    string            // root of the clone URLs; defaults to the host of BaseURL
	Transport http.RoundTripper // defaults to Go's, with the proxy of the environment
	// MayWrite is called before each attempt of a write. If it returns an error, nothing is sent
	// and the caller gets that error.
	MayWrite  func(context.Context) error
	UserAgent string
	Checks    bool // the token is that of GitHub Actions, which may create check runs
	Statuses  bool // use commit statuses even where check runs are possible
	Log       *slog.Logger

	Timeout          time.Duration // for one attempt; defaults to 30 s
	ContentPerMinute int           // writes; defaults to 75, GitHub allows 80
	ContentPerHour   int           // writes; defaults to 480, GitHub allows 500
	CacheBytes       int           // answers kept for conditional requests; defaults to 16 MiB, negative for none

	Now    func() time.Time
	Sleep  func(context.Context, time.Duration) error
	Jitter func() float64 // returns a number in [0, 1)
}

// A Reason names the limit that requires a wait.
type Reason string

// The reasons to wait.
const (
	Primary   Reason = "primary"   // requests per hour
	Secondary Reason = "secondary" // too many requests at once, by GitHub's answer
	Throttle  Reason = "throttle"  // too many writes, by the client's own count
	Backoff   Reason = "backoff"   // after a fault
)

func (o Options) withDefaults() Options {
	o.UserAgent = cmp.Or(o.UserAgent, "kernelgate")
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.ContentPerMinute = cmp.Or(o.ContentPerMinute, 75)
	o.ContentPerHour = cmp.Or(o.ContentPerHour, 480)
	o.CacheBytes = cmp.Or(o.CacheBytes, 16<<20)
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	return o
}

// sleep waits for d. It ends early with an error if ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	wait, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-wait.Done()
	return ctx.Err()
}
