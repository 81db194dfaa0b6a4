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

// Statuses returns the newest status of each context on a commit.
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

// maxStatuses is the number of statuses that a commit can have per context.
const maxStatuses = 1000

// validate refuses a status that GitHub would refuse.
func (s Status) validate() error {
	if !slices.Contains([]string{"error", "failure", "pending", "success"}, s.State) {
		return invalid("Status", "state", "invalid", "State is not included in the list")
	}
	if s.TargetURL != "" && !isWebAddress(s.TargetURL) {
		return invalid("Status", "target_url", "invalid", "target_url must use http(s) scheme")
	}
	return cmp.Or(checkLength("Status", "description", s.Description, 0, 140), checkLength("Status", "context", s.Context, 1, 255))
}

// listStatuses lists all statuses of a commit, newest first.
func listStatuses(rq *request, sha string) error {
	var all []*status
	for _, st := range slices.Backward(rq.repo.statuses) {
		if st.sha == sha {
			all = append(all, st)
		}
	}
	return rq.ok(each(page(rq, all), func(st *status) *github.RepoStatus { return st.render(rq.repo) }))
}

func postStatus(rq *request, sha string) error {
	var in Status
	if err := rq.read(&in); err != nil {
		return err
	}
	r := rq.repo
	in.Context, in.Creator = cmp.Or(in.Context, "default"), rq.actor.user.login
	if err := in.validate(); err != nil {
		return err
	}
	if n := count(r.statuses, func(st *status) bool { return st.sha == sha && st.Context == in.Context }); n >= maxStatuses {
		return invalid("Status", "", "custom", "This SHA and context has reached the maximum number of statuses.")
	}
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
