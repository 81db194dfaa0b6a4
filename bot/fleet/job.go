package fleet

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/jobs"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// bundle sends the job's bundle.
func (s *Server) bundle(w http.ResponseWriter, r *http.Request, name string) error {
	l, err := s.held(r, name)
	if err != nil {
		return err
	}
	err = s.send(w, r, name, l, l.Bundle, "the bundle of the job is no longer stored (rebench to create it again)")
	if statusOf(err) == http.StatusNotFound && s.Now().Sub(l.Queued) < journal.KeepBundles {
		return s.postpone(r.Context(), l, name)
	}
	return err
}

// mostPostponed is the longest pause before a job with a missing bundle is leased again.
const mostPostponed = time.Hour

// postpone takes back a job whose bundle is missing but should exist. That is a fault of the store
// and says nothing about the change, so it must not become a verdict: the job is leased again
// later, and the runner takes a different one.
func (s *Server) postpone(ctx context.Context, l *jobs.Lease, name string) error {
	pause := mostPostponed
	if l.Token <= 10 {
		pause = min(pause, s.LeaseFor<<(l.Token-1))
	}
	s.Log.Error("the bundle of a job is missing in the journal; the job is redelivered later", "job", l.ID, "token", l.Token, "digest", l.Bundle, "again_in", pause)
	s.missing.Add(1)
	if err := l.Release(ctx, pause); err != nil {
		return err
	}
	s.updateRunner(name, idle(l.ID, l.Token))
	return jobs.ErrLeaseLost
}

// BundlesMissing counts how often the bundle of a live job was not in the journal.
func (s *Server) BundlesMissing() uint64 { return s.missing.Load() }

// send sends the blob with that digest from the bundles to the holder of the lease.
func (s *Server) send(w http.ResponseWriter, r *http.Request, name string, l *jobs.Lease, digest, gone string) error {
	content, _, err := s.Journal.Bundles.Get(r.Context(), digest)
	if errors.Is(err, journal.ErrNotFound) {
		return refuse(http.StatusNotFound, "%s", gone)
	}
	if err != nil {
		return err
	}
	defer content.Close()
	s.updateRunner(name, s.at(l))
	patience(w, transfer)
	w.Header().Set("Content-Type", "application/gzip")
	if _, err := io.Copy(w, content); err != nil {
		s.Log.Warn("sending a bundle was interrupted", "job", l.ID, "runner", name, "digest", digest, "error", err)
		panic(http.ErrAbortHandler) // so that the runner notices it
	}
	return nil
}

// heartbeat extends the lease, and tells the runner if the lease is over.
func (s *Server) heartbeat(w http.ResponseWriter, r *http.Request, name string) error {
	var b protocol.Heartbeat
	if err := readJSON(w, r, small, &b); err != nil {
		return err
	}
	l, err := s.attach(r, name, b.Token)
	if err == nil {
		err = l.Extend(r.Context())
	}
	if err != nil {
		if settled(err) {
			s.updateRunner(name, idle(r.PathValue("id"), b.Token))
		}
		return err
	}
	var answer protocol.HeartbeatResponse
	inFlight := false
	s.updateRunner(name, func(state *RunnerState) {
		s.at(l)(state)
		if state.Job != l.ID {
			return
		}
		inFlight, state.broken = state.broken, false
		if b.Progress != nil {
			state.Progress = b.Progress
		}
		state.Said = appendLog(state.Said, b.From, b.Said)
		answer.Said = len(state.Said)
	})
	// A runner sends one heartbeat at a time. The first that arrives after its connection broke may have been sent before; the
	// second proves that the runner is alive.
	if inFlight {
		if err := l.Shorten(r.Context(), heartbeatsMissed*s.Heartbeat); err != nil {
			return err
		}
	}
	if b.Progress != nil {
		s.Results.Progress(l.ID, *b.Progress)
	}
	if err := s.recordHealth(r.Context(), name, b.Health); err != nil {
		s.Log.Warn("could not store what a runner reported about its host", "runner", name, "error", err) // the runner sends it again
	}
	return answerJSON(w, answer)
}

// heartbeatsMissed is how many heartbeats a runner may miss after its connection broke.
const heartbeatsMissed = 3

