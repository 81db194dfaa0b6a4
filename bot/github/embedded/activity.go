package embedded

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// An activity is one move of a branch, with the account that pushed it.
type activity struct {
	who                   *account
	branch, before, after string
	forced                bool
	at                    time.Time
}

func (a activity) kind() string {
	switch {
	case a.before == "":
		return "branch_creation"
	case a.after == "":
		return "branch_deletion"
	case a.forced:
		return "force_push"
	}
	return "push"
}

// listActivity answers with the moves of one branch, or of all branches, newest first.
func listActivity(rq *request) error {
	r, branch := rq.repo, strings.TrimPrefix(rq.query("ref"), "refs/heads/")
	var all []map[string]any
	for i, a := range slices.Backward(r.activities) {
		if branch == "" || a.branch == branch {
			all = append(all, map[string]any{
				"id": i + 1, "node_id": nodeID("Push", int64(i+1)), "ref": "refs/heads/" + a.branch, "before": cmp.Or(a.before, zeroSHA), "after": cmp.Or(a.after, zeroSHA),
				"timestamp": a.at.UTC().Format(time.RFC3339), "activity_type": a.kind(), "actor": a.who.render(rq.s.url),
			})
		}
	}
	return rq.ok(all[:min(len(all), rq.perPage())])
}
