package embedded

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
)

//go:embed page.html
var pageText string

// A view is the content of one page: its path, its title, and boxes with lists, texts and code.
type view struct {
	Title string
	Note  string
	Path  []row
	Tabs  []row
	Pull  *viewPull
	Boxes []box
}

type viewPull struct {
	State              string
	Author, Head, Base row
	Comments           []viewComment
}

type viewComment struct {
	ID, Did   string
	By        row
	Bot       bool
	HTML      template.HTML
	Reactions []string
}

type box struct {
	Title string
	Rows  []row
	HTML  template.HTML
	Code  string
}

// A row is one line of a list. Without a URL it is not a link.
type row struct{ URL, Text, Note, State string }

// apiRoots are the first path segments of the API. All other paths are pages.
var apiRoots = strings.Fields("app app-manifests graphql installation orgs rate_limit repos repositories user users")

// isPage reports whether a path is a page. Pages and the API share the root.
func isPage(path string) bool {
	root, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return !strings.HasPrefix(path, "/api/v3/") && path != enterpriseGraphQL && !slices.Contains(apiRoots, root)
}

// servePage serves the pages for people. It shows public repositories only, because it has no
// logins.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	s.mu.Lock()
	shown, at, text := s.view(r)
	s.mu.Unlock()
	switch {
	case at != "":
		http.Redirect(w, r, at, http.StatusMovedPermanently)
		return
	case text != "":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(text)) // the client may have hung up
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if shown == nil {
		shown = &view{Title: "404: this is not the page you are looking for", Path: []row{home}}
		w.WriteHeader(http.StatusNotFound)
	}
	page := template.Must(template.New("page").Funcs(template.FuncMap{"mark": mark}).Parse(pageText))
	_ = page.Execute(w, shown) // the client may have hung up
}

var home = row{URL: "/", Text: "embedded GitHub"}

// view returns a page, the address to redirect to, or a plain text.
func (s *Server) view(r *http.Request) (v *view, at, text string) {
	part := strings.SplitN(strings.Trim(r.URL.Path, "/"), "/", 4)
	part = append(part, "", "", "")
	switch {
	case part[0] == "":
		return s.viewOwner(""), "", ""
	case part[0] == "apps", part[0] == "settings" && part[1] == "installations":
		return s.viewApp(part), "", ""
	case part[0] == "avatars":
		return nil, "", "a picture\n"
	case part[1] == "":
		return s.viewOwner(part[0]), "", ""
	}
	if to := s.movedFrom(part[0], part[1]); to != nil && !to.private {
		return nil, to.html("/%s", strings.Join(part[2:4], "/")), ""
	}
	repo := s.repo(part[0], part[1])
	if repo == nil || repo.private {
		return nil, "", ""
	}
	if text = repo.plain(part[2], part[3]); text != "" {
		return nil, "", text
	}
	if v = repo.view(part[2], part[3]); v == nil {
		return nil, "", ""
	}
	v.Path = append([]row{home, {URL: "/" + repo.owner.login, Text: repo.owner.login}, {URL: repo.html(""), Text: repo.name}}, v.Path...)
	v.Note = "git clone " + repo.html(".git")
	v.Tabs = append([]row{{URL: repo.html(""), Text: "Code"}, {URL: repo.html("/pulls"), Text: "Pull requests"}, {URL: repo.html("/commits/%s", repo.branch), Text: "Commits"}}, v.Tabs...)
	return v, "", ""
}

// viewOwner lists the repositories of one account, or all of them.
func (s *Server) viewOwner(login string) *view {
	v := &view{Title: login, Path: []row{home}}
	for _, r := range s.repos {
		if r.private || login != "" && r.owner.login != login {
			continue
		}
		b := box{Title: r.fullName(), Rows: []row{{URL: r.html(""), Text: "Code"}, {URL: r.html("/pulls"), Text: "Pull requests"}}}
		for _, pr := range r.pulls {
			b.Rows = append(b.Rows, pr.row())
		}
		v.Boxes = append(v.Boxes, b)
	}
	if login != "" && s.users[login] == nil {
		return nil
	}
	return v
}

// viewApp shows an App's page, or its settings in one account.
func (s *Server) viewApp(part []string) *view {
	for _, app := range s.apps {
		v := &view{Title: cmp.Or(app.opt.Name, app.opt.Slug), Path: []row{home}, Boxes: []box{{Title: "A GitHub App", Rows: []row{
			{URL: "/" + app.owner.login, Text: "by " + app.owner.login}, {URL: cmp.Or(app.opt.Site, s.url), Text: "its own site", Note: app.opt.Description}}}}}
		if part[0] == "apps" && part[1] == app.opt.Slug {
			return v
		}
		for _, in := range app.insts {
			if part[0] == "settings" && part[2] == itoa(in.id) {
				v.Boxes = append(v.Boxes, box{Title: "Installed for", Rows: []row{{URL: in.account.page(), Text: in.account.login}}})
				return v
			}
		}
	}
	return nil
}