// hold waits for the runner's process to end, which ends its connection. If only the network broke, the runner keeps the job by
// its next heartbeats.
func (s *Server) hold(w http.ResponseWriter, r *http.Request, name string) error {
	// A connection that breaks at once counts, too.
	l, err := s.held(r.WithContext(context.WithoutCancel(r.Context())), name)
	if err != nil {
		return err
	}
	patience(w, s.Poll+time.Minute)
	enough := time.NewTimer(s.Poll)
	defer enough.Stop()
	select {
	case <-enough.C:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case <-r.Context().Done():
	}
	s.updateRunner(name, func(state *RunnerState) { state.broken = state.lease == lease{l.ID, l.Token} })
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), finishing)
	defer cancel()
	err = l.Shorten(ctx, heartbeatsMissed*s.Heartbeat)
	if err != nil && !settled(err) {
		return err
	}
	return nil // usually the job is done: the runner ends the request with it
}

// release returns the job to the queue: the runner is stopping.
func (s *Server) release(w http.ResponseWriter, r *http.Request, name string) error {
	var rel protocol.Release
	if err := readJSON(w, r, small, &rel); err != nil {
		return err
	}
	s.updateRunner(name, idle(r.PathValue("id"), rel.Token))
	l, err := s.attach(r, name, rel.Token)
	if err != nil {
		return err
	}
	s.Log.Info("job given back", "job", l.ID, "token", l.Token, "runner", name)
	return l.Release(r.Context(), 0)
}

// artifact stores a file that belongs to a later result.
func (s *Server) artifact(w http.ResponseWriter, r *http.Request, name string) error {
	file := r.PathValue("name")
	if !protocol.ArtifactName(file) {
		return refuse(http.StatusBadRequest, "%q is not a valid name for an artifact (use letters, digits, _ . + -)", file)
	}
	if r.ContentLength > protocol.MaxArtifact {
		return &http.MaxBytesError{Limit: protocol.MaxArtifact}
	}
	l, err := s.held(r, name)
	if err != nil {
		return err
	}
	full := false
	s.updateRunner(name, func(state *RunnerState) {
		s.at(l)(state)
		if full = !state.artifacts[file] && len(state.artifacts) >= protocol.MaxArtifacts; full {
			return
		}
		if state.artifacts == nil {
			state.artifacts = map[string]bool{}
		}
		state.artifacts[file] = true
	})
	if full {
		return refuse(http.StatusRequestEntityTooLarge, "a job has at most %d artifacts", protocol.MaxArtifacts)
	}
	patience(w, transfer)
	_, err = s.Journal.Artifacts.Put(r.Context(), ArtifactBlob(l.ID, l.Token, file), http.MaxBytesReader(w, r.Body, protocol.MaxArtifact))
	return err
}

// finishing is the deadline for recording a result, whether or not the runner still waits for the
// answer.
const finishing = 2 * time.Minute

// result ends the job. If the answer is lost, the runner sends the result again, which changes
// nothing.
func (s *Server) result(w http.ResponseWriter, r *http.Request, name string) error {
	patience(w, transfer)
	var res protocol.Result
	if err := readJSON(w, r, protocol.MaxResult, &res); err != nil {
		return err
	}
	if len(res.Evidence) == 0 || res.Evidence[0] != '{' {
		return refuse(http.StatusBadRequest, "the result has no evidence")
	}
	who := s.updateRunner(name, func(*RunnerState) {})
	l, err := s.attach(r, name, res.Token)
	if err == nil {
		err = l.Extend(r.Context())
	}
	if err == nil {
		err = s.finish(r.Context(), l, who, res)
	}
	if settled(err) {
		s.updateRunner(name, idle(r.PathValue("id"), res.Token))
	}
	if errors.Is(err, jobs.ErrFinished) {
		return nil
	}
	return err
}

// settled reports whether the runner is done with its job after this answer.
func settled(err error) bool {
	return err == nil || statusOf(err) == http.StatusConflict || statusOf(err) == http.StatusGone
}

