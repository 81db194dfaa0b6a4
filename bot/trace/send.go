package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A sender posts spans to a collector. OpenTelemetry's own exporter would add gRPC as a dependency,
// which OTLP over HTTP does not need.
type sender struct {
	url    string
	header http.Header
	client http.Client
	log    *slog.Logger

	mu      sync.Mutex
	failing bool // the failure was already logged
}

func newSender(o Options) (*sender, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the endpoint of traces is no address (write e.g. http://collector:4318)")
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + "/v1/traces"
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	return &sender{
		url: u.String(), header: o.Header, log: o.Log,
		client: http.Client{
			Timeout: o.Timeout, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: time.Minute},
			// The operator configured this one address, so do not follow redirects.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func (*sender) Start(context.Context) error { return nil }

func (s *sender) Stop(context.Context) error {
	s.client.CloseIdleConnections()
	return nil
}

// UploadTraces sends once. If that fails, the spans are lost, and it returns no error. The log says
// when sending starts to fail and when it works again.
func (s *sender) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	err := s.post(ctx, spans)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil && !s.failing:
		s.log.Warn("traces cannot be sent; those of now are lost", "err", err)
	case err == nil && s.failing:
		s.log.Info("traces are sent again")
	}
	s.failing = err != nil
	return nil
}

func (s *sender) post(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// TracesData has the same wire format as ExportTraceServiceRequest.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, values := range s.header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := s.client.Do(r)
	if err != nil {
		// Drop the address, which may contain a key.
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be reused
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answers %s", resp.Status)
	}
	return nil
}
