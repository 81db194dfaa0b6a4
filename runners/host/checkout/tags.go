package checkout

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Tag names a commit.
type Tag struct {
	Name      string
	Commit    string
	Annotated bool      // it has an author and a message
	At        time.Time // when the tag was made or, if it is not annotated, the commit
}

// Tags returns the tags of the commits that a revision contains, by name. Tags of other objects are
// left out.
func (r *Repo) Tags(ctx context.Context, rev string) ([]Tag, error) {
	head, err := r.Resolve(ctx, rev)
	if err != nil {
		return nil, err
	}
	out, err := r.git(ctx, "for-each-ref", "--merged="+head, "--format=%(objecttype) %(objectname) %(*objecttype) %(*objectname) %(creatordate:unix) %(refname:strip=2)", "refs/tags")
	if err != nil {
		return nil, fmt.Errorf("listing the tags of %.12s: %w", head, err)
	}
	var all []Tag
	for line := range strings.Lines(out) {
		part := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 6)
		if len(part) != 6 {
			continue
		}
		t := Tag{Name: part[5], Commit: part[1]}
		switch {
		case part[0] == "tag" && part[2] == "commit":
			t.Commit, t.Annotated = part[3], true
		case part[0] != "commit":
			continue
		}
		seconds, err := strconv.ParseInt(part[4], 10, 64)
		if err != nil {
			continue // a damaged date
		}
		t.At = time.Unix(seconds, 0).UTC()
		all = append(all, t)
	}
	return all, nil
}
