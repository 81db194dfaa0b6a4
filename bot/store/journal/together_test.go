package journal

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Bots that start together with the servers of an empty cluster wait for the servers, and one of them creates the streams: each
// stream is configured once, and the lock is gone afterwards.
func TestOpenTogether(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ctx := testContext(t)
	journals := make([]*Journal, 3)
	var all sync.WaitGroup
	for i := range journals {
		all.Go(func() {
			j, err := Open(ctx, Options{URL: c.URLs, Replicas: 3, Name: fmt.Sprint("bot", i)})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { j.Close() })
			journals[i] = j
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	var names []string
	for info := range journals[0].js.ListStreams(ctx).Info() {
		names = append(names, info.Config.Name)
	}
	if len(names) != len(order) {
		t.Errorf("streams: %v", names)
	}
	fill(t, ctx, journals[0])
	if e, err := journals[1].Last(ctx, "run1"); err != nil || e.Kind != "queued" {
		t.Errorf("another bot reads %v, %v", e, err)
	}
}

// Of two that would create the streams the second waits until the first has done so.
func TestSetupTakesTurns(t *testing.T) {
	t.Parallel()
	srv := external(t)
	j := &Journal{opt: Options{URL: srv.ClientURL()}.withDefaults()}
	ctx := testContext(t)
	if err := j.connect(ctx); err != nil {
		t.Fatal(err)
	}
	defer j.nc.Close()
	var err error
	if j.js, err = jetstream.New(j.nc); err != nil {
		t.Fatal(err)
	}
	first := j.takeSetup(ctx)
	waits := make(chan struct{})
	go func() {
		defer close(waits)
		j.takeSetup(ctx)()
	}()
	select {
	case <-waits:
		t.Error("two create at once")
	case <-time.After(3 * reconnectWait):
	}
	first()
	<-waits
	if _, err := j.js.Stream(ctx, setupStream); err == nil {
		t.Error("the lock is still there")
	}
}

// A bot that finds no server waits for one, and ends with what to check where none comes.
func TestConnectWaits(t *testing.T) {
	t.Parallel()
	_, err := Open(testContext(t), Options{URL: "nats://127.0.0.1:1", ledIn: 3 * reconnectWait})
	if err == nil || !strings.Contains(err.Error(), "check the address and the credentials") {
		t.Error(err)
	}
}
