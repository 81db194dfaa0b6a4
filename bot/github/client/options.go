package client

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"
)

// Options say which GitHub it is and how patient to be with it. The zero value is
// github.com with GitHub's own limits.
type Options struct {
	BaseURL   string            // github.com unless given; Enterprise: https://host or https://host/api/v3
	GitURL    string            // where repositories are cloned from; follows from BaseURL unless given
	Transport http.RoundTripper // Go's own with the proxy of the environment unless given
	// MayWrite is asked before each try of a write is sent; its error is the answer then, and nothing was sent.
	MayWrite  func(context.Context) error
	UserAgent string
	Checks    bool // the token is the one of GitHub Actions, which may create check runs
	Statuses  bool // verdicts go into commit statuses, even where check runs could be created
	Log       *slog.Logger

	Timeout          time.Duration // of one try, 30 s unless given
	Retries          int           // further tries after a fault, 5 unless given, none if negative
	ContentPerMinute int           // writes, 75 unless given: GitHub allows 80
	ContentPerHour   int           // writes, 480 unless given: GitHub allows 500
	CacheBytes       int           // answers kept for conditional requests, 16 MiB unless given, none if negative

	Now    func() time.Time
	Sleep  func(context.Context, time.Duration) error
	Jitter func() float64 // in [0, 1)
}

// A Reason is which limit demands a wait.
type Reason string

// The reasons to wait.
const (
	Primary   Reason = "primary"   // requests an hour
	Secondary Reason = "secondary" // too much at once, says GitHub
	Throttle  Reason = "throttle"  // too many writes, says the client itself before GitHub does
	Backoff   Reason = "backoff"   // after a fault
)

func (o Options) withDefaults() Options {
	o.UserAgent = cmp.Or(o.UserAgent, "kernelgate")
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.Retries = cmp.Or(o.Retries, 5)
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

// sleep ends early, with an error, where ctx does.
func sleep(ctx context.Context, d time.Duration) error {
	wait, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-wait.Done()
	return ctx.Err()
}