// finish records the result, then removes the job from the queue.
func (s *Server) finish(ctx context.Context, l *jobs.Lease, who Runner, res protocol.Result) error {
	blobs, err := s.blobs(ctx, l, res.Artifacts)
	if err != nil {
		return err
	}
	if l.Compiles() {
		return s.finishBuild(ctx, l, who, res, blobs)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishing)
	defer cancel()
	err = s.Results.Finished(ctx, l.ID, l.Token, who, res.Evidence, []byte(res.Log), blobs)
	if errors.Is(err, jobs.ErrLeaseLost) || errors.Is(err, jobs.ErrCancelled) {
		s.discard(ctx, l, blobs)
		return err
	}
	if err != nil {
		return err
	}
	err = l.Done(ctx)
	if errors.Is(err, jobs.ErrCancelled) || errors.Is(err, jobs.ErrLeaseLost) {
		// The lease expired meanwhile, and a second runner has started. Its result will be refused.
		return nil
	}
	return err
}

// blobs returns the names of the artifacts in the journal. An artifact that was not uploaded is a
// mistake of the runner, and is reported now.
func (s *Server) blobs(ctx context.Context, l *jobs.Lease, names []string) ([]string, error) {
	if len(names) > protocol.MaxArtifacts {
		return nil, refuse(http.StatusRequestEntityTooLarge, "a job has at most %d artifacts", protocol.MaxArtifacts)
	}
	var blobs []string
	for _, name := range names {
		blob := ArtifactBlob(l.ID, l.Token, name)
		content, _, err := s.Journal.Artifacts.Get(ctx, blob)
		if errors.Is(err, journal.ErrNotFound) {
			return nil, refuse(http.StatusBadRequest, "the artifact %q was not uploaded before the result", name)
		}
		if err != nil {
			return nil, err
		}
		content.Close()
		blobs = append(blobs, blob)
	}
	return blobs, nil
}

// discard removes a job from the queue whose result is no longer needed.
func (s *Server) discard(ctx context.Context, l *jobs.Lease, blobs []string) {
	err := l.Done(ctx)
	for _, blob := range blobs {
		err = errors.Join(err, s.Journal.Artifacts.Delete(ctx, blob))
	}
	if err != nil {
		s.Log.Warn("tidying up after a refused result", "job", l.ID, "error", err)
	}
}

// appendLog adds the log lines of a heartbeat to a job's log. A repeated heartbeat changes nothing.
// A heartbeat that starts behind the end of the log, after a restart of the bot, adds nothing, and
// the answer says so.
func appendLog(said []runners.LogEntry, from int, more []runners.LogEntry) []runners.LogEntry {
	known := len(said) - from // of what is told
	if from < 0 || known < 0 || known > len(more) || len(more) > protocol.MostSaid {
		return said
	}
	for _, s := range more[known:] {
		if len(said) < runners.MostSaid {
			s.Event = s.Event.Bounded()
			said = append(said, s) // readers of the shorter log do not see the new lines
		}
	}
	return said
}

// Said returns the log of a job that a runner works on, from its beginning.
func (s *Server) Said(job string) []runners.LogEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, state := range s.seen {
		if job != "" && state.Job == job {
			return state.Said // its content never changes
		}
	}
	return nil
}

// earlier returns what the bot knows about the machine code that a runner has built.
func (s *Server) earlier(w http.ResponseWriter, r *http.Request, name string) error {
	b, err := s.built(w, r, name)
	if err != nil {
		return err
	}
	answer, err := s.Results.Earlier(r.Context(), r.PathValue("id"), b.Token, b.Code)
	if err != nil {
		return err
	}
	patience(w, transfer)
	return answerJSON(w, answer)
}

// begin counts an attempt before the runner measures its first round.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, name string) error {
	b, err := s.built(w, r, name)
	if err != nil {
		return err
	}
	a, err := s.Results.Begin(r.Context(), r.PathValue("id"), b.Token, b.Code)
	if err != nil {
		return err
	}
	return answerJSON(w, protocol.BeginResponse{Attempt: a.Number, CodeNumber: a.CodeNumber})
}

// built reads the machine code that a runner reports, if the runner holds the job.
func (s *Server) built(w http.ResponseWriter, r *http.Request, name string) (b protocol.BuiltCode, err error) {
	if err := readJSON(w, r, small, &b); err != nil {
		return b, err
	}
	if b.Code.Candidate == "" || b.Code.Device == "" {
		return b, refuse(http.StatusBadRequest, "name the candidate's machine code and the device")
	}
	l, err := s.attach(r, name, b.Token)
	if err != nil {
		return b, err
	}
	s.updateRunner(name, s.at(l))
	return b, nil
}
