package journal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// Whenever the line to the server is cut, every delivery that was accepted is handled soon after, though handling and
// acknowledging were under way, and though some fail at first.
func TestEveryDeliveryIsHandledAfterAnyDisconnect(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	p := newProxy(t, external(t))
	j := p.open(t, Options{answerIn: 200 * time.Millisecond, Retry: []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond}})
	ctx := testContext(t)

	const senders, each, cuts = 8, 25, 12
	happened := make(chan struct{}, 10*senders*each)
	var mu sync.Mutex
	accepted, handled := map[string]bool{}, map[string]bool{}
	complete := make(chan struct{})
	check := sync.OnceFunc(func() { close(complete) })
	sent := false
	done := func() { // with the lock held
		if !sent {
			return
		}
		for id := range accepted {
			if !handled[id] {
				return
			}
		}
		check()
	}
	processing(t, j, func(_ context.Context, d webhook.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		happened <- struct{}{}
		if len(d.Body) > 0 && !handled["failed "+d.ID] {
			handled["failed "+d.ID] = true
			return errors.New("not at first")
		}
		handled[d.ID] = true
		done()
		return nil
	})
	var all sync.WaitGroup
	for g := range senders {
		all.Go(func() {
			for i := range each {
				d := webhook.Delivery{ID: fmt.Sprintf("d-%d-%d", g, i), Event: "push", Body: make([]byte, (i%5)/4*3000)}
				// As GitHub's redelivery, until it is accepted.
				for ctx.Err() == nil {
					if _, err := j.Accept(ctx, d); err == nil {
						break
					}
				}
				mu.Lock()
				accepted[d.ID] = true
				mu.Unlock()
				happened <- struct{}{}
			}
		})
	}
	for range cuts {
		for range 1 + r.IntN(12) {
			select {
			case <-happened:
			case <-ctx.Done():
				t.Fatal("nothing happens any more")
			}
		}
		p.cut()
	}
	all.Wait()
	mu.Lock()
	sent = true
	done()
	left := len(accepted)
	for id := range accepted {
		if handled[id] {
			left--
		}
	}
	mu.Unlock()
	last := time.Now()
	select {
	case <-complete:
		t.Logf("%d accepted over %d cuts; the last %d were handled within %v of the last acceptance", len(accepted), cuts, left, time.Since(last))
	case <-ctx.Done():
		t.Errorf("seed %d: %d of %d accepted deliveries are not handled", seed, left, len(accepted))
	}
}
