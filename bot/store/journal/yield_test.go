package journal

import (
	"context"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/compat"
)

const (
	older = "v0.1.0"
	newer = "v0.2.0"
)

// A leader finishes its work and gives the lead to a newer bot. It does not take the lead back while the newer bot is alive.
// A second older bot does not take the lead in between.
func TestNewerVersionLeads(t *testing.T) {
	t.Parallel()
	url := external(t).ClientURL()
	open := func(name, version string) *Journal {
		return open(t, Options{URL: url, Name: name, Version: version, LeadFor: 4 * time.Second})
	}
	a, b, c := open("a", older), open("b", older), open("c", newer)
	working, released := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(testContext(t))
	ended := make(chan error, 1)
	go func() {
		first := true
		ended <- a.Campaign(ctx, func(ctx context.Context) error {
			if !first {
				t.Error("the older bot leads again")
				return nil
			}
			first = false
			close(working)
			<-ctx.Done()
			<-released // it finishes what it is doing
			if _, err := a.Append(context.WithoutCancel(ctx), "run", 0, "last", 1); err != nil {
				t.Errorf("the leader cannot finish its work: %v", err)
			}
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	next(t, working)
	ledB, _ := leading(t, b)
	ledC, _ := leading(t, c)
	eventually(t, "the newer one announces itself", func() bool {
		is, _, err := getRecord[candidate](testContext(t), c.leases, candidateKey)
		return err == nil && is == candidate{Name: "c", Version: newer}
	})
	if c.Leads() {
		t.Error("the newer bot leads while the older one works")
	}
	close(released)
	next(t, ledC)
	if c.epoch() != 2 {
		t.Errorf("the newer bot leads with epoch %d: another led in between", c.epoch())
	}
	if last, err := c.Last(testContext(t), "run"); err != nil || last.Writer != (compat.Writer{Version: older, Reader: newer}) {
		t.Errorf("%+v, %v", last, err)
	}
	select {
	case <-ledB:
		t.Error("the second older bot has led")
	default:
	}
	rec, _, err := getRecord[leadRecord](testContext(t), c.leases, leadKey)
	if err != nil || rec.Version != newer || rec.Name != "c" {
		t.Errorf("the record of the leader is %+v, %v", rec, err)
	}
}

// After the newer bots are gone, for example because the operator went back to the older version, an older bot leads.
func TestOlderVersionLeadsAgain(t *testing.T) {
	t.Parallel()
	url := external(t).ClientURL()
	open := func(name, version string) *Journal {
		return open(t, Options{URL: url, Name: name, Version: version, LeadFor: time.Second})
	}
	a, b := open("a", older), open("b", newer)
	ledA, _ := leading(t, a)
	first := next(t, ledA)
	ledB, stopB := leading(t, b)
	next(t, ledB)
	<-first.Done()
	stopB()
	next(t, ledA)
}

// The announcement of a newer bot that has gone does not keep an older bot from the lead, and does not make it step down.
func TestStaleAnnouncement(t *testing.T) {
	t.Parallel()
	url := external(t).ClientURL()
	a := open(t, Options{URL: url, Name: "a", Version: older, LeadFor: time.Second})
	if err := putRecord(testContext(t), a.leases, candidateKey, candidate{Name: "gone", Version: newer}); err != nil {
		t.Fatal(err)
	}
	led, _ := leading(t, a)
	first := next(t, led)
	for renewals := 0; renewals < 8; renewals++ { // each takes a quarter of a second
		_, was, err := getRecord[leadRecord](testContext(t), a.leases, leadKey)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "a renewal", func() bool {
			_, is, err := getRecord[leadRecord](testContext(t), a.leases, leadKey)
			return err == nil && is != was
		})
	}
	if first.Err() != nil {
		t.Error("the leader stepped down for a bot that has gone:", context.Cause(first))
	}
}

// A bot asks for the lead only if it is newer than the leader. A bot without a version is neither newer nor older.
func TestSameVersionWaits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ leads, waits string }{{older, older}, {newer, older}, {"", newer}, {newer, ""}} {
		j := &Journal{opt: Options{Version: c.waits, LeadFor: time.Second}.withDefaults()}
		if compat.Older(c.leads, c.waits) {
			t.Errorf("%q asks %q for the lead", c.waits, c.leads)
		}
		if j.mayTake(t.Context(), leadRecord{Version: c.leads}, false, j.opt.LeadFor, &announcements{}) {
			t.Errorf("%q takes the lead of %q too early", c.waits, c.leads)
		}
	}
}
