package serve_test

import (
	"testing"

	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/policies/strict/stricttest"
)

// The reference is made from tags, and what they say of every key is held against
// the parser.
func TestReference(t *testing.T) {
	language := stricttest.Language{
		Of: serve.Config{},
		Files: []string{
			"{github: {app_id: 7, private_key_file: /k/key.pem, webhook_secret_file: /k/hook}, url: 'https://a.example', pages: {client_id: a, client_secret_file: /k/b}, runner: {}, log: {}, runners: [{name: a, labels: [l4], token_file: /k/a}], limits: [{repository: a/b}], sweeps: [{repository: a/b}], watch: [{repository: a/b}], notify: [{name: a, url_file: /k/url}], telemetry: {endpoint: 'http://a:4318'}, mcp: {tokens_file: /k/agents}}",
			"{github: {token_file: /k/token, repositories: [a/b], webhook_secret_file: /k/hook}, nats: 'nats://a:4222'}",
			"{github: {token_file: /k/token, repositories: [a/b], webhook_secret_file: /k/hook}, nats: 'tls://a:4222', nats_certificate_file: /k/tls.crt, nats_key_file: /k/tls.key}",
		},
		Parse: func(text []byte) (any, error) { return load(t, string(text), nil, nil) },
	}
	language.InStep(t, "../../docs/operate/configuration.md", *update)
	language.Check(t)
}
