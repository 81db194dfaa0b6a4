package journal

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// If several bots start at once on an empty cluster, all of them would create the same streams, and
// each stream's servers would elect their leader several times. So one bot creates them, and the
// others wait.

const (
	// setupStream exists while a process creates the streams.
	setupStream = "KERNELGATE_SETUP"
	// setupWithin is the deadline for that. A process that takes longer has died.
	setupWithin = 30 * time.Second
)

// takeSetup waits until this process may create the streams, or until another has created them. The
// function that it returns lets the next process continue.
func (j *Journal) takeSetup(ctx context.Context) (done func()) {
	done = func() {}
	if !j.external() {
		return done
	}
	lock := jetstream.StreamConfig{
		Name: setupStream, Storage: jetstream.MemoryStorage, MaxMsgs: 1, Metadata: map[string]string{"holder": nuid.Next()},
	}
	for begun := time.Now(); time.Since(begun) < 2*setupWithin; {
		try, cancel := context.WithTimeout(ctx, j.opt.answerIn)
		_, err := askUntilLed(try, func(ctx context.Context) (jetstream.Stream, error) { return j.js.Stream(ctx, order[len(order)-1]) })
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			if _, err = j.js.CreateStream(try, lock); err == nil {
				done = j.endSetup
			}
		}
		var held *jetstream.StreamInfo
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			if s, err := j.js.Stream(try, setupStream); err == nil {
				held = s.CachedInfo()
			}
		}
		cancel()
		switch {
		case err == nil:
			return done
		case held != nil && held.TimeStamp.Sub(held.Created) > setupWithin: // both by the server's clock
			j.endSetup()
		case !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) && !errors.Is(err, context.DeadlineExceeded) && !leaderless(err):
			return done // this account may not: then all create the streams at once, which takes longer
		}
		select {
		case <-time.After(reconnectWait):
		case <-ctx.Done():
			return done
		}
	}
	return done
}

func (j *Journal) endSetup() {
	ctx, cancel := context.WithTimeout(context.Background(), j.opt.answerIn)
	defer cancel()
	if err := j.js.DeleteStream(ctx, setupStream); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		j.opt.Log.Warn("the other bots are not told that the streams are there; they wait a little longer", "error", err)
	}
}

// upToDate reports whether a stream has the wanted configuration. An unnecessary update would make
// its servers agree on it again.
func upToDate(is, want jetstream.StreamConfig) bool {
	return slices.Equal(is.Subjects, want.Subjects) && is.Retention == want.Retention && is.Storage == want.Storage && is.Replicas == want.Replicas &&
		is.MaxAge == want.MaxAge && is.MaxMsgsPerSubject == max(want.MaxMsgsPerSubject, -1) && is.Discard == want.Discard && is.Compression == want.Compression &&
		is.AllowDirect == want.AllowDirect && is.AllowRollup == want.AllowRollup && is.AllowAtomicPublish == want.AllowAtomicPublish &&
		is.DenyDelete == want.DenyDelete && is.DenyPurge == want.DenyPurge
}
