// Package tracetest provides a collector of OpenTelemetry traces for tests. It implements OTLP over
// HTTP and records what it receives. It stores nothing beyond the test and checks no contents.
package tracetest

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A Collector receives traces.
type Collector struct {
	URL string

	t       testing.TB
	mu      sync.Mutex
	spans   []Span
	bodies  [][]byte
	headers []http.Header
	news    chan struct{} // closed when something arrives
}

// A Span is a received span. Its ids are in hex.
type Span struct {
	Trace, ID, Parent, Name string
	From, To                uint64 // nanoseconds since 1970
	Failed                  bool
	About                   map[string]string
}

// New starts a collector that ends with the test.
func New(t testing.TB) *Collector {
	c := &Collector{t: t, news: make(chan struct{})}
	s := httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var all tracepb.TracesData
	if err == nil {
		err = proto.Unmarshal(body, &all)
	}
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.t.Errorf("the collector is sent %s %s of the type %q: %v", r.Method, r.URL.Path, r.Header.Get("Content-Type"), err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies, c.headers = append(c.bodies, body), append(c.headers, r.Header.Clone())
	for _, resource := range all.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, read(s))
			}
		}
	}
	close(c.news)
	c.news = make(chan struct{})
}

func read(s *tracepb.Span) Span {
	about := map[string]string{}
	for _, a := range s.Attributes {
		about[a.Key] = a.Value.GetStringValue()
		if about[a.Key] == "" {
			about[a.Key] = a.Value.String()
		}
	}
	return Span{
		Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId), Name: s.Name,
		From: s.StartTimeUnixNano, To: s.EndTimeUnixNano, Failed: s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR, About: about,
	}
}

// Spans returns the spans received so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// WaitFor returns once enough accepts the received spans.
func (c *Collector) WaitFor(ctx context.Context, enough func([]Span) bool) []Span {
	c.t.Helper()
	for {
		c.mu.Lock()
		spans, news := slices.Clone(c.spans), c.news
		c.mu.Unlock()
		if enough(spans) {
			return spans
		}
		select {
		case <-news:
		case <-ctx.Done():
			c.t.Fatalf("it did not come; there are %d spans", len(spans))
		}
	}
}

// Holds reports whether any request contained these bytes.
func (c *Collector) Holds(secret []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.bodies, func(b []byte) bool { return bytes.Contains(b, secret) })
}

// Header returns a header of the last request.
func (c *Collector) Header(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.headers) == 0 {
		return ""
	}
	return c.headers[len(c.headers)-1].Get(name)
}
