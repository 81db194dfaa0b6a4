package checkout

import (
	"strings"
	"testing"
)

// Tags returns the tags of all commits that a commit contains, annotated or not. It returns no tags of files
// or of other branches.
func TestTags(t *testing.T) {
	f := newForge(t)
	tree := f.tree()
	first := f.commit(tree)
	second := f.git([]byte("y"), "commit-tree", "-p", first, tree)
	elsewhere := f.git([]byte("z"), "commit-tree", "-p", first, tree)
	f.git(nil, "tag", "light", first)
	f.git(nil, "tag", "-am", "words", "noted", second)
	f.git(nil, "tag", "later", elsewhere)
	f.git(nil, "tag", "-am", "a folder", "folder", tree)
	f.git(nil, "tag", "group/v1", first)
	r := OpenBare(f.dir)
	for rev, want := range map[string]string{first: "group/v1 light", second: "group/v1 light noted!", elsewhere: "group/v1 later light"} {
		all, err := r.Tags(t.Context(), rev)
		var names []string
		for _, tag := range all {
			name := tag.Name
			if tag.Annotated {
				name += "!"
			}
			names = append(names, name)
			if tag.At.IsZero() || tag.Commit != map[string]string{"light": first, "noted": second, "later": elsewhere, "group/v1": first}[tag.Name] {
				t.Errorf("%+v", tag)
			}
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("%s has %q (%v), want %q", rev, got, err, want)
		}
	}
	if _, err := r.Tags(t.Context(), strings.Repeat("0", 40)); err == nil {
		t.Error("an unknown commit has tags")
	}
}
