// Package trace tells an OpenTelemetry collector how each head of a change went from its
// webhook to its verdict: one trace for a head, with a span for every step. Nothing waits
// for it. What a collector does not take in time is lost, and nothing else is.
//
// A trace is known by what it is about: its id follows from the change and the head, a
// run's span from its job. So bots that take turns at a change tell one trace, and none
// needs to have heard of what another told.
//
//	change              from the first webhook until GitHub shows the verdict
//	  accept            a webhook, until it is in the journal as an event
//	  look              GitHub is asked for the pull request
//	  plan              the planner, git included
//	  run               one kernel, until its verdict
//	    queue           waiting for a runner
//	    measure         at the runner that brought the evidence
//	      build, correctness, sanitize, performance (with each round), profile
//	    judge
//	  publish           a write to GitHub of more than progress
//
// Spans bear names of repositories, kernels and runners, commits and verdicts: no text that
// people wrote, and no error's, which may quote anything.
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

// A Head is what one trace is about.
type Head struct {
	Change change.ID
	SHA    string
	Repo   string // as it is called now
}

// A Span is one step on the way of a head, once it is over.
type Span struct {
	Name     string
	From, To time.Time
	Err      error // that the step failed; its text is not told
	About    []attribute.KeyValue

	key   string // of a span that others are part of
	under string // the key of the one that it is a part of; "" is the change itself
	root  bool   // it is the change itself
}

// Options is where traces are sent.
type Options struct {
	Endpoint string      // base URL of a collector that takes OTLP over HTTP; /v1/traces is below it
	Header   http.Header // with every request
	Version  string      // of this program
	Instance string      // tells one bot from another
	Log      *slog.Logger

	Every   time.Duration // how often what was told is sent; 5 s unless given
	Timeout time.Duration // of one request; 10 s unless given
}

// A Tracer sends what it is told. A nil one has nobody to send it to.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer

	mu    sync.Mutex
	begun *lru.Cache[trace.TraceID, time.Time] // when the first step of a head began
}

// remembered is how many heads are kept in memory.
const remembered = 10_000

// Open begins to send. It asks nobody whether the endpoint is there.
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
		// Its queue is bounded, and what does not fit is dropped: whoever tells a span never waits.
		sdk.WithBatcher(exporter, sdk.WithBatchTimeout(o.Every), sdk.WithExportTimeout(to.client.Timeout)),
		sdk.WithSampler(sdk.AlwaysSample()), sdk.WithResource(about), sdk.WithIDGenerator(derived{}),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer("github.com/kernelgate/kernelgate"), begun: begun}, nil
}

// closing is how long the last spans may take at the end.
const closing = 2 * time.Second

// Close sends what is left, if that is taken within a moment.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // the sender has said what went wrong
}

// Tell adds steps to the trace of a head. Without a head there is nothing to tell of.
func (t *Tracer) Tell(h Head, spans ...Span) {
	if t == nil || h.SHA == "" {
		return
	}
	for _, s := range spans {
		t.noteBegin(h, s.From)
		t.tell(h, s)
	}
}

// Concluded tells that GitHub shows the verdict on a head, which ends its trace. since is when
// the journal heard of the head; a step that this bot has told of may have begun before.
func (t *Tracer) Concluded(h Head, since, at time.Time, outcome string) {
	if t == nil || h.SHA == "" {
		return
	}
	t.tell(h, Span{Name: "change", From: t.noteBegin(h, since), To: at, root: true, About: []attribute.KeyValue{attribute.String("kernelgate.outcome", outcome)}})
}

// noteBegin remembers when a head's first step began.
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

// later keeps a step from ending before it began: two clocks may have been read.
func later(from, to time.Time) time.Time {
	if to.Before(from) {
		return from
	}
	return to
}

// sort is a word for an error, in place of its text.
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

// TraceID is the same for whoever asks.
func (h Head) TraceID() (id trace.TraceID) {
	sum := sha256.Sum256(fmt.Appendf(nil, "kernelgate %s %s", h.Change, h.SHA))
	copy(id[:], sum[:])
	return id
}

// spanID names the span of that key, "" being the change itself.
func (h Head) spanID(key string) (id trace.SpanID) {
	sum := sha256.Sum256(fmt.Appendf(nil, "kernelgate %s %s %s", h.Change, h.SHA, key))
	copy(id[:], sum[:])
	return id
}

// derived gives spans the ids that follow from what they are about, where others are part
// of them, and any other where nobody needs to know.
type derived struct{}

var _ sdk.IDGenerator = derived{}

type idKey struct{}

type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

// NewIDs is asked for the change itself alone, which is part of nothing and whose ids are derived.
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
