package agent

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// Answers that end a job.
var (
	errLost      = errors.New("the job was given to another runner, or is finished")
	errCancelled = errors.New("the job was cancelled")
)

// A statusError is an unexpected status from the server.
type statusError struct {
	code int
	text string
}

func (e statusError) Error() string { return fmt.Sprintf("the server answers %d: %s", e.code, e.text) }

// gone reports whether the job no longer belongs to this runner.
func gone(err error) bool {
	return errors.Is(err, errLost) || errors.Is(err, errCancelled) || errors.Is(err, ErrRefused)
}

// final reports whether a retry would change nothing.
func final(err error) bool {
	if gone(err) {
		return true
	}
	var status statusError
	return errors.As(err, &status) && status.code/100 == 4 &&
		status.code != http.StatusRequestTimeout && status.code != http.StatusTooManyRequests
}

// Limits on the duration of requests; none of them limits the job itself.
const (
	holdTimeout = time.Minute // the server answers within half of it
	beatTimeout = 5 * time.Second
	moveTimeout = 30 * time.Minute // for bundles, artifacts and results
)

// A client speaks the protocol to one of the servers: the one that last answered. The servers share
// a journal, so that any of them can continue where another stopped.
type client struct {
	ways  []way
	at    atomic.Int64 // counts up; modulo the number of ways it is the current way
	token string
	gpu   string        // see protocol.GPUHeader
	ask   time.Duration // how long a server may delay the answer that there is no job

	patience atomic.Int64 // how long a server may be silent, as a time.Duration
	mu       sync.Mutex
	moved    chan struct{} // closed when the client switches to the next way
}

// next switches to the next way, unless the client has already switched since at.
func (c *client) next(at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.CompareAndSwap(at, at+1) {
		close(c.moved)
		c.moved = make(chan struct{})
	}
}

// leaving returns a channel that is closed when the client switches to a different way.
func (c *client) leaving() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moved
}

// A way leads to one server.
type way struct {
	http *http.Client
	base string
}

func newClient(c Config) (*client, error) {
	if strings.TrimSpace(c.Token) == "" {
		return nil, errors.New("there is no token: the operator of the bot creates one for each runner")
	}
	if len(c.Servers) == 0 {
		return nil, errors.New("there is no server: name the bot's address")
	}
	all := &client{token: c.Token, gpu: c.GPU, ask: c.Patience * 3 / 4, moved: make(chan struct{})}
	all.patience.Store(int64(c.Patience))
	for _, server := range c.Servers {
		client, base, err := Dial(server, c.CA)
		if err != nil {
			return nil, err
		}
		all.ways = append(all.ways, way{client, base})
	}
	return all, nil
}

// Dial returns an HTTP client for a bot, and the base address to use with it. The server is
// unix:///path, https://host, or http:// on this host. ca is a file with certificates to trust in
// addition to the system's; "" is none.
func Dial(server, ca string) (*http.Client, string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, "", fmt.Errorf("the server's address %q: %w", server, err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	base := strings.TrimSuffix(server, "/")
	switch {
	case u.Scheme == "unix" && u.Host == "" && u.Path != "":
		base = "http://localhost"
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", u.Path)
		}
	case u.Scheme == "https" && u.Host != "":
	case u.Scheme == "http" && isLoopback(u.Hostname()):
		transport.Proxy = nil
	case u.Scheme == "http":
		return nil, "", fmt.Errorf("the server's address %q would send the token unencrypted: use https://", server)
	default:
		return nil, "", fmt.Errorf("the server's address %q is neither unix:///path nor https://host", server)
	}
	if transport.TLSClientConfig, err = trust(ca); err != nil {
		return nil, "", err
	}
	return &http.Client{Transport: transport, CheckRedirect: noRedirect}, base, nil
}

// noRedirect keeps the token from other servers.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func trust(file string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file == "" {
		return config, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates to trust: %w", err)
	}
	if config.RootCAs, err = x509.SystemCertPool(); err != nil {
		config.RootCAs = x509.NewCertPool()
	}
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate (it must be in PEM form)", file)
	}
	return config, nil
}

// do sends a request and returns the answer if its status is good. It gives up on a server that
// falls silent meanwhile.
func (c *client) do(ctx context.Context, method, path string, body io.Reader, header http.Header) (*http.Response, error) {
	return c.within(ctx, time.Duration(c.patience.Load()), method, path, body, header)
}

// within is do with a different patience.
func (c *client) within(ctx context.Context, patience time.Duration, method, path string, body io.Reader, header http.Header) (*http.Response, error) {
	l := listen(ctx, patience)
	resp, err := c.try(l, method, path, body, header)
	if err != nil {
		l.end()
		return nil, l.why(err)
	}
	resp.Body = l.of(resp.Body)
	return resp, nil
}

