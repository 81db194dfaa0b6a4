package journal

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// A journal that does not answer when processing begins is asked again: nobody starts the bot a second time for it.
func TestProcessBeginsWhenTheJournalAnswers(t *testing.T) {
	t.Parallel()
	p := newProxy(t, external(t))
	j := p.open(t, Options{answerIn: 200 * time.Millisecond})
	lost := make(chan struct{}, 1)
	var silent atomic.Bool
	silent.Store(true)
	p.losing(func([]byte) bool {
		if !silent.Load() {
			return false
		}
		select {
		case lost <- struct{}{}:
		default:
		}
		return true
	})
	handled := make(chan string, 1)
	processing(t, j, func(_ context.Context, d webhook.Delivery) error { handled <- d.ID; return nil })
	for range 2 { // the second answer is to the second attempt
		next(t, lost)
	}
	silent.Store(false)
	ctx := testContext(t)
	for {
		_, err := j.Accept(ctx, webhook.Delivery{ID: "a", Event: "push"})
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	if id := next(t, handled); id != "a" {
		t.Errorf("handled %q", id)
	}
}

// What is written of the place and cannot be read is told, since no waiting mends it.
func TestProcessEndsAtAGarbledPlace(t *testing.T) {
	t.Parallel()
	j := open(t, Options{})
	if _, err := j.state.kv.Put(testContext(t), placeKey, []byte("{")); err != nil {
		t.Fatal(err)
	}
	err := j.Process(testContext(t), func(context.Context, webhook.Delivery) error { return nil })
	if !errors.Is(err, errGarbled) {
		t.Errorf("Process ended with %v", err)
	}
}
