package embedded

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// serveGit speaks git's smart HTTP protocol. It runs the two services itself, because CGI cannot
// handle the chunked bodies of large pushes.
func (s *Server) serveGit(w http.ResponseWriter, r *http.Request) {
	path, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), ".git/")
	service := r.URL.Query().Get("service")
	advertise := rest == "info/refs" && r.Method == http.MethodGet
	if !advertise {
		service = rest
	}
	if service != "git-upload-pack" && service != "git-receive-pack" || !advertise && r.Method != http.MethodPost {
		http.Error(w, "Please upgrade your git client.", http.StatusForbidden)
		return
	}
	owner, name, _ := strings.Cut(path, "/")
	s.mu.Lock()
	caller, _ := s.authenticate(r) // admitGit reports the error
	if to := s.movedFrom(owner, name); to != nil && caller.sees(to) {
		at := to.html(".git/%s?%s", rest, r.URL.RawQuery)
		s.mu.Unlock()
		http.Redirect(w, r, at, http.StatusMovedPermanently)
		return
	}
	repo, who, err := s.admitGit(r, owner, name, service == "git-receive-pack")
	s.mu.Unlock()
	if err != nil {
		if err.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		}
		http.Error(w, err.Message, err.Status)
		return
	}
	from, failed := repo.git, error(nil)
	if service == "git-upload-pack" {
		s.mu.Lock()
		from, failed = repo.replica()
		s.mu.Unlock()
	}
	if failed != nil {
		http.Error(w, failed.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Cache-Control", "no-cache, max-age=0, must-revalidate")
	if advertise {
		from.advertise(w, r, service)
		return
	}
	repo.serveRPC(w, r, from, service, who)
}

// admitGit authorizes a git request. It answers 401 if the credentials are missing or bad, and 404
// if the caller may not know that the repository exists.
func (s *Server) admitGit(r *http.Request, owner, name string, push bool) (*Repo, *account, *apiError) {
	a, err := s.authenticate(r)
	if err != nil {
		if api := asAPIError(err); api.Status != http.StatusUnauthorized {
			return nil, nil, api
		}
		return nil, nil, unauthorised("Invalid username or password.")
	}
	repo := s.repo(owner, name)
	if repo == nil || !a.sees(repo) {
		if a.anonymous() {
			return nil, nil, unauthorised("Authentication required.")
		}
		return nil, nil, &apiError{Status: 404, Message: "Repository not found."}
	}
	n, open := reads(Read, "contents"), repo.usable
	if push {
		n, open = writes(Write, "contents"), repo.writable
	}
	if err := open(); err != nil {
		return nil, nil, asAPIError(err)
	}
	if err := n.check(a, repo); err != nil {
		api := asAPIError(err)
		if api.Status == http.StatusForbidden {
			api.Message = fmt.Sprintf("Permission to %s.git denied to %s.", repo.fullName(), a.describe())
		}
		return nil, nil, api
	}
	return repo, a.user, nil
}

func (g gitDir) advertise(w http.ResponseWriter, rq *http.Request, service string) {
	cmd := g.command(strings.TrimPrefix(service, "git-"), "--stateless-rpc", "--advertise-refs", ".")
	protocol := rq.Header.Get("Git-Protocol")
	cmd.Env = append(cmd.Env, "GIT_PROTOCOL="+protocol)
	out, err := cmd.Output()
	if err != nil {
		http.Error(w, "git failed", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-"+service+"-advertisement")
	if !strings.Contains(protocol, "version=2") || service == "git-receive-pack" {
		line := "# service=" + service + "\n"
		fmt.Fprintf(w, "%04x%s0000", len(line)+4, line)
	}
	_, _ = w.Write(out) // the client may have hung up
}

func (r *Repo) serveRPC(w http.ResponseWriter, rq *http.Request, from gitDir, service string, who *account) {
	body := io.Reader(rq.Body)
	if rq.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(rq.Body)
		if err != nil {
			http.Error(w, "bad gzip", http.StatusBadRequest)
			return
		}
		body = unzipped
	}
	cmd := from.command(strings.TrimPrefix(service, "git-"), "--stateless-rpc", ".")
	cmd.Env = append(cmd.Env, "GIT_PROTOCOL="+rq.Header.Get("Git-Protocol"))
	cmd.Stdin = body
	w.Header().Set("Content-Type", "application/x-"+service+"-result")
	if service == "git-upload-pack" {
		cmd.Stdout = w
		_ = cmd.Run() // git reports errors to the client, which may have hung up
		return
	}
	// Answer the push only after its effects, such as webhooks, have happened.
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()
	if err == nil {
		r.s.mu.Lock()
		err = r.reconcile(who)
		r.s.mu.Unlock()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(out.Bytes()) // the client may have hung up
}
