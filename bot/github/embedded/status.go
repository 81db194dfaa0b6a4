package embedded

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/google/go-github/v60/github"
)

type status struct {
	Status
	id      int64
	sha     string
	creator *account
	app     *App
	created time.Time
}

// A Status is one commit status.
type Status struct {
	Context, State, Description string
	TargetURL                   string `json:"target_url"`
	Creator                     string // login
}

// Statuses reads the newest status of each context on a commit.
func (r *Repo) Statuses(sha string) []Status {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return each(r.latestStatuses(sha), func(st *status) Status { return st.Status })
}

func (r *Repo) latestStatuses(sha string) []*status {
	var out []*status
	for _, st := range slices.Backward(r.statuses) {
		if st.sha == sha && !slices.ContainsFunc(out, func(o *status) bool { return o.Context == st.Context }) {
			out = append(out, st)
		}
	}
	return out
}

func (st *status) render(r *Repo) *github.RepoStatus {
	return &github.RepoStatus{ID: &st.id, NodeID: ptr(nodeID("StatusContext", st.id)), URL: ptr(r.api("/statuses/%s", st.sha)), State: &st.State,
		TargetURL: orNil(st.TargetURL), Description: orNil(st.Description), Context: &st.Context, AvatarURL: ptr(r.s.url + "/avatars/" + itoa(st.creator.id)),
		Creator: st.creator.render(r.s.url), CreatedAt: when(st.created), UpdatedAt: when(st.created)}
}

func postStatus(rq *request, sha string) error {
	var in Status
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
	in.Context, in.Creator = cmp.Or(in.Context, "default"), rq.actor.user.login
	st := &status{Status: in, id: rq.s.id(), sha: sha, creator: rq.actor.user, created: rq.s.now()}
	if inst := rq.actor.inst(); inst != nil {
		st.app = inst.app
	}
	r.statuses = append(r.statuses, st)
	e := &github.StatusEvent{ID: &st.id, SHA: &st.sha, State: &st.State, Description: orNil(st.Description), TargetURL: orNil(st.TargetURL),
		Context: &st.Context, Name: ptr(r.fullName()), CreatedAt: when(st.created), UpdatedAt: when(st.created)}
	r.emit(st.creator, "status", "", nil, e)
	if err := r.advance(); err != nil {
		return err
	}
	return rq.reply(http.StatusCreated, st.render(r))
}
