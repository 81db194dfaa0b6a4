package embedded

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"
)

// maxCommentBody is a number of bytes. GitHub's message says characters; a client that counts bytes
// satisfies both readings.
const maxCommentBody = 65536

type comment struct {
	id               int64
	pr               *PR    // nil for a comment on an issue
	issue            *Issue // nil for a comment on a pull request
	author           *account
	body             string
	created, updated time.Time
	reactions        []*reaction
	on               *line // nil for a comment in the conversation
}

// A Comment is a snapshot of a comment.
type Comment struct {
	ID           int64
	Author, Body string
	Reactions    map[string][]string // reaction, such as "eyes", to the logins that gave it
	c            *comment
}

// Comments returns the comments in the pull request's conversation, oldest first.
func (pr *PR) Comments() []Comment {
	pr.repo.s.mu.Lock()
	defer pr.repo.s.mu.Unlock()
	return each(pr.comments(), (*comment).snapshot)
}

func (c *comment) snapshot() Comment {
	out := Comment{ID: c.id, Author: c.author.login, Body: c.body, Reactions: map[string][]string{}, c: c}
	for _, r := range c.reactions {
		out.Reactions[r.content] = append(out.Reactions[r.content], r.user.login)
	}
	return out
}

// Comment writes a comment as a user.
func (pr *PR) Comment(user, body string) (Comment, error) {
	return pr.write(user, "comment on", func(who *account) (*comment, error) { return pr.comment(who, body) })
}

func (pr *PR) write(user, doing string, write func(who *account) (*comment, error)) (out Comment, err error) {
	err = pr.act(user, doing, func(who *account) error {
		c, err := write(who)
		if err == nil {
			out = c.snapshot()
		}
		return err
	})
	return out, err
}

// Edit changes the text of a comment as a user.
func (c Comment) Edit(user, body string) error {
	return c.c.pr.act(user, "edit a comment on", func(who *account) error { return c.c.edit(who, body) })
}

// React adds a reaction to a comment as a user.
func (c Comment) React(user, content string) error {
	return c.c.pr.act(user, "react on", func(who *account) error {
		_, _, err := c.c.react(who, content)
		return err
	})
}

func (pr *PR) comments() []*comment {
	return slices.DeleteFunc(slices.Clone(pr.repo.comments), func(c *comment) bool { return c.pr != pr })
}

func checkCommentBody(body string) error {
	switch {
	case strings.TrimSpace(body) == "":
		return invalid("IssueComment", "body", "missing_field", "Body can't be blank")
	case len(body) > maxCommentBody:
		return invalid("IssueComment", "data", "unprocessable", fmt.Sprintf("Body is too long (maximum is %d characters)", maxCommentBody))
	}
	return nil
}

func (pr *PR) comment(who *account, body string) (*comment, error) {
	if err := pr.talks(who); err != nil {
		return nil, err
	}
	if err := checkCommentBody(body); err != nil {
		return nil, err
	}
	s := pr.repo.s
	c := &comment{id: s.id(), pr: pr, author: who, body: body, created: s.now(), updated: s.now()}
	pr.repo.comments = append(pr.repo.comments, c)
	pr.updated = c.created
	c.emit(who, "created", nil)
	return c, nil
}

func (c *comment) edit(who *account, body string) error {
	if who != c.author && !c.repo().role(who).atLeast(Write) {
		return forbidden("Must have admin rights to Repository.")
	}
	if err := checkCommentBody(body); err != nil {
		return err
	}
	from := c.body
	c.body, c.updated = body, c.repo().s.now()
	c.emit(who, "edited", &github.EditChange{Body: &github.EditBody{From: &from}})
	return nil
}

func (c *comment) emit(who *account, action string, changes *github.EditChange) {
	issue := c.pr.renderIssue
	if c.issue != nil {
		issue = c.issue.render
	}
	c.repo().emit(who, "issue_comment", action, nil, &github.IssueCommentEvent{Issue: issue(), Comment: c.render(), Changes: changes})
}

func (c *comment) repo() *Repo {
	if c.issue != nil {
		return c.issue.repo
	}
	return c.pr.repo
}

// place returns the number of the conversation, and its page's path.
func (c *comment) place() (number int, path string) {
	if c.issue != nil {
		return c.issue.number, "/issues"
	}
	return c.pr.number, "/pull"
}

