package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/jobs"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// lease waits for a job that the runner may take.
func (s *Server) lease(w http.ResponseWriter, r *http.Request, name string) error {
	var ask protocol.LeaseRequest
	if err := readJSON(w, r, small, &ask); err != nil {
		return err
	}
	if host := hostOf(name); ask.Runner != host {
		return refuse(http.StatusForbidden, "the token belongs to the runner %q, not to %q: correct the runner's name or its token", host, ask.Runner)
	}
	if err := s.checkProtocol(ask); err != nil {
		return err
	}
	if len(ask.Labels) == 0 {
		return refuse(http.StatusBadRequest, "the request names no labels")
	}
	credential, _ := s.credential(name)
	allowed := credential.Labels
	for _, label := range ask.Labels {
		if !slices.Contains(allowed, label) {
			return refuse(http.StatusForbidden, "the runner %q may not take jobs of the label %q (its token is for %s)", name, label, strings.Join(allowed, ", "))
		}
	}
	outdated, news := s.outdated(ask), false
	who := s.updateRunner(name, func(state *RunnerState) {
		news = state.Outdated != outdated
		*state = RunnerState{
			Listed: Listed{
				Runner:   Runner{Name: name, Host: ask.Host, Version: ask.Version, Labels: ask.Labels, Outdated: outdated},
				LastSeen: state.LastSeen,
			},
			over: state.over,
		}
	})
	if news && outdated != "" {
		s.Log.Warn("a runner has a different version from the bot", "runner", name, "is", outdated)
	}
	if !s.Journal.Leads() {
		return journal.ErrNotLeading // before a request to a store that may not answer
	}
	if err := s.recordHealth(r.Context(), name, ask.Health); err != nil {
		return err
	}
	patience(w, s.Poll+time.Minute)
	ctx, cancel := s.poll(r.Context(), name) // before the availability is read: a later change ends the poll
	defer cancel()
	if ask.Wait > 0 {
		var enough context.CancelFunc
		ctx, enough = context.WithTimeout(ctx, seconds(min(ask.Wait, s.Poll.Seconds())))
		defer enough()
	}
	duty, err := s.availability(r.Context(), name)
	if err != nil {
		return err
	}
	if test := duty.wantsTest(ask); test.TestNow {
		return answerJSON(w, test)
	} else if !duty.Takes() {
		<-ctx.Done()
		if test.Test == "" {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		return answerJSON(w, test)
	}
	for {
		l, err := s.Jobs.Lease(ctx, name, ask.Labels...)
		if ctx.Err() != nil && err != nil {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		if err != nil {
			return err
		}
		// From here on the runner holds the job: on an error, return it to the queue.
		answer, err := s.start(context.WithoutCancel(ctx), r.Context(), l, who)
		if err != nil {
			return err
		}
		if answer == nil {
			continue
		}
		s.updateRunner(name, s.at(l))
		s.Log.Info("job handed out", "job", l.ID, "token", l.Token, "runner", name, "label", l.Label)
		return answerJSON(w, answer)
	}
}

func answerJSON(w http.ResponseWriter, answer any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(answer)
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// start makes an answer from a lease; nil means that nothing is left to do for the job.
func (s *Server) start(ctx, asking context.Context, l *jobs.Lease, who Runner) (*protocol.LeaseResponse, error) {
	if asking.Err() != nil { // the runner has hung up
		return nil, errors.Join(asking.Err(), l.Release(ctx, 0))
	}
	who.Builds = l.Compiles()
	err := s.Results.Started(ctx, l.ID, l.Token, who)
	if errors.Is(err, jobs.ErrLeaseLost) || errors.Is(err, jobs.ErrCancelled) {
		s.Log.Info("the job is no longer needed", "job", l.ID, "token", l.Token, "reason", err)
		return nil, l.Done(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, l.Release(ctx, s.LeaseFor/3))
	}
	if asking.Err() != nil { // that took long, and the runner may be asking a different bot now
		return nil, errors.Join(asking.Err(), l.Release(ctx, 0))
	}
	answer := &protocol.LeaseResponse{
		Job: l.ID, Token: l.Token, Kernel: l.Kernel, Digest: l.Bundle,
		Lease: s.LeaseFor.Seconds(), Heartbeat: s.Heartbeat.Seconds(),
	}
	if l.Compiles() {
		answer.Stage = protocol.StageBuild
	}
	if l.Built != nil {
		answer.Builds, answer.Builder = l.Built.Builds, l.Built.By
	}
	return answer, nil
}

// attach finds the lease that a request is about.
func (s *Server) attach(r *http.Request, name string, token uint64) (*jobs.Lease, error) {
	id := r.PathValue("id")
	if !protocol.JobID(id) {
		return nil, refuse(http.StatusNotFound, "%q is not the id of a job", id)
	}
	return s.Jobs.Attach(r.Context(), id, token, name)
}

// held finds the lease that a request names by ?token=N.
func (s *Server) held(r *http.Request, name string) (*jobs.Lease, error) {
	token, err := strconv.ParseUint(r.URL.Query().Get("token"), 10, 64)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "?token= must be the lease's token")
	}
	return s.attach(r, name, token)
}

// checkProtocol refuses a runner that the bot cannot work with. Every version of the runner treats
// the answer as final.
func (s *Server) checkProtocol(ask protocol.LeaseRequest) error {
	own, p := cmp.Or(s.Version, "the bot's version"), ask.Protocol
	switch {
	case p < protocol.Oldest:
		return refuse(http.StatusForbidden, "%s is too old for this bot: it speaks version %d of the runners' protocol, and the bot needs %d or newer. Install %s on the runner's host and start the runner again",
			cmp.Or(ask.Version, "the runner's program"), p, protocol.Oldest, own)
	case p > protocol.Version:
		return refuse(http.StatusForbidden, "%s is newer than this bot: it speaks version %d of the runners' protocol, and the bot supports up to %d. Update the bot first, or install %s on the runner's host",
			cmp.Or(ask.Version, "the runner's program"), p, protocol.Version, own)
	}
	return nil
}

// outdated returns what an operator should know about a runner's version; "" if nothing.
func (s *Server) outdated(ask protocol.LeaseRequest) string {
	switch p := ask.Protocol; {
	case p < protocol.Version:
		return fmt.Sprintf("old: speaks version %d of the protocol, the bot %d (install %s)", p, protocol.Version, cmp.Or(s.Version, "the bot's version"))
	case s.Version != "" && ask.Version != "" && ask.Version != s.Version:
		return fmt.Sprintf("runs %s, the bot %s", ask.Version, s.Version)
	}
	return ""
}
