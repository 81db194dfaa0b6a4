package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/kernelgate/kernelgate/bot/store/jobs"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// A Build is the result of a runner that only compiles. Its Artifacts are names in the journal's
// Artifacts.
type Build struct {
	protocol.Result
	Fault string // why there is no other result
}

// builds sends what a build runner has compiled for the job.
func (s *Server) builds(w http.ResponseWriter, r *http.Request, name string) error {
	l, err := s.held(r, name)
	if err != nil {
		return err
	}
	if l.Built == nil || l.Built.Builds == "" {
		return refuse(http.StatusNotFound, "no runner has compiled the job")
	}
	return s.send(w, r, name, l, l.Built.Builds, "what was compiled of the job is not kept any more")
}

// finishBuild records the result of a build runner. If the result decides the verdict, the job is
// over; otherwise the job goes to a runner that measures, together with the compiled files.
func (s *Server) finishBuild(ctx context.Context, l *jobs.Lease, who Runner, res protocol.Result, blobs []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishing)
	defer cancel()
	compiled := ArtifactBlob(l.ID, l.Token, runners.BuildsFile)
	kept := slices.DeleteFunc(slices.Clone(blobs), func(blob string) bool { return blob == compiled })
	builds := ""
	if len(kept) < len(blobs) && res.Open {
		var err error
		if builds, err = s.storeBlob(ctx, compiled); err != nil {
			return err
		}
	}
	who.Builds, res.Artifacts = true, kept
	over, err := s.Results.Built(ctx, l.ID, l.Token, who, Build{Result: res})
	if errors.Is(err, jobs.ErrLeaseLost) || errors.Is(err, jobs.ErrCancelled) {
		s.discard(ctx, l, blobs)
		return err
	}
	if err != nil {
		return err
	}
	if over {
		err = l.Done(ctx)
	} else {
		err = l.HandOn(ctx, builds)
		s.Log.Info("job compiled and handed on", "job", l.ID, "token", l.Token, "runner", who.Name, "builds", builds)
	}
	if errors.Is(err, jobs.ErrCancelled) || errors.Is(err, jobs.ErrLeaseLost) {
		return nil // the lease expired meanwhile: its new holder compiles the job, too
	}
	if err == nil && len(kept) < len(blobs) {
		if left := s.Journal.Artifacts.Delete(ctx, compiled); left != nil {
			s.Log.Warn("tidying up after a build", "job", l.ID, "error", left)
		}
	}
	return err
}

// storeBlob copies the compiled files to the bundles, under their digest, so that the next runner
// gets both and both are kept equally long.
func (s *Server) storeBlob(ctx context.Context, blob string) (string, error) {
	content, digest, err := s.Journal.Artifacts.Get(ctx, blob)
	if err != nil {
		return "", err
	}
	defer content.Close()
	stored, err := s.Journal.Bundles.Put(ctx, digest, content)
	if err == nil && stored != digest {
		err = fmt.Errorf("the builds %s are damaged in the journal", blob)
	}
	return digest, err
}

// lostBuild passes a job on to the runners that measure, after its build runner stopped responding.
func (s *Server) lostBuild(ctx context.Context, l *jobs.Lease, by string) error {
	s.Log.Warn("a build runner stopped responding; the runner that measures the job compiles it", "job", l.ID, "token", l.Token, "runner", by)
	_, err := s.Results.Built(ctx, l.ID, l.Token, Runner{Name: by, Builds: true}, Build{Result: protocol.Result{Open: true}, Fault: "it stopped responding"})
	if errors.Is(err, jobs.ErrLeaseLost) || errors.Is(err, jobs.ErrCancelled) {
		return l.Done(ctx)
	}
	if err != nil {
		return errors.Join(err, l.Release(ctx, s.LeaseFor/3))
	}
	return l.Release(ctx, 0)
}