func (c *client) try(l *listening, method, path string, body io.Reader, header http.Header) (*http.Response, error) {
	at := c.at.Load()
	way := c.ways[at%int64(len(c.ways))]
	req, err := http.NewRequestWithContext(l.ctx, method, way.base+protocol.Prefix+path, body)
	if err != nil {
		return nil, err
	}
	if req.Body != nil {
		req.Body = struct {
			io.Reader
			io.Closer
		}{sent{req.Body, l}, req.Body}
	}
	for key, values := range header {
		req.Header[key] = values
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if c.gpu != "" {
		req.Header.Set(protocol.GPUHeader, c.gpu)
	}
	resp, err := way.http.Do(req)
	if err != nil && !l.ended() || err == nil && resp.StatusCode >= 500 {
		c.next(at)
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNoContent {
		return resp, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
	status := statusError{resp.StatusCode, strings.TrimSpace(string(text))}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return nil, fmt.Errorf("%w: it does not know the token (check it, or ask the operator of the bot for a new one)", ErrRefused)
	case http.StatusForbidden:
		return nil, fmt.Errorf("%w: %s", ErrRefused, status.text)
	case http.StatusConflict:
		return nil, errLost
	case http.StatusGone:
		return nil, errCancelled
	}
	return nil, status
}

// post sends JSON and waits for the answer up to timeout. It decodes the answer only if into is
// set.
func (c *client) post(ctx context.Context, timeout time.Duration, path string, message, into any) error {
	resp, err := c.send(ctx, timeout, path, message)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if into == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(into); err != nil {
		return fmt.Errorf("reading the server's answer: %w", err)
	}
	return nil
}

func (c *client) send(ctx context.Context, patience time.Duration, path string, message any) (*http.Response, error) {
	data, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	return c.within(ctx, patience, http.MethodPost, path, bytes.NewReader(data), http.Header{"Content-Type": {"application/json"}})
}

// lease waits for a job. If the answer names none, there was none.
func (c *client) lease(ctx context.Context, ask protocol.LeaseRequest) (*protocol.LeaseResponse, error) {
	var l protocol.LeaseResponse
	ask.Wait = c.ask.Seconds()
	if err := c.post(ctx, c.ask+time.Duration(c.patience.Load()), "lease", ask, &l); err != nil {
		return nil, err
	}
	if l.Job == "" {
		return &l, nil
	}
	if !protocol.JobID(l.Job) || !(l.Heartbeat > 0) || l.Heartbeat > l.Lease {
		return nil, fmt.Errorf("the server sent a job that this runner cannot read (run the same version of both): %+v", l)
	}
	return &l, nil
}

// beat reports the job's progress and the part of its log that the server does not have. It returns
// how much of the log the server then has.
func (c *client) beat(ctx context.Context, l protocol.LeaseResponse, log *runners.Log, known int, h *protocol.Health) (int, error) {
	var answer protocol.HeartbeatResponse
	b := protocol.Heartbeat{Token: l.Token, Progress: log.Latest(), From: known, Said: log.After(known, protocol.MostSaid), Health: h}
	err := c.post(ctx, beatTimeout, "jobs/"+l.Job+"/beat", b, &answer)
	if errors.Is(err, io.EOF) { // a server that keeps no log
		err = nil
	}
	return answer.Said, err
}

// hold keeps a request open that shows the server that this process is alive.
func (c *client) hold(ctx context.Context, l protocol.LeaseResponse) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	left := c.leaving()
	go func() { // follow the heartbeats to the next server
		select {
		case <-left:
			cancel()
		case <-ctx.Done():
		}
	}()
	resp, err := c.within(ctx, holdTimeout, http.MethodGet, "jobs/"+l.Job+"/hold?token="+strconv.FormatUint(l.Token, 10), nil, nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (c *client) release(ctx context.Context, l protocol.LeaseResponse) error {
	return c.post(ctx, beatTimeout, "jobs/"+l.Job+"/release", protocol.Release{Token: l.Token}, nil)
}

// bundle copies the job's bundle to w.
func (c *client) bundle(ctx context.Context, l protocol.LeaseResponse, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	resp, err := c.do(ctx, http.MethodGet, "jobs/"+l.Job+"/bundle?token="+strconv.FormatUint(l.Token, 10), nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(w, resp.Body)
	return err
}

func (c *client) artifact(ctx context.Context, job string, token uint64, name string, content []byte) error {
	path := fmt.Sprintf("jobs/%s/artifacts/%s?token=%d", job, url.PathEscape(name), token)
	return c.upload(ctx, http.MethodPut, path, content, http.Header{"Content-Type": {"application/octet-stream"}})
}

// result sends a result that is already gzipped JSON.
func (c *client) result(ctx context.Context, job string, zipped []byte) error {
	return c.upload(ctx, http.MethodPost, "jobs/"+job+"/result", zipped, http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}})
}

func (c *client) upload(ctx context.Context, method, path string, content []byte, header http.Header) error {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	resp, err := c.do(ctx, method, path, bytes.NewReader(content), header)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
