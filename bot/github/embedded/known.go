package embedded

import (
	"strings"
	"sync"
)

// known is what git has said of commits by their ids, which is so for good: a process takes
// longer to start than to answer, and the same commits are looked at again and again.
type known struct {
	commits sync.Map // of gitCommit, by the whole id
	answers sync.Map // of string, by the words of the command
}

// commit is one that was seen, by its whole id.
func (k *known) commit(sha string) (gitCommit, bool) {
	c, ok := k.commits.Load(sha)
	if !ok {
		return gitCommit{}, false
	}
	return c.(gitCommit), true
}

// always runs git for what no later change of the repository can alter: all that it is asked of has whole ids. A
// failure may be of the moment.
func (g gitDir) always(args ...string) (string, error) {
	words := strings.Join(args, "\x00")
	if answer, ok := g.known.answers.Load(words); ok {
		return answer.(string), nil
	}
	answer, err := g.run(args...)
	if err == nil {
		g.known.answers.Store(words, answer)
	}
	return answer, err
}

// commit is one commit by its id.
func (g gitDir) commit(sha string) (gitCommit, bool) {
	if c, ok := g.known.commit(sha); ok {
		return c, true
	}
	c := g.log(1, sha)
	if len(c) == 0 {
		return gitCommit{}, false
	}
	return c[0], true
}

// ancestors are a commit by its id and all that it follows from.
func (g gitDir) ancestors(sha string) map[string]bool {
	seen := map[string]bool{}
	for left := []string{sha}; len(left) > 0; {
		sha, left = left[0], left[1:]
		if seen[sha] {
			continue
		}
		c, ok := g.known.commit(sha)
		if !ok { // and so are most that it follows from
			most := g.log(1000, sha)
			if len(most) == 0 {
				continue
			}
			c = most[0]
		}
		seen[sha] = true
		left = append(left, c.parents...)
	}
	return seen
}

func (g gitDir) isAncestor(a, b string) bool { return g.ancestors(b)[a] }

// count is how many commits one has that the other has not.
func (g gitDir) count(from, to string) (n int) {
	there := g.ancestors(from)
	if len(there) == 0 { // nobody knows
		return 0
	}
	for sha := range g.ancestors(to) {
		if !there[sha] {
			n++
		}
	}
	return n
}
