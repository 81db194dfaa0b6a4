package embedded

import (
	"encoding/base64"
	"strings"

	"github.com/google/go-github/v60/github"
)

func getUser(rq *request) error {
	switch {
	case rq.actor.inst() != nil || rq.actor.app != nil:
		return forbidden("Resource not accessible by integration")
	case rq.actor.anonymous():
		return unauthorised("Requires authentication")
	}
	return rq.ok(rq.actor.user.renderFull(rq.s))
}

func getUserByLogin(rq *request) error {
	u := rq.s.users[rq.PathValue("login")]
	if u == nil {
		return errNotFound()
	}
	return rq.ok(u.renderFull(rq.s))
}

func listOwnRepos(rq *request) error {
	if rq.actor.user == nil || rq.actor.inst() != nil {
		return unauthorised("Requires authentication")
	}
	out := []*github.Repository{}
	for _, r := range rq.s.repos {
		if u := rq.actor.user; u == r.owner || r.roles[u].rank() > 0 {
			out = append(out, rq.renderRepo(r))
		}
	}
	return rq.ok(page(rq, out))
}

// renderRepo adds what the caller may do, which events do not say.
func (rq *request) renderRepo(r *Repo) *github.Repository {
	out := r.render()
	out.SubscribersCount, out.NetworkCount = ptr(0), out.ForksCount
	if u := rq.actor.user; u != nil && rq.actor.inst() == nil {
		out.Permissions = renderRole(r.role(u))
	}
	if r.parent != nil {
		out.Parent, out.Source = r.parent.render(), r.parent.render()
	}
	return out
}

func renderRole(role Role) map[string]bool {
	return map[string]bool{"pull": role.atLeast(Read), "triage": role.atLeast(Triage), "push": role.atLeast(Write),
		"maintain": role.atLeast(Maintain), "admin": role.atLeast(Admin)}
}

func getRepo(rq *request) error { return rq.ok(rq.renderRepo(rq.repo)) }

func (r *Repo) renderBranch(name string, full bool) *github.Branch {
	sha := r.heads[name]
	out := &github.Branch{Name: &name, Protected: ptr(r.protection[name] != nil), Commit: &github.RepositoryCommit{SHA: &sha, URL: ptr(r.api("/commits/%s", sha))}}
	if full {
		out.Commit = r.renderCommit(r.git.log(1, sha)[0])
	}
	return out
}

func listBranches(rq *request) error {
	out := []*github.Branch{}
	for name := range rq.repo.sortedHeads() {
		if want := rq.query("protected"); want == "" || (want == "true") == (rq.repo.protection[name] != nil) {
			out = append(out, rq.repo.renderBranch(name, false))
		}
	}
	return rq.ok(page(rq, out))
}

func getBranch(rq *request) error {
	name := rq.PathValue("branch")
	if rq.repo.heads[name] == "" {
		return &apiError{Status: 404, Message: "Branch not found"}
	}
	return rq.ok(rq.repo.renderBranch(name, true))
}

func isCollaborator(rq *request) error {
	u := rq.s.users[rq.PathValue("login")]
	if u == nil || u != rq.repo.owner && rq.repo.roles[u].rank() <= 0 {
		return errNotFound()
	}
	return rq.noContent()
}

// permissionEntry has the role's own name, which go-github's struct lacks.
type permissionEntry struct {
	github.RepositoryPermissionLevel
	RoleName string `json:"role_name"`
}

func getPermission(rq *request) error {
	u := rq.s.users[rq.PathValue("login")]
	if u == nil {
		return &apiError{Status: 404, Message: rq.PathValue("login") + " is not a user"}
	}
	role := rq.repo.role(u)
	who := u.render(rq.s.url)
	who.Permissions, who.RoleName = renderRole(role), ptr(string(role))
	return rq.ok(permissionEntry{RoleName: string(role),
		RepositoryPermissionLevel: github.RepositoryPermissionLevel{Permission: ptr(role.legacy()), User: who}})
}

func getContents(rq *request) error {
	r, path := rq.repo, strings.Trim(rq.PathValue("path"), "/")
	ref := rq.query("ref")
	if ref == "" {
		ref = r.branch
	}
	sha, ok := r.git.resolve(ref)
	if !ok {
		return &apiError{Status: 404, Message: "No commit found for the ref " + ref}
	}
	kind, err := r.git.run("cat-file", "-t", sha+":"+path)
	if err != nil {
		return errNotFound()
	}
	if kind == "tree" {
		return rq.listFolder(sha, ref, path)
	}
	raw, err := r.git.command("cat-file", "blob", sha+":"+path).Output()
	if err != nil {
		return err
	}
	if strings.Contains(rq.Request.Header.Get("Accept"), ".raw") {
		rq.text("application/vnd.github.raw; charset=utf-8", string(raw))
		return nil
	}
	blob, err := r.git.run("rev-parse", sha+":"+path)
	if err != nil {
		return err
	}
	out := r.renderContent("file", blob, path, ref, len(raw))
	out.Encoding, out.Content = ptr("base64"), ptr(base64.StdEncoding.EncodeToString(raw))
	return rq.ok(out)
}

func (rq *request) listFolder(sha, ref, path string) error {
	out := []*github.RepositoryContent{}
	listing, err := rq.repo.git.run("ls-tree", "-z", "--long", sha+":"+path)
	if err != nil {
		return err
	}
	for entry := range strings.SplitSeq(strings.TrimRight(listing, "\x00"), "\x00") {
		meta, name, ok := strings.Cut(entry, "\t")
		f := strings.Fields(meta)
		if !ok || len(f) < 4 {
			continue
		}
		kind := map[string]string{"blob": "file", "tree": "dir", "commit": "submodule"}[f[1]]
		out = append(out, rq.repo.renderContent(kind, f[2], strings.TrimPrefix(path+"/"+name, "/"), ref, atoiOr(f[3], 0)))
	}
	return rq.ok(out)
}

func (r *Repo) renderContent(kind, sha, path, ref string, size int) *github.RepositoryContent {
	url := r.api("/contents/%s?ref=%s", path, ref)
	return &github.RepositoryContent{Type: &kind, Size: &size, Name: ptr(path[strings.LastIndex(path, "/")+1:]), Path: &path, SHA: &sha, URL: &url,
		GitURL: ptr(r.api("/git/blobs/%s", sha)), HTMLURL: ptr(r.html("/blob/%s/%s", ref, path)), DownloadURL: ptr(r.html("/raw/%s/%s", ref, path))}
}

func getRef(rq *request) error {
	ref := "refs/" + rq.PathValue("ref")
	sha, err := rq.repo.git.run("rev-parse", "--quiet", "--verify", ref)
	if err != nil {
		return errNotFound()
	}
	return rq.ok(&github.Reference{Ref: &ref, NodeID: ptr(nodeID("Ref", rq.repo.id)), URL: ptr(rq.repo.api("/git/%s", ref)),
		Object: &github.GitObject{Type: ptr("commit"), SHA: &sha, URL: ptr(rq.repo.api("/git/commits/%s", sha))}})
}
