package embedded

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
)

// view shows a page below the repository's page. kind is the first segment of the path, rest the
// remaining path.
func (r *Repo) view(kind, rest string) *view {
	switch kind {
	case "", "tree":
		ref, folder := r.splitRef(cmp.Or(rest, r.branch))
		return r.viewFolder(ref, folder)
	case "blob":
		if title, text := r.fileAt(rest); text != "" {
			return &view{Title: title, Boxes: []box{{Title: rest, Code: text}}, Tabs: []row{{URL: r.html("/raw/%s", rest), Text: "Raw"}}}
		}
	case "pulls":
		b := box{Title: "Pull requests"}
		for _, pr := range slices.Backward(r.pulls) {
			b.Rows = append(b.Rows, pr.row())
		}
		return &view{Boxes: []box{b}}
	case "pull":
		number, tab, _ := strings.Cut(rest, "/")
		if pr := r.pull(atoiOr(number, 0)); pr != nil {
			return pr.view(tab)
		}
	case "issues":
		if i := r.issue(atoiOr(rest, 0)); i != nil {
			return i.view()
		}
	case "commits":
		if sha, ok := r.git.resolve(cmp.Or(rest, r.branch)); ok {
			return &view{Boxes: []box{r.viewLog(r.git.log(50, sha))}}
		}
	case "commit":
		if sha, ok := r.git.resolve(rest); ok {
			return r.viewCommit(r.git.log(1, sha)[0])
		}
	case "compare":
		from, to, _ := strings.Cut(rest, "...")
		base, known := r.side(from)
		if head, ok := r.side(to); ok && known {
			return &view{Title: rest, Boxes: append([]box{r.viewLog(r.git.log(50, base+".."+head))}, r.viewDiff(base, head)...)}
		}
	case "runs":
		if run := find(r.runs, func(run *checkRun) bool { return itoa(run.ID) == rest }); run != nil {
			return run.view()
		}
	}
	return nil
}

// plain returns a text that the browser shows unrendered: a file, diff or patch.
func (r *Repo) plain(kind, rest string) string {
	dot := strings.LastIndex(rest, ".")
	switch {
	case kind == "raw":
		_, text := r.fileAt(rest)
		return text
	case dot < 0:
		return ""
	case kind == "pull":
		if pr := r.pull(atoiOr(rest[:dot], 0)); pr != nil {
			return r.span(rest[dot+1:], pr.baseSHA, pr.headSHA)
		}
	case kind == "compare":
		from, to, _ := strings.Cut(rest[:dot], "...")
		base, known := r.side(from)
		if head, ok := r.side(to); ok && known {
			return r.span(rest[dot+1:], base, head)
		}
	}
	return ""
}

// span returns a change as a diff or as a patch, and an empty string for another form.
func (r *Repo) span(form, base, head string) string {
	args := map[string][]string{"diff": {"diff"}, "patch": {"format-patch", "--stdout"}}[form]
	if args == nil {
		return ""
	}
	text, err := r.git.run(append(args, base+"..."+head)...)
	if err != nil {
		return ""
	}
	return text + "\n"
}

// splitRef splits a path after /tree/ or /blob/ into ref and file. A branch name may contain
// slashes.
func (r *Repo) splitRef(rest string) (ref, file string) {
	for name := range r.heads {
		if below, ok := strings.CutPrefix(rest+"/", name+"/"); ok && len(name) > len(ref) {
			ref, file = name, strings.Trim(below, "/")
		}
	}
	if ref == "" {
		ref, file, _ = strings.Cut(rest, "/")
	}
	return ref, file
}

// fileAt returns the file that a path after /blob/ names, or an empty text.
func (r *Repo) fileAt(rest string) (title, text string) {
	ref, file := r.splitRef(rest)
	sha, ok := r.git.resolve(ref)
	if !ok {
		return "", ""
	}
	out, err := r.git.command("cat-file", "blob", sha+":"+file).Output()
	if err != nil {
		return "", ""
	}
	return path.Base(file), string(out) + "\n"
}

func (r *Repo) viewFolder(ref, folder string) *view {
	b := box{Title: path.Join(ref, folder)}
	sha, ok := r.git.resolve(ref)
	if !ok {
		return &view{Boxes: []box{{Title: "There is no commit yet."}}}
	}
	listing, err := r.git.run("ls-tree", "-z", sha+":"+folder)
	if err != nil {
		return nil
	}
	for entry := range strings.SplitSeq(strings.Trim(listing, "\x00"), "\x00") {
		meta, name, ok := strings.Cut(entry, "\t")
		if !ok {
			continue
		}
		kind, slash := "blob", ""
		if strings.Contains(meta, " tree ") {
			kind, slash = "tree", "/"
		}
		b.Rows = append(b.Rows, row{URL: r.html("/%s/%s", kind, path.Join(ref, folder, name)), Text: name + slash})
	}
	return &view{Boxes: []box{b}}
}

