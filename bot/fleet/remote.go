package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// A Remote is a bot on a different host whose fleet an operator manages.
type Remote struct {
	HTTP  *http.Client
	Base  string // https://host
	Token string // the operator's
}

// List returns the runners.
func (r Remote) List(ctx context.Context) (all []Listed, err error) {
	return all, r.ask(ctx, http.MethodGet, "runners", nil, &all)
}

// Drain makes a runner finish its job and take no more.
func (r Remote) Drain(ctx context.Context, name, why string) error {
	return r.ask(ctx, http.MethodPost, "runners/"+url.PathEscape(name)+"/drain", Decision{Why: why}, nil)
}

// Return makes a runner take jobs again.
func (r Remote) Return(ctx context.Context, name string) error {
	return r.ask(ctx, http.MethodPost, "runners/"+url.PathEscape(name)+"/return", nil, nil)
}

// Test makes a runner test itself before its next job.
func (r Remote) Test(ctx context.Context, name string) error {
	return r.ask(ctx, http.MethodPost, "runners/"+url.PathEscape(name)+"/test", nil, nil)
}

func (r Remote) ask(ctx context.Context, method, path string, message, into any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(r.Base, "/")+OperatorPrefix+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.Token)
	resp, err := r.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("asking the bot: %w", err)
	}
	defer resp.Body.Close()
	const most = 16 << 20
	answer, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return fmt.Errorf("asking the bot: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the bot answers %d: %s", resp.StatusCode, strings.TrimSpace(string(answer)))
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("reading the bot's answer: %w (run the same version of both)", err)
	}
	return nil
}
