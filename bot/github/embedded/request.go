package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// maxBody is far above every limit of the API, so that the API's own limits answer first.
const maxBody = 32 << 20

// A request is one API call on its way through the hub. It implements ResponseWriter and buffers
// the answer, because limits, ETags and faults decide after the handler what the client receives.
type request struct {
	*http.Request
	s      *Server
	actor  actor
	repo   *Repo
	mount  string // path prefix under which the client called the API
	body   []byte
	header http.Header

	status int
	answer any
	err    error
}

func (rq *request) Header() http.Header         { return rq.header }
func (rq *request) Write(b []byte) (int, error) { return len(b), nil }
func (rq *request) query(name string) string    { return rq.URL.Query().Get(name) }
func (rq *request) WriteHeader(status int) {
	rq.err = &apiError{Status: status, Message: http.StatusText(status)}
}
func (rq *request) pathInt(name string) int64 {
	n, _ := strconv.ParseInt(rq.PathValue(name), 10, 64)
	return n
}

// there returns what a search found, or a 404 if it found nothing.
func there[T any](found *T) (*T, error) {
	if found == nil {
		return nil, errNotFound()
	}
	return found, nil
}

func (rq *request) reply(status int, v any) error { rq.status, rq.answer = status, v; return nil }
func (rq *request) ok(v any) error                { return rq.reply(http.StatusOK, v) }

// read decodes the body. Invalid JSON is a 400. JSON of the wrong type for a field, such as
// "yesterday" for a date, is a 422.
func (rq *request) read(into any) error {
	if len(rq.body) == 0 {
		return nil
	}
	err := json.Unmarshal(rq.body, into)
	if _, broken := errors.AsType[*json.SyntaxError](err); broken {
		return &apiError{Status: 400, Message: "Problems parsing JSON"}
	}
	if err != nil {
		return &apiError{Status: 422, Message: "Invalid request.\n\n" + err.Error()}
	}
	return nil
}

// enterpriseGraphQL is the path of the GraphQL API on GitHub Enterprise.
const enterpriseGraphQL = "/api/graphql"

// handler dispatches to git, the pages and the API.
func (s *Server) handler() http.Handler {
	api := s.routes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mount := ""
		switch path := r.URL.Path; {
		case strings.Contains(path, ".git/"):
			s.serveGit(w, r)
			return
		case newAppPage.MatchString(path):
			s.serveNewApp(w, r)
			return
		case isPage(path):
			s.servePage(w, r)
			return
		case strings.HasPrefix(path, "/api/v3/"):
			mount = "/api/v3"
		case path == enterpriseGraphQL:
			mount = "/api"
		}
		http.StripPrefix(mount, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.serveAPI(w, s.byName(r), api, mount)
		})).ServeHTTP(w, r)
	})
}

var byNumber = regexp.MustCompile(`^/repositories/(\d+)(/.*)?$`)

// byName replaces a repository's number in the path by its full name, which is what the routes
// match.
func (s *Server) byName(r *http.Request) *http.Request {
	m := byNumber.FindStringSubmatch(r.URL.Path)
	if m == nil {
		return r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if repo := find(s.repos, func(repo *Repo) bool { return itoa(repo.id) == m[1] }); repo != nil {
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = "/repos/"+repo.fullName()+m[2], ""
	}
	return r
}

func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request, api http.Handler, mount string) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return
	}
	s.mu.Lock()
	s.running++
	fault := s.drawFault(r)
	requestID := fmt.Sprintf("%04X:%08X", s.rand.IntN(1<<16), s.rand.Uint32())
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
	}()
	w.Header().Set("X-GitHub-Request-Id", requestID)
	w.Header().Set("X-GitHub-Media-Type", "github.v3; format=json")
	w.Header().Set("X-GitHub-Api-Version-Selected", "2022-11-28")
	if fault.before(w) || !s.listsInTime(r) {
		return
	}

	rq := &request{Request: r, s: s, mount: mount, body: body, header: w.Header()}
	raw := s.perform(rq, api)
	if fault.kind == LostAnswer {
		breakConnection(w)
		return
	}
	w.WriteHeader(rq.status)
	_, _ = w.Write(raw) // the client may have hung up
}

// perform runs the handler under the hub's lock, so that each call is atomic.
func (s *Server) perform(rq *request, api http.Handler) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	rq.actor, rq.err = s.authenticate(rq.Request)
	if rq.err == nil {
		rq.err = s.admit(rq)
	}
	if rq.err == nil {
		api.ServeHTTP(rq, rq.Request)
	}
	raw := rq.encode()
	counted := !rq.unchanged(raw)
	if !counted && rq.status == http.StatusNotModified {
		raw = nil
	}
	s.account(rq, counted)
	return raw
}

func (rq *request) encode() []byte {
	if rq.err != nil {
		api := asAPIError(rq.err)
		rq.status, rq.answer = api.Status, api.body()
		for name, values := range api.Header {
			rq.header[name] = values
		}
	}
	if rq.status == http.StatusNoContent {
		return nil
	}
	rq.header.Set("Content-Type", "application/json; charset=utf-8")
	raw, err := encode(rq.answer)
	if err != nil {
		rq.status = http.StatusInternalServerError
		return []byte(`{"message":"Server Error"}`)
	}
	return raw
}

// unchanged turns the answer to a conditional request into a 304 if the client already has this
// answer.
func (rq *request) unchanged(raw []byte) bool {
	if rq.Method != http.MethodGet || rq.status != http.StatusOK {
		return false
	}
	sum := sha256.Sum256(append([]byte(rq.actor.key()), raw...))
	etag := hex.EncodeToString(sum[:])
	rq.header.Set("ETag", `W/"`+etag+`"`)
	rq.header.Set("Cache-Control", "private, max-age=60, s-maxage=60")
	if !strings.Contains(rq.Request.Header.Get("If-None-Match"), etag) {
		return false
	}
	rq.status = http.StatusNotModified
	rq.header.Del("Content-Type")
	return true
}
