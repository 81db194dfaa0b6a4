package client

import "context"

// A Priority says how much of the writes that GitHub allows a write leaves to more urgent
// ones. An urgent write waits for room. Any other is refused where there is none, with
// ErrSpared, so that a verdict never waits behind it.
type Priority int

const (
	// Urgent is for what somebody waits for: a verdict, a reply, a merge group. It may use
	// every write.
	Urgent Priority = iota
	// Routine leaves a sixth of the writes.
	Routine
	// Backlog leaves a third of the writes, and spreads over the hour.
	Backlog
	// spare writes take a third of what the others leave: the fuller the hour, the fewer
	// there are.
	spare
)

type priorityKey struct{}

// WithPriority marks what is written in a context. Without, it is urgent.
func WithPriority(ctx context.Context, p Priority) context.Context {
	return context.WithValue(ctx, priorityKey{}, p)
}

// LowPriority marks what is written in a context as something that can be left out, such as
// how far a measurement is. Where there is little room for writes it is: the error is
// ErrSpared then, and nothing was sent.
func LowPriority(ctx context.Context) context.Context { return WithPriority(ctx, spare) }

func priorityOf(ctx context.Context) Priority {
	p, _ := ctx.Value(priorityKey{}).(Priority)
	return p
}

// Shed is an error that is ErrSpared where a write in the repository, with the priority of
// the context, would find no room: it saves whoever prepares one the trouble.
func (h *GitHub) Shed(ctx context.Context, repo string) error {
	c, err := h.clientOf(ctx, repo)
	if err == nil {
		err = c.throttle.spared(priorityOf(ctx))
	}
	return h.explain(op{name: "write what can wait"}, repo, nil, err)
}