func (r *Repo) viewLog(commits []gitCommit) box {
	b := box{Title: "Commits"}
	for _, c := range commits {
		subject, _, _ := strings.Cut(c.message, "\n")
		b.Rows = append(b.Rows, row{URL: r.html("/commit/%s", c.sha), Text: c.sha[:12], Note: subject + ", by " + c.author})
	}
	return b
}

func (r *Repo) viewCommit(c gitCommit) *view {
	subject, _, _ := strings.Cut(c.message, "\n")
	about := box{Title: c.sha, Code: c.message, Rows: []row{{URL: r.html("/tree/%s", c.sha), Text: "Browse files"}}}
	if u := r.s.users[c.author]; u != nil {
		about.Rows = append(about.Rows, row{URL: u.page(), Text: "by " + u.login})
	}
	from := emptyTree
	for i, parent := range c.parents {
		about.Rows = append(about.Rows, row{URL: r.html("/commit/%s", parent), Text: "parent " + parent[:12]})
		if i == 0 {
			from = parent
		}
	}
	return &view{Title: subject, Boxes: slices.Concat([]box{about}, r.viewChecks(c.sha), r.viewDiff(from, c.sha))}
}

// emptyTree is the id of git's empty tree.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

func (r *Repo) viewDiff(from, to string) []box {
	files, err := r.diff(from, to)
	if err != nil {
		return []box{{Title: "The two have no difference to show."}}
	}
	var out []box
	for _, f := range files {
		out = append(out, box{Title: fmt.Sprintf("%s (%s)", f.name, f.status), Code: f.patch, Rows: []row{{URL: f.page, Text: "View file"}}})
	}
	return out
}

// viewChecks shows the newest checks and statuses of a commit.
func (r *Repo) viewChecks(sha string) []box {
	b := box{Title: "Checks"}
	for _, run := range r.latestRuns(sha) {
		b.Rows = append(b.Rows, row{URL: r.html("/runs/%d", run.ID), Text: run.Name, Note: run.Title, State: cmp.Or(run.Conclusion, run.Status)})
	}
	for _, st := range r.latestStatuses(sha) {
		b.Rows = append(b.Rows, row{URL: st.TargetURL, Text: st.Context, Note: st.Description, State: st.State})
	}
	if len(b.Rows) == 0 {
		return nil
	}
	return []box{b}
}

func (c *checkRun) view() *view {
	r := c.suite.repo
	about := box{Title: c.suite.app.opt.Slug, Rows: []row{{URL: r.html("/commit/%s", c.suite.headSHA), Text: c.suite.headSHA[:12], Note: c.Title, State: cmp.Or(c.Conclusion, c.Status)},
		{URL: "/apps/" + c.suite.app.opt.Slug, Text: "by " + c.suite.app.bot.login}}, HTML: rendered(c.Summary + "\n\n" + c.Text)}
	if c.DetailsURL != "" {
		about.Rows = append(about.Rows, row{URL: c.DetailsURL, Text: "Details"})
	}
	notes := box{Title: "Annotations"}
	for _, a := range c.Annotations {
		notes.Rows = append(notes.Rows, row{URL: r.html("/blob/%s/%s", c.suite.headSHA, a.GetPath()), Text: fmt.Sprintf("%s:%d", a.GetPath(), a.GetStartLine()), Note: a.GetMessage()})
	}
	return &view{Title: c.Name, Boxes: []box{about, notes}}
}

var (
	hiddenPattern  = regexp.MustCompile(`(?s)<!--.*?-->`)
	tagPattern     = regexp.MustCompile(`</?([A-Za-z][A-Za-z0-9-]*)[^<>]*>`)
	harmlessTags   = strings.Fields("a b blockquote br code del details em h1 h2 h3 h4 h5 h6 hr input li ol p pre strong sub summary sup table tbody td th thead tr ul")
	escapedBracket = strings.NewReplacer("<", "&lt;", ">", "&gt;")
)

// rendered converts Markdown to HTML as GitHub does, with tables and harmless HTML tags. Other tags
// are escaped. A script that slips through cannot run, because the page's content security policy
// allows no scripts.
func rendered(text string) template.HTML {
	var out bytes.Buffer
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe(), html.WithHardWraps()))
	if err := md.Convert([]byte(text), &out); err != nil {
		return template.HTML("<pre>" + template.HTMLEscapeString(text) + "</pre>")
	}
	text = tagPattern.ReplaceAllStringFunc(hiddenPattern.ReplaceAllString(out.String(), ""), func(tag string) string {
		if name := strings.ToLower(tagPattern.FindStringSubmatch(tag)[1]); slices.Contains(harmlessTags, name) {
			return tag
		}
		return escapedBracket.Replace(tag)
	})
	// A box that scrolls must be reachable by keyboard.
	return template.HTML(strings.NewReplacer("<table>", `<table tabindex="0">`, "<pre>", `<pre tabindex="0">`).Replace(text))
}

// mark returns one character for the state of a check.
func mark(state string) string {
	switch state {
	case "success":
		return "✓"
	case "failure", "error":
		return "✗"
	case "cancelled":
		return "⊘"
	}
	return "●"
}
