package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/jobs"
)

// Run ends jobs that have lost their runners too often, until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	s.once.Do(s.setDefaults)
	for ctx.Err() == nil {
		l, err := s.Jobs.Lost(ctx)
		if err == nil {
			// A run that is cut in half would leave the job without a runner until the lease
			// expires.
			err = s.lost(context.WithoutCancel(ctx), l)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		s.Log.Warn("could not end a job that has lost its runners; will retry", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return nil
}

// lost records that the job failed, then removes it from the queue.
func (s *Server) lost(ctx context.Context, l *jobs.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, finishing)
	defer cancel()
	if b := l.Built; b != nil && b.Lost && len(l.Losses) == 0 {
		return s.lostBuild(ctx, l, b.By)
	}
	why := describeExpiries(l.Losses)
	s.Log.Error("a job has lost its runners and is given up", "job", l.ID, "token", l.Token, "reason", why)
	err := s.Results.Lost(ctx, l.ID, l.Token, why)
	if err != nil && !errors.Is(err, jobs.ErrLeaseLost) && !errors.Is(err, jobs.ErrCancelled) {
		return errors.Join(err, l.Release(ctx, s.LeaseFor/3))
	}
	return l.Done(ctx)
}

// describeExpiries describes the lost leases, for people.
func describeExpiries(losses []jobs.Expiry) string {
	const clock = "15:04:05"
	var each []string
	for _, one := range losses {
		each = append(each, fmt.Sprintf("%s had the job from %s on and was last seen at %s", one.Holder, one.Since.Format(clock), one.LastAck.Format(clock)))
	}
	return fmt.Sprintf("the job has lost its runner %d times and is not redelivered: %s UTC (see the logs of the runners, then rebench)",
		len(losses), strings.Join(each, ", "))
}
