package actions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/change/observed"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/planner/mirror"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/publish"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
	"github.com/kernelgate/kernelgate/runners/host/recordings"
)

// A session is the work of one job, from its event to a verdict.
type session struct {
	Config
	env        environ
	relabelled bool // the event is only about labels or a title
	hub        *client.GitHub
	scratch    string
	posts      *publish.Publisher
	lines      *workflow

	state    *change.State
	beside   []present.Beside
	seq      uint64
	comments []client.Comment // of the pull request
	root     string           // the first commit of the base branch; its checks count the attempts
	verdicts map[string]*gates.Verdict
	results  string // folder of the first result
}

func (s *session) handle(ctx context.Context, event webhook.Event) (End, error) {
	switch e := event.(type) {
	case webhook.PullRequest:
		return s.pullRequest(ctx, e)
	case webhook.MergeGroup:
		return s.mergeGroup(ctx, e)
	case webhook.IssueComment, webhook.ReviewComment, webhook.Review:
		return s.remark(ctx, e)
	case webhook.Ignored:
		return s.nothing(e.Reason)
	}
	return s.nothing("nothing is gated on this event")
}

// nothing ends a job that has nothing to do.
func (s *session) nothing(why string) (End, error) {
	return s.answeredWith("nothing to do: " + why)
}

// answeredWith ends a job that gates nothing. It may have results to upload.
func (s *session) answeredWith(said string) (End, error) {
	s.lines.note("kernelgate: " + said)
	end := End{Results: s.results}
	return end, setOutputs(s.env.output, end)
}

func (s *session) pullRequest(ctx context.Context, e webhook.PullRequest) (End, error) {
	if !e.Open {
		return s.nothing("the pull request is closed")
	}
	// A job that is rerun has the event of its first start, so read the current state.
	f, err := s.pull(ctx, e.Number)
	switch {
	case err != nil && ctx.Err() != nil:
		return End{}, err
	case err != nil:
		s.lines.say("warning", fmt.Sprintf("The pull request is judged as the event tells it: %v", err))
		f = observed.OfEvent(e)
		f.Repo = s.env.repo // trust the job's environment about the repository, not the event
	case !f.Open:
		return s.nothing("the pull request is closed")
	}
	if err := s.look(ctx, change.ID{Kind: change.Pull, Repo: e.Repository.ID, Number: e.Number}, f); err != nil {
		return End{}, err
	}
	if s.relabelled {
		done, err := s.judged(ctx)
		if err != nil {
			return End{}, err
		}
		if done {
			return s.nothing("labels and title choose the rules that this commit was judged by")
		}
	}
	return s.gate(ctx)
}

// judged reports whether GitHub shows a verdict for this pull request under the rules that apply
// now. In doubt it returns false, and the change is measured again.
func (s *session) judged(ctx context.Context) (bool, error) {
	if s.state.Current() == nil || len(s.state.Runs) == 0 {
		return false, nil // nothing to measure, so nothing to save
	}
	there, err := s.reports(ctx, s.state.Facts.Head, present.Checks(s.view())[0].Name)
	i := slices.IndexFunc(there, func(r reported) bool { return r.id == s.state.ID }) // the newest
	if err != nil || i < 0 {
		return false, err
	}
	last := there[i]
	return (last.conclusion == "success" || last.conclusion == "failure") && last.rules == s.rules() && !present.IsSharedHead(last.title), nil
}