func (c *comment) render() *github.IssueComment {
	r := c.repo()
	number, path := c.place()
	url := r.api("/issues/comments/%d", c.id)
	return &github.IssueComment{ID: &c.id, NodeID: ptr(nodeID("IssueComment", c.id)), Body: ptr(c.body), User: c.author.render(r.s.url),
		Reactions: renderReactions(c.reactions, url), CreatedAt: when(c.created), UpdatedAt: when(c.updated),
		AuthorAssociation: ptr(r.association(c.author)), URL: &url, HTMLURL: ptr(r.html(path+"/%d#issuecomment-%d", number, c.id)),
		IssueURL: ptr(r.api("/issues/%d", number))}
}

// comment and remark find a comment by its number: comment in the conversation, remark on a line of
// code.
func (rq *request) comment() (*comment, error) { return there(find(rq.repo.comments, rq.names)) }
func (rq *request) remark() (*comment, error)  { return there(find(rq.repo.remarks, rq.names)) }
func (rq *request) names(c *comment) bool      { return c.id == rq.pathInt("id") }

// A conversation is a pull request or an issue: GitHub numbers both together.
type conversation interface {
	comments() []*comment
	comment(who *account, body string) (*comment, error)
}

func (rq *request) conversation() (conversation, error) {
	if issue := rq.repo.issue(int(rq.pathInt("number"))); issue != nil {
		return issue, nil
	}
	return rq.pull()
}

func listComments(rq *request, of conversation) error {
	// GitHub ignores a date that it cannot parse
	since, _ := time.Parse(time.RFC3339, rq.query("since"))
	all := slices.DeleteFunc(of.comments(), func(c *comment) bool { return c.updated.Before(since) })
	return rq.ok(each(page(rq, all), (*comment).render))
}

func postComment(rq *request, to conversation) error {
	var in struct{ Body string }
	if err := rq.read(&in); err != nil {
		return err
	}
	c, err := to.comment(rq.actor.user, in.Body)
	if err != nil {
		return err
	}
	rq.header.Set("Location", rq.repo.api("/issues/comments/%d", c.id))
	return rq.reply(http.StatusCreated, c.render())
}

func patchComment(rq *request, c *comment) error {
	var in struct{ Body string }
	if err := rq.read(&in); err != nil {
		return err
	}
	if err := c.edit(rq.actor.user, in.Body); err != nil {
		return err
	}
	return rq.ok(c.render())
}

func deleteComment(rq *request, c *comment) error {
	if who := rq.actor.user; who != c.author && !rq.repo.role(who).atLeast(Write) {
		return forbidden("Must have admin rights to Repository.")
	}
	rq.repo.comments = slices.DeleteFunc(rq.repo.comments, func(other *comment) bool { return other == c })
	c.emit(rq.actor.user, "deleted", nil)
	return rq.reply(http.StatusNoContent, nil)
}

type reaction struct {
	id      int64
	user    *account
	content string
	created time.Time
}

// react adds a reaction. If the user already gave this reaction, react returns that one and isNew
// is false.
func (c *comment) react(who *account, content string) (r *reaction, isNew bool, err error) {
	if c.pr != nil && c.pr.locked { // a lock refuses reactions from everybody
		return nil, false, &apiError{Status: 403, Message: "Unable to create reaction because issue is locked.", Doc: lockDocs}
	}
	if emoji[content] == "" {
		return nil, false, invalid("Reaction", "content", "invalid", content+" is not a reaction")
	}
	for _, r := range c.reactions {
		if r.user == who && r.content == content {
			return r, false, nil
		}
	}
	s := c.repo().s
	r = &reaction{id: s.id(), user: who, content: content, created: s.now()}
	c.reactions = append(c.reactions, r)
	s.touch()
	return r, true, nil
}

func renderReactions(all []*reaction, url string) *github.Reactions {
	given := func(content string) *int {
		return ptr(count(all, func(r *reaction) bool { return r.content == content }))
	}
	return &github.Reactions{TotalCount: ptr(len(all)), PlusOne: given("+1"), MinusOne: given("-1"), Laugh: given("laugh"), Confused: given("confused"),
		Heart: given("heart"), Hooray: given("hooray"), Rocket: given("rocket"), Eyes: given("eyes"), URL: ptr(url + "/reactions")}
}

func postReaction(rq *request, c *comment) error {
	var in struct{ Content string }
	if err := rq.read(&in); err != nil {
		return err
	}
	r, isNew, err := c.react(rq.actor.user, in.Content)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if isNew {
		status = http.StatusCreated
	}
	out := github.Reaction{ID: &r.id, NodeID: ptr(nodeID("Reaction", r.id)), User: r.user.render(rq.s.url), Content: ptr(r.content)}
	return rq.reply(status, with(out, map[string]any{"created_at": when(r.created)}))
}
