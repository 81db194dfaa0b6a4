package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/agent"
)

// lease waits for a job that the runner may take.
func (s *Server) lease(w http.ResponseWriter, r *http.Request, name string) error {
	var ask agent.LeaseRequest
	if err := readJSON(w, r, small, &ask); err != nil {
		return err
	}
	if ask.Runner != name {
		return refuse(http.StatusForbidden, "the token belongs to the runner %q, not to %q: correct the runner's name or its token", name, ask.Runner)
	}
	if len(ask.Labels) == 0 {
		return refuse(http.StatusBadRequest, "name the labels whose jobs the runner takes")
	}
	allowed := s.Tokens[name].Labels
	for _, label := range ask.Labels {
		if !slices.Contains(allowed, label) {
			return refuse(http.StatusForbidden, "the runner %q may not take jobs of the label %q (its token is for %s)", name, label, strings.Join(allowed, ", "))
		}
	}
	who := s.note(name, func(state *RunnerState) {
		*state = RunnerState{
			Runner:   Runner{Name: name, Host: ask.Host, Version: ask.Version, Labels: ask.Labels},
			LastSeen: state.LastSeen, over: state.over,
		}
	})
	patience(w, s.Poll+time.Minute)
	ctx, cancel := context.WithTimeout(r.Context(), s.Poll)
	defer cancel()
	for {
		l, err := s.wait(ctx, slices.Compact(slices.Sorted(slices.Values(ask.Labels))), name)
		if err != nil {
			return err
		}
		if l == nil {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		// From here on the job is somebody's: give it back rather than forget it.
		answer, err := s.start(context.WithoutCancel(ctx), r.Context(), l, who)
		if err != nil {
			return err
		}
		if answer == nil {
			continue
		}
		s.note(name, s.at(l))
		s.Log.Info("job handed out", "job", l.ID, "token", l.Token, "runner", name, "label", l.Label)
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(answer)
	}
}

// wait takes the first job of any of the labels; nil means that there was none.
func (s *Server) wait(ctx context.Context, labels []string, name string) (*journal.Lease, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		lease *journal.Lease
		err   error
	}
	outcomes := make(chan outcome)
	for _, label := range labels {
		go func() {
			l, err := s.Journal.LeaseTo(ctx, label, name)
			outcomes <- outcome{l, err}
		}()
	}
	var failed error
	for left := len(labels); left > 0; left-- {
		o := <-outcomes
		if o.err == nil {
			// Another may have come at the same time, and a runner works on one.
			go func() {
				for range left - 1 {
					if o := <-outcomes; o.err == nil {
						s.giveBack(o.lease)
					}
				}
			}()
			return o.lease, nil
		}
		if !errors.Is(o.err, context.Canceled) && !errors.Is(o.err, context.DeadlineExceeded) {
			failed = o.err
		}
	}
	return nil, failed
}

func (s *Server) giveBack(l *journal.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), s.LeaseFor)
	defer cancel()
	if err := l.Release(ctx, 0); err != nil {
		s.Log.Warn("a job waits until its lease has run out", "job", l.ID, "error", err)
	}
}

// start makes an answer of a lease; nil means that there is nothing left to do
// for the job.
func (s *Server) start(ctx, asking context.Context, l *journal.Lease, who Runner) (*agent.LeaseAnswer, error) {
	payload, err := DecodeJobPayload(l.Payload)
	if err != nil {
		return nil, s.unreadable(ctx, l, who, err)
	}
	if asking.Err() != nil { // the runner has hung up
		return nil, errors.Join(asking.Err(), l.Release(ctx, 0))
	}
	err = s.Results.Started(ctx, l.ID, l.Token, who)
	if errors.Is(err, journal.ErrLeaseLost) || errors.Is(err, journal.ErrCancelled) {
		s.Log.Info("nobody needs the job any more", "job", l.ID, "token", l.Token, "reason", err)
		return nil, l.Done(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, l.Release(ctx, s.LeaseFor/3))
	}
	return &agent.LeaseAnswer{
		Job: l.ID, Token: l.Token, Kernel: payload.Kernel, Digest: payload.Digest,
		Lease: s.LeaseFor.Seconds(), Heartbeat: s.Heartbeat.Seconds(),
	}, nil
}

// unreadable ends a job that no runner could ever work on.
func (s *Server) unreadable(ctx context.Context, l *journal.Lease, who Runner, why error) error {
	evidence, err := json.Marshal(gates.Evidence{Schema: gates.EvidenceSchema, Kernel: l.ID, Fault: why.Error()})
	if err == nil {
		err = s.Results.Finished(ctx, l.ID, l.Token, who, evidence, nil, nil)
	}
	if err != nil && !errors.Is(err, journal.ErrLeaseLost) && !errors.Is(err, journal.ErrCancelled) {
		return errors.Join(err, l.Release(ctx, s.LeaseFor/3))
	}
	return l.Done(ctx)
}

var jobID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// attach finds the lease that a request is about.
func (s *Server) attach(r *http.Request, name string, token uint64) (*journal.Lease, error) {
	id := r.PathValue("id")
	if !jobID.MatchString(id) {
		return nil, refuse(http.StatusNotFound, "%q is no job's id", id)
	}
	return s.Journal.Attach(r.Context(), id, token, name)
}

// tokenOf reads ?token=N.
func tokenOf(r *http.Request) (uint64, error) {
	token, err := strconv.ParseUint(r.URL.Query().Get("token"), 10, 64)
	if err != nil {
		return 0, refuse(http.StatusBadRequest, "?token= must be the lease's token")
	}
	return token, nil
}
