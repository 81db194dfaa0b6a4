package serve

import (
	"net/http"
	"net/textproto"
	"os"
	"strings"

	"github.com/kernelgate/kernelgate/bot/trace"
)

// Telemetry is who is told how long each step of a change took.
type Telemetry struct {
	Endpoint    string       `yaml:"endpoint" eg:"http://collector:4318" default:"(OTEL_EXPORTER_OTLP_ENDPOINT; if that is empty, no traces)" doc:"Base address of an OpenTelemetry collector that accepts traces over HTTP (OTLP, at /v1/traces). The bot never waits for the collector: traces that it does not accept are lost."`
	HeadersFile string       `yaml:"headers_file" eg:"/etc/kernelgate/collector.headers" doc:"File with headers that the collector requires, such as an API key. Each line is Name: value."`
	Headers     inlineSecret `yaml:"headers" doc:"Refused: use headers_file."`
}

// envOTLP is OpenTelemetry's own name for the address.
const envOTLP = "OTEL_EXPORTER_OTLP_ENDPOINT"

// overrideTelemetry takes the address from where OpenTelemetry's programs do, where nothing else
// names one.
func (r *reading) overrideTelemetry() {
	const path = "telemetry.endpoint"
	if text := r.from.Getenv(envOTLP); text != "" && r.Telemetry.Endpoint == "" {
		r.Telemetry.Endpoint, r.origin[path] = text, envOTLP
	}
}

func (c *checker) checkTelemetry() {
	c.web("telemetry.endpoint", c.Telemetry.Endpoint, "http://collector:4318")
	if c.Telemetry.HeadersFile != "" && c.Telemetry.Endpoint == "" {
		c.at("telemetry.headers_file", "has no effect without an endpoint (write e.g. endpoint: http://collector:4318)")
	}
	if strings.Contains(c.Telemetry.HeadersFile, ": ") {
		c.at("telemetry.headers_file", "is a header, and should be the name of a file that holds it")
	}
}

// readHeaders reads lines with Name: value.
func (r *secretReader) readHeaders(key, file string) http.Header {
	all := http.Header{}
	for i, line := range strings.Split(string(r.file(key, file, 0)), "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !ok || value == "" || !headerName(name) || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			r.problems.add("%s: line %d of %s is not a header (write e.g. Authorization: Bearer and the key)", key, i+1, file)
			continue
		}
		all.Add(textproto.CanonicalMIMEHeaderKey(name), value)
	}
	return all
}

func headerName(name string) bool {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	}
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool { return !plain(c) })
}

// tracer is what steps are told to, or nil where nobody wants to know.
func (s *Server) tracer() (*trace.Tracer, error) {
	if s.opt.Telemetry.Endpoint == "" {
		return nil, nil
	}
	host, _ := os.Hostname() // without one a collector cannot tell bots apart
	return trace.Open(trace.Options{
		Endpoint: s.opt.Telemetry.Endpoint, Header: s.opt.Secrets.Telemetry, Version: s.opt.Version, Instance: host, Log: s.log, Every: s.opt.TraceEvery,
	})
}