func (pr *PR) row() row {
	return row{URL: pr.repo.html("/pull/%d", pr.number), Text: fmt.Sprintf("#%d %s", pr.number, pr.title), Note: pr.word() + ", by " + pr.author.login}
}

// word returns the state as the page shows it.
func (pr *PR) word() string {
	switch {
	case !pr.mergedAt.IsZero():
		return "merged"
	case pr.draft && pr.state == "open":
		return "draft"
	}
	return pr.state
}

// view shows one tab of the pull request: conversation, files, commits or checks.
func (pr *PR) view(tab string) *view {
	r := pr.repo
	at := r.html("/pull/%d", pr.number)
	v := &view{Title: fmt.Sprintf("%s #%d", pr.title, pr.number), Path: []row{{URL: at, Text: fmt.Sprintf("#%d", pr.number)}},
		Tabs: []row{{URL: at, Text: "Conversation"}, {URL: at + "/commits", Text: "Its commits"}, {URL: at + "/checks", Text: "Checks"}, {URL: at + "/files", Text: "Files changed"}}}
	switch tab {
	case "":
		v.Pull = &viewPull{State: pr.word(), Author: row{URL: pr.author.page(), Text: pr.author.login},
			Head: row{URL: r.html("/commit/%s", pr.headSHA), Text: pr.headSHA[:12]}, Base: row{URL: r.html("/tree/%s", pr.baseRef), Text: pr.baseRef}, Comments: pr.conversation()}
		v.Boxes = append(r.viewChecks(pr.headSHA), pr.viewMerge()...)
	case "checks":
		v.Boxes = r.viewChecks(pr.headSHA)
	case "commits":
		v.Boxes = []box{r.viewLog(pr.commits())}
	case "files":
		v.Boxes = r.viewDiff(pr.fork(), pr.headSHA)
	default:
		return nil
	}
	return v
}

// viewMerge shows whether the owner could merge an open pull request now, like the box at the end
// of GitHub's page.
func (pr *PR) viewMerge() []box {
	if pr.state != "open" {
		return nil
	}
	says := row{State: "success", Text: "This pull request can be merged", Note: "It has no conflicts with " + pr.baseRef + "."}
	if err := pr.mayMerge(pr.repo.owner); err != nil {
		says = row{State: "failure", Text: "Merging is blocked", Note: asAPIError(err).Message}
		missing := pr.repo.unmet(pr.baseRef, pr.headSHA)
		if len(missing) > 0 && !slices.ContainsFunc(missing, func(m unmet) bool { return m.state == "failing" }) {
			says.State = "pending"
		}
	}
	return []box{{Title: "Merging", Rows: []row{says}}}
}

func (pr *PR) conversation() []viewComment {
	var out []viewComment
	said := func(id, did, body string, by *account, all []*reaction) {
		out = append(out, viewComment{ID: id, Did: did, By: row{URL: by.page(), Text: by.login}, Bot: by.kind == "Bot", HTML: rendered(body), Reactions: shownReactions(all)})
	}
	if pr.body != "" {
		said("top", "wrote", pr.body, pr.author, nil)
	}
	for _, c := range pr.comments() {
		said(fmt.Sprintf("issuecomment-%d", c.id), "commented", c.body, c.author, c.reactions)
	}
	for _, v := range pr.repo.reviews {
		if v.pr == pr && v.body != "" {
			said(fmt.Sprintf("pullrequestreview-%d", v.id), "reviewed: "+strings.ToLower(v.state), v.body, v.author, nil)
		}
	}
	for _, c := range pr.remarks() {
		said(fmt.Sprintf("discussion_r%d", c.id), fmt.Sprintf("commented on %s:%d", c.on.path, c.on.number), c.body, c.author, c.reactions)
	}
	return out
}

func shownReactions(all []*reaction) []string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(emoji)) {
		if n := count(all, func(r *reaction) bool { return r.content == kind }); n > 0 {
			out = append(out, fmt.Sprintf("%s %d", emoji[kind], n))
		}
	}
	return out
}

var emoji = map[string]string{
	"+1": "👍", "-1": "👎", "laugh": "😄", "hooray": "🎉", "confused": "😕", "heart": "❤️", "rocket": "🚀", "eyes": "👀",
}
