package embedded

import (
	"net/http"
	"strings"
)

// routes registers the calls of the API that the bot makes.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	plain := func(pattern string, handle func(*request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			rq := w.(*request)
			rq.Request = r
			rq.err = handle(rq)
		})
	}
	plain("GET /user", getUser)
	plain("POST /graphql", postGraphQL)
	plain("POST /app-manifests/{code}/conversions", postConversion)
	plain("GET /app", on(needApp, getApp))
	plain("GET /app/installations", on(needApp, listInstallations))
	plain("POST /app/installations/{id}/access_tokens", on((*request).installation, postAccessToken))
	plain("GET /app/hook/deliveries", on(needApp, listDeliveries))
	plain("POST /app/hook/deliveries/{delivery}/attempts", on(needApp, postAttempt))
	plain("GET /installation/repositories", listInstallationRepos)
	plain("GET /repos/{owner}/{repo}/installation", on(needApp, getRepoInstallation))

	repo := func(method, path string, n need, handle func(*request) error) {
		plain(method+" /repos/{owner}/{repo}"+path, func(rq *request) error {
			owner, name := rq.PathValue("owner"), rq.PathValue("repo")
			rq.repo = s.repo(owner, name)
			if to := s.movedFrom(owner, name); to != nil && rq.actor.sees(to) {
				return rq.redirect(to, strings.TrimPrefix(rq.URL.Path, "/repos/"+owner+"/"+name))
			}
			if rq.repo == nil {
				return errNotFound()
			}
			if err := n.check(rq.actor, rq.repo); err != nil {
				return err
			}
			open := rq.repo.usable
			if method != http.MethodGet {
				open = rq.repo.writable
			}
			if err := open(); err != nil {
				return err
			}
			return handle(rq)
		})
	}
	pulls, react := reads(Read, "pull_requests"), writes(Read, "pull_requests")
	see, talk := reads(Read, "issues", "pull_requests"), writes(Read, "issues", "pull_requests")
	check := need{role: Write, level: "write", perms: []string{"checks"}, app: true}
	repo("GET", "", reads(Read, "metadata"), getRepo)
	repo("GET", "/activity", reads(Read, "contents"), listActivity)
	repo("GET", "/collaborators/{login}/permission", reads(Write, "metadata"), getPermission)
	repo("GET", "/pulls", pulls, listPulls)
	repo("GET", "/pulls/{number}", pulls, on((*request).pull, getPull))
	repo("GET", "/pulls/{number}/reviews", pulls, on((*request).pull, listReviews))
	repo("POST", "/pulls/comments/{id}/reactions", react, on((*request).remark, postReaction))
	repo("GET", "/issues", see, hasIssues(listIssues))
	repo("POST", "/issues", writes(Read, "issues"), hasIssues(postIssue))
	repo("GET", "/issues/{number}", see, getIssue)
	repo("PATCH", "/issues/{number}", writes(Read, "issues"), hasIssues(on((*request).findIssue, patchIssue)))
	repo("GET", "/issues/{number}/comments", see, on((*request).conversation, listComments))
	repo("POST", "/issues/{number}/comments", talk, on((*request).conversation, postComment))
	repo("GET", "/issues/{number}/events", see, on((*request).pull, listEvents))
	repo("PATCH", "/issues/comments/{id}", talk, on((*request).comment, patchComment))
	repo("DELETE", "/issues/comments/{id}", talk, on((*request).comment, deleteComment))
	repo("POST", "/issues/comments/{id}/reactions", talk, on((*request).comment, postReaction))
	repo("POST", "/check-runs", check, postCheckRun)
	repo("PATCH", "/check-runs/{id}", check, on((*request).checkRun, patchCheckRun))
	repo("GET", "/commits/{ref}/check-runs", reads(Read, "checks"), on((*request).commit, listRunsForRef))
	repo("POST", "/statuses/{ref}", writes(Write, "statuses"), on((*request).commit, postStatus))
	repo("GET", "/commits/{ref}/statuses", reads(Read, "statuses"), on((*request).commit, listStatuses))
	return mux
}

// commit returns the commit that the path's branch or SHA names.
func (rq *request) commit() (sha string, err error) {
	sha, ok := rq.repo.git.resolve(rq.PathValue("ref"))
	if !ok {
		return "", noCommit(rq.PathValue("ref"))
	}
	return sha, rq.repo.replicated(sha)
}

// on returns a handler that first finds the object that the path names, and fails if find does.
func on[T any](find func(*request) (T, error), handle func(*request, T) error) func(*request) error {
	return func(rq *request) error {
		found, err := find(rq)
		if err != nil {
			return err
		}
		return handle(rq, found)
	}
}
