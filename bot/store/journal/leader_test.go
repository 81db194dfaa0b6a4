package journal

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
)

// A question that nobody answers is asked again, and the first answer counts; so is one that finds nobody who leads. Anything else is
// the answer.
func TestAskUntilLed(t *testing.T) {
	const whole = 5 * time.Second
	broken := errors.New("broken")
	type ask = func(ctx context.Context, n int) (string, error)
	for name, c := range map[string]struct {
		ask    ask
		answer string
		err    error
		asked  int
		after  time.Duration
	}{
		"at once":    {func(context.Context, int) (string, error) { return "yes", nil }, "yes", nil, 1, 0},
		"what fails": {func(context.Context, int) (string, error) { return "", broken }, "", broken, 1, 0},
		"slowly": {func(ctx context.Context, _ int) (string, error) {
			select {
			case <-time.After(3 * askAgain / 2):
				return "yes", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}, "yes", nil, 2, 3 * askAgain / 2},
		"nobody at all":    {func(ctx context.Context, _ int) (string, error) { <-ctx.Done(); return "", ctx.Err() }, "", context.DeadlineExceeded, 10, whole},
		"nobody who leads": {func(context.Context, int) (string, error) { return "", nats.ErrNoResponders }, "", nats.ErrNoResponders, 50, whole},
		"the first is lost": {func(ctx context.Context, n int) (string, error) {
			if n == 1 {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "yes", nil
		}, "yes", nil, 2, askAgain},
		"nobody leads at first": {func(_ context.Context, n int) (string, error) {
			if n == 1 {
				return "", nats.ErrNoResponders
			}
			return "yes", nil
		}, "yes", nil, 2, reconnectWait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), whole-time.Nanosecond)
				defer cancel()
				start := time.Now()
				var asked atomic.Int64
				answer, err := askUntilLed(ctx, func(ctx context.Context) (string, error) {
					return c.ask(ctx, int(asked.Add(1)))
				})
				if answer != c.answer || !errors.Is(err, c.err) || int(asked.Load()) != c.asked || time.Since(start).Round(time.Millisecond) != c.after {
					t.Errorf("%q, %v, asked %d times in %v", answer, err, asked.Load(), time.Since(start))
				}
			})
		})
	}
}
