package embedded

import (
	"strings"
	"sync"
)

// known caches git's answers about commits by full id, which never change. Starting a git process
// takes longer than its answer, and the same commits are read again and again.
type known struct {
	commits sync.Map // gitCommit by full id
	answers sync.Map // string by the arguments of the command
}

// commit returns a cached commit by its full id.
func (k *known) commit(sha string) (gitCommit, bool) {
	c, ok := k.commits.Load(sha)
	if !ok {
		return gitCommit{}, false
	}
	return c.(gitCommit), true
}

// always runs git and caches the answer. The arguments must name objects by full id only, so that
// no later change of the repository can change the answer. Failures are not cached, because they
// may be temporary.
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

// commit returns one commit by its id.
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

// ancestors returns the ids of a commit and of all its ancestors.
func (g gitDir) ancestors(sha string) map[string]bool {
	seen := map[string]bool{}
	for left := []string{sha}; len(left) > 0; {
		sha, left = left[0], left[1:]
		if seen[sha] {
			continue
		}
		c, ok := g.known.commit(sha)
		if !ok { // log caches up to 1000 commits, which include most ancestors
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

// count returns how many commits are ancestors of to and not of from.
func (g gitDir) count(from, to string) (n int) {
	there := g.ancestors(from)
	if len(there) == 0 { // from is unknown
		return 0
	}
	for sha := range g.ancestors(to) {
		if !there[sha] {
			n++
		}
	}
	return n
}
