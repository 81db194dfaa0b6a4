package embedded

import (
	"net/http"
	"strings"
)

// routes is the whole REST API that the hub knows.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	plain := func(pattern string, handle func(*request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			rq := w.(*request)
			rq.Request = r
			rq.err = handle(rq)
		})
	}
	plain("GET /rate_limit", getRateLimit)
	plain("GET /user", getUser)
	plain("GET /users/{login}", getUserByLogin)
	plain("POST /app-manifests/{code}/conversions", postConversion)
	plain("GET /app", getApp)
	plain("GET /app/installations", listInstallations)
	plain("GET /app/installations/{id}", on((*request).installation, getInstallation))
	plain("DELETE /app/installations/{id}", on((*request).installation, deleteInstallation))
	plain("PUT /app/installations/{id}/suspended", on((*request).installation, suspension))
	plain("DELETE /app/installations/{id}/suspended", on((*request).installation, suspension))
	plain("POST /app/installations/{id}/access_tokens", on((*request).installation, postAccessToken))
	plain("GET /app/hook/deliveries", on((*request).hook, listDeliveries))
	plain("GET /app/hook/deliveries/{delivery}", on((*request).hook, getDelivery))
	plain("POST /app/hook/deliveries/{delivery}/attempts", on((*request).hook, postAttempt))
	plain("GET /installation/repositories", listInstallationRepos)
	plain("GET /repos/{owner}/{repo}/installation", getRepoInstallation)

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
			if method != http.MethodGet && path != "" {
				open = rq.repo.writable
			}
			if err := open(); err != nil {
				return err
			}
			return handle(rq)
		})
	}
	s.repoRoutes(repo)
	s.pullRoutes(repo)
	s.checkRoutes(repo)
	return mux
}

type register func(method, path string, n need, handle func(*request) error)

func (s *Server) repoRoutes(repo register) {
	meta, contents, admin := reads(Read, "metadata"), reads(Read, "contents"), writes(Admin, "administration")
	repo("GET", "", meta, getRepo)
	repo("PATCH", "", admin, patchRepo)
	repo("DELETE", "", admin, deleteRepo)
	repo("POST", "/transfer", admin, postTransfer)
	repo("GET", "/branches/{branch}/protection", reads(Admin, "administration"), getProtection)
	repo("GET", "/collaborators/{login}/permission", reads(Write, "metadata"), getPermission)
	repo("GET", "/compare/{basehead...}", contents, compare)
	repo("GET", "/git/ref/{ref...}", contents, getRef)
	repo("GET", "/commits", contents, listCommits)
	repo("GET", "/commits/{rest...}", reads(Read, "contents", "checks", "statuses", "pull_requests"), commitRoutes)
	hooks := need{role: Admin, level: "write", perms: []string{"repository_hooks"}}
	repo("GET", "/hooks", hooks, listHooks)
	repo("POST", "/hooks", hooks, postHook)
	repo("GET", "/hooks/{hook}/deliveries", hooks, on((*request).hook, listDeliveries))
	repo("GET", "/hooks/{hook}/deliveries/{delivery}", hooks, on((*request).hook, getDelivery))
	repo("POST", "/hooks/{hook}/deliveries/{delivery}/attempts", hooks, on((*request).hook, postAttempt))
}

func (s *Server) pullRoutes(repo register) {
	see, talk := reads(Read, "issues", "pull_requests"), writes(Read, "issues", "pull_requests")
	repo("GET", "/pulls", reads(Read, "pull_requests"), listPulls)
	repo("POST", "/pulls", writes(Read, "pull_requests"), postPull)
	repo("GET", "/pulls/{number}", reads(Read, "pull_requests"), on((*request).pull, getPull))
	repo("GET", "/pulls/{number}/files", reads(Read, "pull_requests"), on((*request).pull, listPullFiles))
	repo("GET", "/pulls/{number}/commits", reads(Read, "pull_requests"), on((*request).pull, listPullCommits))
	repo("PUT", "/pulls/{number}/merge", writes(Write, "contents"), on((*request).pull, putMerge))
	repo("GET", "/pulls/{number}/reviews", reads(Read, "pull_requests"), on((*request).pull, listReviews))
	repo("POST", "/pulls/{number}/reviews", writes(Read, "pull_requests"), on((*request).pull, postReview))
	repo("GET", "/pulls/{number}/comments", reads(Read, "pull_requests"), on((*request).pull, listLineComments))
	repo("POST", "/pulls/{number}/comments", writes(Read, "pull_requests"), on((*request).pull, postLineComment))
	repo("GET", "/pulls/comments/{id}/reactions", reads(Read, "pull_requests"), listReactions)
	repo("POST", "/pulls/comments/{id}/reactions", writes(Read, "pull_requests"), postReaction)
	repo("PUT", "/issues/{number}/lock", writes(Write, "issues", "pull_requests"), on((*request).pull, putLock))
	repo("GET", "/issues/{number}", see, on((*request).pull, getIssue))
	repo("GET", "/issues/{number}/{what}", see, getIssuePart)
	repo("POST", "/issues/{number}/{what}", talk, postIssuePart)
	repo("PATCH", "/issues/comments/{id}", talk, on((*request).comment, patchComment))
	repo("DELETE", "/issues/{number}/{what}", talk, deleteIssuePart)
	repo("GET", "/issues/comments/{id}/reactions", see, listReactions)
	repo("POST", "/issues/comments/{id}/reactions", talk, postReaction)
	repo("DELETE", "/issues/comments/{id}/reactions/{reaction}", talk, deleteReaction)
}

func (s *Server) checkRoutes(repo register) {
	see := reads(Read, "checks")
	write := need{role: Write, level: "write", perms: []string{"checks"}, app: true}
	repo("POST", "/check-runs", write, postCheckRun)
	repo("PATCH", "/check-runs/{id}", write, on((*request).checkRun, patchCheckRun))
	repo("GET", "/check-runs/{id}/annotations", see, on((*request).checkRun, listAnnotations))
	repo("POST", "/statuses/{sha}", writes(Write, "statuses"), postStatus)
}

// commitRoutes takes apart what follows /commits/: a ref may hold slashes, which no
// pattern can match before another word.
func commitRoutes(rq *request) error {
	ref, tail := rq.PathValue("rest"), ""
	for _, t := range []string{"check-runs", "check-suites", "statuses", "status", "pulls"} {
		if cut, ok := strings.CutSuffix(ref, "/"+t); ok {
			ref, tail = cut, t
			break
		}
	}
	sha, ok := rq.repo.git.resolve(ref)
	if !ok {
		return &apiError{Status: 422, Message: "No commit found for SHA: " + ref}
	}
	perm := map[string]string{"check-runs": "checks", "check-suites": "checks", "statuses": "statuses", "status": "statuses", "pulls": "pull_requests", "": "contents"}
	if err := reads(Read, perm[tail]).check(rq.actor, rq.repo); err != nil {
		return err
	}
	switch tail {
	case "check-runs":
		return listRunsForRef(rq, sha)
	case "check-suites":
		return listSuites(rq, sha)
	case "statuses":
		return listStatuses(rq, sha)
	case "status":
		return getCombined(rq, sha)
	case "pulls":
		return listPullsAt(rq, sha)
	}
	return getCommit(rq, sha)
}

// on is a handler of what the path names, which must be there.
func on[T any](find func(*request) (T, error), handle func(*request, T) error) func(*request) error {
	return func(rq *request) error {
		found, err := find(rq)
		if err != nil {
			return err
		}
		return handle(rq, found)
	}
}
