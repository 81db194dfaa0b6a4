// Package trace sends OpenTelemetry traces of the way from a webhook to a verdict: one trace per
// head of a change, with a span for every step. Nothing waits for it. Spans that a collector does
// not accept in time are lost, and nothing else is.
//
// The ids of a trace are derived from its subject: the trace's id from the change and the head, a
// run's span from its job. Bots that take turns at a change therefore contribute to one trace
// without knowing about each other.
//
//	change              from the first webhook until GitHub shows the verdict
//	  accept            a webhook, until it is in the journal as an event
//	  look              GitHub is asked for the pull request
//	  plan              the planner, git included
//	  run               one kernel, until its verdict
//	    queue           waiting for a runner
//	    measure         at the runner that delivered the evidence
//	      build, correctness, sanitize, performance (with each round), profile
//	    judge
//	  publish           a write to GitHub of more than progress
//
// Spans contain the names of repositories, kernels and runners, commits and verdicts. They contain
// no text that people wrote and no text of errors, which may quote anything.
package trace

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/kernelgate/kernelgate/bot/change"
)

// A Head is the subject of one trace.
type Head struct {
	Change change.ID
	SHA    string
	Repo   string // its current name
}

// A Span is one completed step in the life of a head.
type Span struct {
	Name     string
	From, To time.Time
	Err      error // set if the step failed; its text is not sent
	About    []attribute.KeyValue

	key   string // set if other spans are part of this one
	under string // key of the span that it is part of; empty for the change itself
	root  bool   // this span is the change itself
}

// Options says where to send traces.
type Options struct {
	Endpoint string      // base URL of a collector for OTLP over HTTP, without /v1/traces
	Header   http.Header // sent with every request
	Version  string      // of this program
	Instance string      // identifies the bot
	Log      *slog.Logger

	Every   time.Duration // sending interval; defaults to 5 s
	Timeout time.Duration // of one request; defaults to 10 s
}

// A Tracer sends spans. A nil Tracer sends nothing.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer

	mu    sync.Mutex
	begun *lru.Cache[trace.TraceID, time.Time] // start of the first step of each head
}

// remembered is the number of heads kept in memory.
const remembered = 10_000

// Open starts to send. It does not check that the endpoint exists.
func Open(o Options) (*Tracer, error) {
	to, err := newSender(o)
	if err != nil {
		return nil, err
	}
	exporter := otlptrace.NewUnstarted(to)
	begun, err := lru.New[trace.TraceID, time.Time](remembered)
	if err != nil {
		return nil, err
	}
	if o.Every == 0 {
		o.Every = 5 * time.Second
	}
	about := resource.NewSchemaless(
		attribute.String("service.name", "kernelgate"), attribute.String("service.version", o.Version), attribute.String("service.instance.id", o.Instance),
	)
	provider := sdk.NewTracerProvider(
		// The queue is bounded and drops what does not fit: callers never wait.
		sdk.WithBatcher(exporter, sdk.WithBatchTimeout(o.Every), sdk.WithExportTimeout(to.client.Timeout)),
		sdk.WithSampler(sdk.AlwaysSample()), sdk.WithResource(about), sdk.WithIDGenerator(derived{}),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer("github.com/kernelgate/kernelgate"), begun: begun}, nil
}

// closing is the time limit for the last spans at shutdown.
const closing = 2 * time.Second

// Close sends the remaining spans, within a short time limit.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // the sender has logged the error
}

// Tell adds spans to the trace of a head. It does nothing without a head.
func (t *Tracer) Tell(h Head, spans ...Span) {
	if t == nil || h.SHA == "" {
		return
	}
	for _, s := range spans {
		t.noteBegin(h, s.From)
		t.tell(h, s)
	}
}

// Concluded ends the trace of a head, when GitHub shows the verdict. since is when the journal
// first saw the head; a span of this bot may have started earlier.
func (t *Tracer) Concluded(h Head, since, at time.Time, outcome string) {
	if t == nil || h.SHA == "" {
		return
	}
	t.tell(h, Span{Name: "change", From: t.noteBegin(h, since), To: at, root: true, About: []attribute.KeyValue{attribute.String("kernelgate.outcome", outcome)}})
}

// noteBegin records and returns when the first step of a head began.
func (t *Tracer) noteBegin(h Head, from time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	first, ok := t.begun.Get(h.TraceID())
	if !ok || from.Before(first) {
		first = from
		t.begun.Add(h.TraceID(), first)
	}
	return first
}

func (t *Tracer) tell(h Head, s Span) {
	ctx := context.Background()
	if !s.root {
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: h.TraceID(), SpanID: h.spanID(s.under), TraceFlags: trace.FlagsSampled, Remote: true,
		}))
	}
	if s.root || s.key != "" {
		ctx = context.WithValue(ctx, idKey{}, ids{h.TraceID(), h.spanID(s.key)})
	}
	if s.From.IsZero() {
		s.From = s.To
	}
	_, span := t.tracer.Start(ctx, s.Name, trace.WithTimestamp(s.From), trace.WithAttributes(h.about()...), trace.WithAttributes(s.About...))
	if s.Err != nil {
		span.SetStatus(codes.Error, "")
		span.SetAttributes(attribute.String("error.type", sort(s.Err)))
	}
	span.End(trace.WithTimestamp(later(s.From, s.To)))
}

// later prevents a step from ending before it began, because the times may come from two clocks.
func later(from, to time.Time) time.Time {
	if to.Before(from) {
		return from
	}
	return to
}

// sort returns one word for an error, instead of its text.
func sort(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return "failed"
}

func (h Head) about() []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String("kernelgate.change", h.Change.String()), attribute.String("vcs.repository.name", h.Repo), attribute.String("vcs.ref.head.revision", h.SHA),
	}
	if h.Change.Kind == change.Pull {
		all = append(all, attribute.Int("vcs.change.id", h.Change.Number))
	}
	return all
}

// TraceID returns the same id on every bot.
func (h Head) TraceID() (id trace.TraceID) {
	sum := sha256.Sum256(fmt.Appendf(nil, "kernelgate %s %s", h.Change, h.SHA))
	copy(id[:], sum[:])
	return id
}

// spanID returns the id of the span with a key. The empty key means the change itself.
func (h Head) spanID(key string) (id trace.SpanID) {
	sum := sha256.Sum256(fmt.Appendf(nil, "kernelgate %s %s %s", h.Change, h.SHA, key))
	copy(id[:], sum[:])
	return id
}

// derived provides derived ids for spans that have children, and random ids for others.
type derived struct{}

var _ sdk.IDGenerator = derived{}

type idKey struct{}

type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

// NewIDs is called only for the change itself, which has no parent and whose ids are derived.
func (derived) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	own, _ := ctx.Value(idKey{}).(ids)
	return own.trace, own.span
}

func (derived) NewSpanID(ctx context.Context, _ trace.TraceID) (id trace.SpanID) {
	if own, ok := ctx.Value(idKey{}).(ids); ok {
		return own.span
	}
	_, _ = rand.Read(id[:]) // never fails
	return id
}
