package checkout

import (
	"bytes"
	"context"
	"strings"
)

// A commit is the part of a git commit that a walk needs.
type commit struct {
	tree    string
	parents []string
}

func (w *walk) commit(id string) (commit, error) {
	data, err := w.object(id, "commit")
	if err != nil {
		return commit{}, err
	}
	return parseCommit(data), nil
}

// parseCommit reads the header lines at the start of a commit. All other lines may be anything,
// because a stranger may have written them.
func parseCommit(data []byte) (c commit) {
	for line := range bytes.Lines(data) {
		word, object, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		switch {
		case !wholeHash.MatchString(object):
			return c
		case word == "tree" && c.tree == "":
			c.tree = object
		case word == "parent" && c.tree != "":
			c.parents = append(c.parents, object)
		default:
			return c
		}
	}
	return c
}

// commitNamed asks a running git process for a commit by its hash, or for the commit that a branch
// points to. It returns "" for any other name.
func (r *Repo) commitNamed(ctx context.Context, rev string) (id string, err error) {
	if r.readers == nil || !wholeHash.MatchString(rev) && (!strings.HasPrefix(rev, "refs/") || strings.ContainsAny(rev, "\n\x00^~:@")) {
		return "", nil
	}
	key := ""
	if wholeHash.MatchString(rev) {
		key = "resolve " + rev
		if known := r.memo.get(key); known != nil {
			return rev, nil
		}
	}
	rd, err := r.borrow(ctx, "--batch-check")
	if err != nil {
		return "", err
	}
	err = rd.giveBack(rd.each([]string{rev}, func(_ int, a answer) error {
		if a.kind == "commit" {
			id = a.id
			r.memo.keep(key, []byte(id))
		}
		return nil
	}))
	return id, err
}

// stands reports whether the head's commits lie in a straight line upon the base. It examines only
// a few of them, so false may also mean that there are more.
func (r *Repo) stands(ctx context.Context, head, base string) bool {
	const most = 20
	if r.readers == nil || !wholeHash.MatchString(base) || !wholeHash.MatchString(head) {
		return false
	}
	found := false
	err := r.walking(ctx, func(w *walk) error {
		for range most {
			if found = head == base; found {
				return nil
			}
			c, err := w.commit(head)
			if err != nil || len(c.parents) != 1 {
				return err
			}
			head = c.parents[0]
		}
		return nil
	})
	return found && err == nil
}
