package embedded

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/google/go-github/v60/github"
)

type status struct {
	id                     int64
	sha, context, state    string
	description, targetURL string
	creator                *account
	app                    *App
	created                time.Time
}

// A Status is one commit status.
type Status struct {
	Context, State, Description, TargetURL string
	Creator                                string
}

// Statuses reads the newest status of each context on a commit.
func (r *Repo) Statuses(sha string) []Status {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return each(r.latestStatuses(sha), func(st *status) Status {
		return Status{Context: st.context, State: st.state, Description: st.description, TargetURL: st.targetURL, Creator: st.creator.login}
	})
}

func (r *Repo) latestStatuses(sha string) []*status {
	var out []*status
	for _, st := range slices.Backward(r.statuses) {
		if st.sha == sha && !slices.ContainsFunc(out, func(o *status) bool { return o.context == st.context }) {
			out = append(out, st)
		}
	}
	return out
}

func (st *status) render(r *Repo) *github.RepoStatus {
	return &github.RepoStatus{ID: &st.id, NodeID: ptr(nodeID("StatusContext", st.id)), URL: ptr(r.api("/statuses/%s", st.sha)), State: &st.state,
		TargetURL: orNil(st.targetURL), Description: orNil(st.description), Context: &st.context, AvatarURL: ptr(r.s.url + "/avatars/" + itoa(st.creator.id)),
		Creator: st.creator.render(r.s.url), CreatedAt: when(st.created), UpdatedAt: when(st.created)}
}

func postStatus(rq *request, sha string) error {
	var in struct {
		State, Description, Context string
		TargetURL                   string `json:"target_url"`
	}
	if err := rq.read(&in); err != nil {
		return err
	}
	r := rq.repo
	if !slices.Contains([]string{"error", "failure", "pending", "success"}, in.State) {
		return invalid("Status", "state", "invalid", "State is not included in the list")
	}
	if err := checkLength("Status", "description", in.Description, 0, 140); err != nil {
		return err
	}
	st := &status{id: rq.s.id(), sha: sha, context: cmp.Or(in.Context, "default"), state: in.State, description: in.Description,
		targetURL: in.TargetURL, creator: rq.actor.user, created: rq.s.now()}
	if inst := rq.actor.inst(); inst != nil {
		st.app = inst.app
	}
	r.statuses = append(r.statuses, st)
	e := &github.StatusEvent{ID: &st.id, SHA: &st.sha, State: &st.state, Description: orNil(st.description), TargetURL: orNil(st.targetURL),
		Context: &st.context, Name: ptr(r.fullName()), CreatedAt: when(st.created), UpdatedAt: when(st.created)}
	r.emit(st.creator, "status", "", nil, e)
	if err := r.advance(); err != nil {
		return err
	}
	return rq.reply(http.StatusCreated, st.render(r))
}
