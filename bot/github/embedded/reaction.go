package embedded

import (
	"net/http"
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
func (c *comment) react(who *account, content string) (r *reaction, isNew bool, err error) {
	if err := c.pr.reacts(); err != nil {
		return nil, false, err
	}
	if emoji[content] == "" {
		return nil, false, invalid("Reaction", "content", "invalid", content+" is not a reaction")
	}
	for _, r := range c.reactions {
		if r.user == who && r.content == content {
			return r, false, nil
		}
	}
	s := c.pr.repo.s
	r = &reaction{id: s.id(), user: who, content: content, created: s.now()}
	c.reactions = append(c.reactions, r)
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

func postReaction(rq *request, c *comment) error {
	var in struct{ Content string }
	if err := rq.read(&in); err != nil {
		return err
	}
	r, isNew, err := c.react(rq.actor.user, in.Content)
	if err != nil {
		return err
	}
	if isNew {
		return rq.reply(http.StatusCreated, rq.renderReaction(r))
	}
	return rq.ok(rq.renderReaction(r))
}
