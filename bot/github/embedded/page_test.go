package embedded_test

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// look requests a page as a browser would.
func (w *world) look(address string) (status int, kind, text string) {
	w.Helper()
	answer, err := http.Get(address)
	w.no(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	w.no(err)
	return answer.StatusCode, answer.Header.Get("Content-Type"), string(body)
}

func TestPageRendersComments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	pr := w.opened()
	c, err := pr.Comment("alice", "<!-- hidden -->\n## Read\n\n| a | b |\n| - | - |\n| 1 | `2` |\n\n<details><summary>More</summary>\n\n*text*\n\n</details>\n\n<script>alert(1)</script>")
	w.no(err)
	w.no(c.React("bob", "rocket"))
	w.no(pr.Review("bob", "APPROVE", "Well done"))
	_, _, text := w.look(pr.URL())
	for _, want := range []string{"Faster", "&lt;script&gt;", "<h2>Read</h2>", "<td><code>2</code></td>", "<details><summary>More</summary>", "🚀 1", "Well done"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not show %s:\n%s", want, text)
		}
	}
	for _, no := range []string{"<script>", "hidden -->"} {
		if strings.Contains(text, no) {
			t.Errorf("the page has %s", no)
		}
	}
	for _, path := range []string{"/nobody", "/alice/none", "/alice/kernels/pull/9", "/alice/kernels/commit/zzz", "/alice/kernels/blob/main/none.cu", "/apps/none"} {
		if status, kind, _ := w.look(w.hub.URL() + path); status != 404 || !strings.HasPrefix(kind, "text/html") {
			t.Errorf("%s answers %d with %s", path, status, kind)
		}
	}
	_, err = w.hub.CreateRepo(embedded.RepoOptions{Owner: "alice", Name: "secret", Private: true})
	w.no(err)
	if status, _, _ := w.look(w.hub.URL() + "/alice/secret"); status != 404 {
		t.Errorf("a private repository answers %d", status)
	}
	w.no(w.repo.Rename("cuda"))
	if status, _, text := w.look(pr.URL()); status != 200 || !strings.Contains(text, "Faster") {
		t.Errorf("after the repository was renamed: %d", status)
	}
	if status, _, text := w.look(w.hub.URL() + "/alice/kernels/pull/1/files"); status != 200 || !strings.Contains(html.UnescapeString(text), "+two") {
		t.Errorf("under the old name: %d", status)
	}
}

// A crawler follows links until it finds no new ones.
type crawler struct {
	*world
	seen map[string]bool
	todo []string
}

var hrefs = regexp.MustCompile(`href="([^"]*)"`)

func (c *crawler) add(from, link string) {
	c.Helper()
	base, err := url.Parse(from)
	c.no(err)
	to, err := base.Parse(link)
	c.no(err)
	to.Fragment = ""
	if strings.HasPrefix(to.String(), c.hub.URL()) && !strings.HasSuffix(to.Path, ".git") && !c.seen[to.String()] {
		c.seen[to.String()] = true
		c.todo = append(c.todo, to.String())
	}
}

// addFrom adds the addresses for browsers that an API answer contains.
func (c *crawler) addFrom(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			c.addFrom(item)
		}
	case map[string]any:
		for name, item := range v {
			text, _ := item.(string)
			switch name {
			case "html_url", "diff_url", "patch_url", "avatar_url", "external_url":
				if text != "" {
					c.add(c.hub.URL()+"/", text)
				}
			default:
				c.addFrom(item)
			}
		}
	}
}

// TestEveryLinkLeadsToAPage crawls a repository with some history. It starts from the pages and
// from the addresses in API answers and webhooks.
func TestEveryLinkLeadsToAPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	merged := w.opened()
	w.no(merged.Merge("alice"))
	_, err := w.repo.PushCommit(embedded.Commit{Branch: "topic/two", Author: "bob", Files: map[string]string{"deep/er/c.cu": "c\n", "a.cu": "three\n"}, Delete: []string{"b.cu"}, Message: "two\n\nwords"})
	w.no(err)
	pr := w.open(embedded.PROptions{Author: "bob", Title: "Two", Body: "for alice", Head: "topic/two", Labels: []string{"perf"}})
	fork, err := w.repo.Fork("eve")
	w.no(err)
	_, err = fork.Push("evil", map[string]string{"a.cu": "evil\n"}, "evil")
	w.no(err)
	w.open(embedded.PROptions{Author: "eve", Title: "From afar", Head: "evil", HeadRepo: fork})
	sha := pr.HeadSHA()
	bot, alice := w.bot(), w.person("alice")
	_, _, err = bot.Issues.CreateComment(w.ctx, "alice", "kernels", pr.Number(), &github.IssueComment{Body: github.String(fmt.Sprintf(
		"[%.7s](/alice/kernels/commit/%s) [a.cu](%s/alice/kernels/blob/%s/a.cu#L1) [checks](/alice/kernels/pull/%d/checks)", sha, sha, w.hub.URL(), sha, pr.Number()))})
	w.no(err)
	_, _, err = bot.Checks.CreateCheckRun(w.ctx, "alice", "kernels", github.CreateCheckRunOptions{Name: "kernelgate", HeadSHA: sha, Conclusion: github.String("failure"),
		Output: &github.CheckRunOutput{Title: github.String("FAIL"), Summary: github.String("| a |\n| - |\n| 1 |"), Annotations: annotations(1)}})
	w.no(err)
	_, _, err = alice.Repositories.CreateStatus(w.ctx, "alice", "kernels", sha, &github.RepoStatus{State: github.String("success"), Context: github.String("other")})
	w.no(err)
	w.no(pr.Review("alice", "REQUEST_CHANGES", "no"))
	_, err = pr.CommentOn("alice", "a.cu", 1, "here")
	w.no(err)
	w.quiet()

	c := &crawler{world: w, seen: map[string]bool{}}
	for _, path := range []string{"", "/pulls?state=all", "/pulls/2", "/pulls/2/reviews", "/issues/2/comments", "/commits/" + sha + "/check-runs"} {
		status, _, text := w.look(w.hub.URL() + "/repos/alice/kernels" + path)
		var tree any
		if err := json.Unmarshal([]byte(text), &tree); err != nil || status != 200 {
			t.Fatalf("%s: %d, %v", path, status, err)
		}
		c.addFrom(tree)
	}
	for _, d := range w.app.Hook().Deliveries() {
		var tree any
		w.no(json.Unmarshal(d.Payload, &tree))
		c.addFrom(tree)
	}
	fromAPI := len(c.todo)
	c.add(w.hub.URL(), "/")
	for len(c.todo) > 0 {
		at := c.todo[0]
		c.todo = c.todo[1:]
		status, kind, text := w.look(at)
		if status != 200 || !strings.HasPrefix(kind, "text/") {
			t.Errorf("%s answers %d with %s", at, status, kind)
		}
		if !strings.HasPrefix(kind, "text/html") {
			continue
		}
		for _, m := range hrefs.FindAllStringSubmatch(text, -1) {
			c.add(at, html.UnescapeString(m[1]))
		}
	}
	if fromAPI < 20 || len(c.seen) < fromAPI+50 {
		t.Errorf("only %d pages were seen, %d of them from the API", len(c.seen), fromAPI)
	}
}
