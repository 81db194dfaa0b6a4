package client

import "context"

// A Priority says how much of GitHub's allowance of writes a write leaves for more urgent ones. An
// urgent write waits for room. Any other write is refused with ErrShed if there is no room, so that
// a verdict never waits behind it.
type Priority int

const (
	// Urgent is for writes that somebody waits for: a verdict, a reply, a merge group. It may use
	// the whole allowance.
	Urgent Priority = iota
	// Routine leaves a sixth of the allowance.
	Routine
	// Backlog leaves a third of the allowance and is spread over the hour.
	Backlog
	// spare writes may use a third of the allowance that the others leave: the busier the hour, the
	// fewer spare writes.
	spare
)

type priorityKey struct{}

// WithPriority sets the priority of the writes in a context. The default is Urgent.
func WithPriority(ctx context.Context, p Priority) context.Context {
	return context.WithValue(ctx, priorityKey{}, p)
}

// LowPriority marks the writes in a context as optional, such as the progress of a measurement. If
// there is little room for writes, they fail with ErrShed and nothing is sent.
func LowPriority(ctx context.Context) context.Context { return WithPriority(ctx, spare) }

func priorityOf(ctx context.Context) Priority {
	p, _ := ctx.Value(priorityKey{}).(Priority)
	return p
}

// Shed returns an error that is ErrShed if a write in the repository, with the priority of the
// context, would find no room. It saves callers the work of preparing such a write.
func (h *GitHub) Shed(ctx context.Context, repo string) error {
	c, err := h.clientOf(ctx, repo)
	if err == nil {
		err = c.throttle.spared(priorityOf(ctx))
	}
	return h.explain(op{name: "write what can wait"}, repo, nil, err)
}