// rules returns a digest of which rule applies to which kernel.
func (s *session) rules() string {
	sum := sha256.New()
	for _, r := range s.state.Runs {
		fmt.Fprintf(sum, "%q %q\n", r.Key().String(), r.Rule)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}

// pull reads the current state of a pull request from GitHub.
func (s *session) pull(ctx context.Context, number int) (change.Facts, error) {
	p, err := s.hub.Pull(ctx, s.env.repo, number)
	if err != nil {
		return change.Facts{}, err
	}
	return observed.OfPull(s.env.repo, "", p), nil
}

// mergeGroup gates a merge group on the group's commit.
func (s *session) mergeGroup(ctx context.Context, e webhook.MergeGroup) (End, error) {
	if e.Action != "checks_requested" {
		return s.nothing("the merge group is gone")
	}
	f := observed.OfGroup(e)
	f.Repo = s.env.repo
	p, _, err := s.planner(ctx)
	if err != nil {
		return End{}, err
	}
	f, pulls, err := p.Members(ctx, s.hub, f, func(ctx context.Context, number int) (*change.State, error) {
		pull, err := s.pull(ctx, number)
		return &change.State{ID: change.ID{Kind: change.Pull, Repo: e.Repository.ID, Number: number}, Facts: pull}, err
	})
	if err != nil {
		return End{}, err
	}
	if err := s.look(ctx, change.ID{Kind: change.Group, Repo: e.Repository.ID, SHA: e.HeadSHA}, f); err != nil {
		return End{}, err
	}
	if err := s.approveGroup(ctx, pulls); err != nil {
		return End{}, err
	}
	return s.gate(ctx)
}

// planner returns a planner with a copy of the repository in the store.
func (s *session) planner(ctx context.Context) (*planner.Planner, *mirror.Store, error) {
	store, err := mirrorOf(ctx, s.scratch, s.Dir, s.env.repo, s.hub)
	return &planner.Planner{Mirrors: store, Bundles: s.shelf(), Scratch: s.scratch, Version: s.Version, Now: s.Now, Fetcher: &recordings.Fetcher{Cache: filepath.Join(s.scratch, "recordings")}}, store, err
}

func (s *session) apply(e change.Event) {
	s.seq++
	s.state.Apply(s.seq, s.Now(), e)
}

// look plans what the change needs measured, and reads the earlier attempts.
func (s *session) look(ctx context.Context, id change.ID, f change.Facts) error {
	f.Labels = slices.Sorted(slices.Values(f.Labels))
	s.state = change.New(id)
	s.apply(change.Seen{Facts: f})
	if err := s.converse(ctx); err != nil {
		return err
	}
	if err := s.plan(ctx, true); err != nil {
		return err
	}
	return s.approve(ctx)
}

// converse reads the pull request's conversation, and the history from our own comment in it. While
// our login is unknown, the newest such comment counts.
func (s *session) converse(ctx context.Context) error {
	if s.state.ID.Kind != change.Pull {
		return nil
	}
	var err error
	if s.comments, err = s.hub.ListComments(ctx, s.env.repo, s.state.ID.Number); err != nil {
		return err
	}
	var newest time.Time
	for _, c := range s.comments {
		if c.Mine && strings.HasPrefix(c.Body, present.Marker(s.state.ID)) && !c.UpdatedAt.Before(newest) {
			s.state.Comment.ID, s.state.Past, newest = c.ID, recall(c.Body), c.UpdatedAt
		}
	}
	return nil
}

// plan runs the planner and judges the kernels that need no measurement.
func (s *session) plan(ctx context.Context, again bool) error {
	p, store, err := s.planner(ctx)
	if err != nil {
		return err
	}
	proposal, err := p.Plan(ctx, s.state.ID, s.state.Facts)
	if errors.Is(err, planner.ErrMoved) && again && s.state.ID.Kind == change.Pull {
		f, err := s.pull(ctx, s.state.ID.Number)
		if err != nil {
			return err
		}
		s.apply(change.Seen{Facts: f})
		return s.plan(ctx, false)
	}
	if err == nil && proposal.QueueBranch != "" {
		// GitHub looks up the required check of the group, and this job itself, on the same commit.
		return fmt.Errorf("%.12s is the commit of a merge group, and the job of that group judges it: this pull request gets no verdict (close it, or push a different commit)", s.state.Facts.Head)
	}
	if err == nil && len(proposal.Problems) == 0 { // refused sources may not be here
		s.root, err = checkout.OpenBare(mirrorDir(store, s.env.repo)).Root(ctx, cmp.Or(s.state.Facts.BaseSHA, "refs/heads/"+s.state.Facts.Base))
	}
	if err != nil {
		return fmt.Errorf("%w (the workflow must grant contents: read)", err)
	}
	known := map[string]*gates.Verdict{}
	for i, k := range proposal.Kernels {
		e := proposal.Evidence[k.Folder]
		if e == nil {
			continue
		}
		policy, err := proposal.ReadPolicy()
		if err != nil {
			return err
		}
		result, verdict := judge(policy, proposal.PolicyFile, e, k.Rules)
		proposal.Kernels[i].Result, known[k.Folder] = &result, verdict
	}
	s.apply(change.Planned{Plan: proposal.Plan})
	for _, r := range s.state.Runs {
		if v := known[r.Folder]; v != nil {
			s.verdicts[r.Job] = v
		}
	}
	return nil
}

func (s *session) shelf() shelf { return shelf{filepath.Join(s.scratch, "bundles")} }

// view returns what GitHub should show.
func (s *session) view() present.View {
	labels := slices.Clone(s.Labels)
	for _, r := range s.state.Runs {
		labels = append(labels, r.Labels...)
	}
	page := s.env.runURL()
	if s.state.ID.Kind == change.Pull {
		page = s.env.pullPage(s.state.ID.Number, s.rules())
	}
	return present.View{
		State: s.state, Beside: s.beside, Verdicts: s.verdicts, Workflow: true, Now: s.Now(), RunURL: page, Web: s.env.serverURL,
		Runners: []present.RunnerInfo{{Name: s.env.runner, Labels: labels, Busy: true}},
	}
}
