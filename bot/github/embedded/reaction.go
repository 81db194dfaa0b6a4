package embedded

import (
	"net/http"
	"slices"
	"time"

	"github.com/google/go-github/v60/github"
)

type reaction struct {
	id      int64
	user    *account
	content string
	created time.Time
}

// reactionEntry has the date that go-github's struct lacks.
type reactionEntry struct {
	github.Reaction
	CreatedAt *github.Timestamp `json:"created_at"`
}

// react adds a reaction, or finds the one that the user has given already, which
// is no new one.
func react(s *Server, to *[]*reaction, who *account, content string) (*reaction, bool, error) {
	if !slices.Contains([]string{"+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"}, content) {
		return nil, false, invalid("Reaction", "content", "invalid", content+" is not a reaction")
	}
	for _, r := range *to {
		if r.user == who && r.content == content {
			return r, false, nil
		}
	}
	r := &reaction{id: s.id(), user: who, content: content, created: s.now()}
	*to = append(*to, r)
	s.touch()
	return r, true, nil
}

func renderReactions(all []*reaction, url string) *github.Reactions {
	count := func(content string) *int {
		n := 0
		for _, r := range all {
			if r.content == content {
				n++
			}
		}
		return &n
	}
	return &github.Reactions{TotalCount: ptr(len(all)), PlusOne: count("+1"), MinusOne: count("-1"), Laugh: count("laugh"), Confused: count("confused"),
		Heart: count("heart"), Hooray: count("hooray"), Rocket: count("rocket"), Eyes: count("eyes"), URL: ptr(url + "/reactions")}
}

func (rq *request) renderReaction(r *reaction) reactionEntry {
	return reactionEntry{Reaction: github.Reaction{ID: &r.id, NodeID: ptr(nodeID("Reaction", r.id)), User: r.user.render(rq.s.url), Content: ptr(r.content)},
		CreatedAt: when(r.created)}
}

// reactionsOf finds what the path names: a comment, or the pull request itself.
func (rq *request) reactionsOf() (*[]*reaction, error) {
	var pr *PR
	var all *[]*reaction
	if rq.PathValue("id") != "" {
		c, err := rq.comment()
		if err != nil {
			return nil, err
		}
		pr, all = c.pr, &c.reactions
	} else {
		p, err := rq.pull()
		if err != nil {
			return nil, err
		}
		pr, all = p, &p.reactions
	}
	if rq.Method != http.MethodGet {
		return all, pr.reacts()
	}
	return all, nil
}

func listReactions(rq *request) error {
	all, err := rq.reactionsOf()
	if err != nil {
		return err
	}
	out := []reactionEntry{}
	for _, r := range *all {
		if want := rq.query("content"); want == "" || want == r.content {
			out = append(out, rq.renderReaction(r))
		}
	}
	return rq.ok(page(rq, out))
}

func postReaction(rq *request) error {
	all, err := rq.reactionsOf()
	if err != nil {
		return err
	}
	var in struct{ Content string }
	if err := rq.read(&in); err != nil {
		return err
	}
	r, isNew, err := react(rq.s, all, rq.actor.user, in.Content)
	if err != nil {
		return err
	}
	if isNew {
		return rq.reply(http.StatusCreated, rq.renderReaction(r))
	}
	return rq.ok(rq.renderReaction(r))
}

func deleteReaction(rq *request) error {
	all, err := rq.reactionsOf()
	if err != nil {
		return err
	}
	before := len(*all)
	*all = slices.DeleteFunc(*all, func(r *reaction) bool { return r.id == rq.pathInt("reaction") && r.user == rq.actor.user })
	if len(*all) == before {
		return errNotFound()
	}
	rq.s.touch()
	return rq.noContent()
}
