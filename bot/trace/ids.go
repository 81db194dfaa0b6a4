package trace

import (
	"context"
	"crypto/rand"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// derived gives spans the ids that follow from what they are about, where others are part
// of them, and any other where nobody needs to know.
type derived struct{}

var _ sdk.IDGenerator = derived{}

type idKey struct{}

type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

func (derived) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if own, ok := ctx.Value(idKey{}).(ids); ok {
		return own.trace, own.span
	}
	var id trace.TraceID
	_, _ = rand.Read(id[:]) // never fails
	return id, random()
}

func (derived) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if own, ok := ctx.Value(idKey{}).(ids); ok {
		return own.span
	}
	return random()
}

func random() (id trace.SpanID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}
