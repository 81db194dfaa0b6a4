package fleet

import (
	"context"
	"net/http"

	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// keptTests is how many self-tests of a runner are shown: two months of one a day. The journal has
// all of them.
const keptTests = 60

// tested adds a self-test. A failed test starts a quarantine. A passed test ends any quarantine,
// because a host that measures a known kernel correctly is fit. A drained runner stays drained.
func (d *Availability) tested(e journal.Event) error {
	var t protocol.SelfTest
	if err := e.Writer.Decode(e.Kind, e.Data, &t); err != nil {
		return err
	}
	d.seq, d.Asked = e.Seq, nil
	d.Tests = append(d.Tests, t)
	d.Tests = d.Tests[max(0, len(d.Tests)-keptTests):]
	switch {
	case t.Passed:
		d.Quarantined = nil
	case d.Quarantined == nil:
		d.Quarantined = &Decision{At: e.At.UTC(), Why: "its self-test failed: " + t.Why}
	}
	return nil
}

// knows reports whether the self-test is recorded.
func (d Availability) knows(t *protocol.SelfTest) bool {
	return t == nil || len(d.Tests) > 0 && d.Tests[len(d.Tests)-1].At.Equal(t.At)
}

// wantsTest returns what to tell the runner: to test itself at once if an operator asks, and at a
// time of its choice while it is in quarantine. A runner that never reported a test is not asked,
// because its version may have none.
func (d Availability) wantsTest(ask protocol.LeaseRequest) protocol.LeaseResponse {
	switch {
	case ask.Health == nil || ask.Health.Test == nil:
	case d.Asked != nil:
		return protocol.LeaseResponse{Test: d.Asked.Why, TestNow: true}
	case d.Quarantined != nil:
		return protocol.LeaseResponse{Test: "in quarantine: " + d.Quarantined.Why}
	}
	return protocol.LeaseResponse{}
}

// Test makes a runner test itself before its next job. The name of a host means all of its runners.
func (s *Server) Test(ctx context.Context, name, why string) error {
	asked := 0
	for _, one := range s.names(name) {
		s.mu.Lock()
		h := s.health[one]
		s.mu.Unlock()
		if h == nil || h.Test == nil {
			continue
		}
		asked++
		if err := s.decide(ctx, one, askedKind, why, func(d Availability) bool { return d.Asked == nil }); err != nil {
			return err
		}
	}
	if asked == 0 {
		return refuse(http.StatusConflict, "%s has reported no self-test since the bot started (it is away, or its version has no self-test: see kernelgate fleet list)", name)
	}
	return nil
}

// recordHealth records what a runner reports about its host; nil means nothing. Self-tests go to
// the runner's history, and a runner that reports itself unfit gets no more jobs.
func (s *Server) recordHealth(ctx context.Context, name string, said *protocol.Health) error {
	if said == nil {
		return nil
	}
	h := said.Bounded()
	s.mu.Lock()
	s.health[name] = &h
	s.mu.Unlock()
	if err := s.writeTest(ctx, name, h.Test); err != nil || h.Unfit == "" {
		return err
	}
	return s.decide(ctx, name, quarantinedKind, h.Unfit, func(d Availability) bool { return d.Quarantined == nil })
}

// writeTest adds a self-test to the runner's history, once.
func (s *Server) writeTest(ctx context.Context, name string, t *protocol.SelfTest) error {
	before, written, err := s.write(ctx, name, testedKind, t, func(d Availability) bool { return !d.knows(t) })
	if written {
		s.Log.Info("a runner has finished its self-test", "runner", name, "passed", t.Passed, "why", t.Why, "difference", t.Difference, "micros", t.Micros)
		if t.Passed != before.Takes() {
			s.endPoll(name)
		}
	}
	return err
}
