package checkout

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMemo checks that git is asked once about names that are whole hashes, and each time about a
// branch, because it moves.
func TestMemo(t *testing.T) {
	t.Run("a mirror", func(t *testing.T) {
		dir := repository(t).Dir()
		remembers(t, OpenBare(filepath.Join(dir, ".git")), dir)
	})
	t.Run("a work tree", func(t *testing.T) {
		r := repository(t)
		remembers(t, r, r.Dir())
	})
}

func remembers(t *testing.T, r *Repo, dir string) {
	t.Helper()
	ctx := t.Context()
	main, err := r.Resolve(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	topic, err := r.Resolve(ctx, "topic")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(main, topic string) string {
		base, err := r.MergeBase(ctx, main, topic)
		if err != nil {
			return err.Error()
		}
		changed, err := r.Changed(ctx, base, topic)
		if err != nil {
			return err.Error()
		}
		text, err := r.Read(ctx, topic, "k/one/one.c")
		return fmt.Sprintf("%s %v %s %v", base, changed, text, err)
	}
	want := ask(main, topic)
	if got := ask("main", "topic"); got != want || !strings.HasSuffix(got, "new <nil>") {
		t.Fatalf("by branch %s, by hash %s", got, want)
	}
	move := exec.CommandContext(ctx, "git", "-C", dir, "update-ref", "refs/heads/topic", main)
	if out, err := move.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text, err := r.Read(ctx, "topic", "k/one/one.c"); err != nil || string(text) != "old" {
		t.Errorf("after the branch moved: %s, %v", text, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, ".git", "objects")); err != nil {
		t.Fatal(err)
	}
	if got := ask(main, topic); got != want {
		t.Errorf("git was asked again: %s", got)
	}
	if _, err := r.Resolve(ctx, strings.Repeat("0", 40)); err == nil {
		t.Error("a commit that is not there was found")
	}
}

// TestTagByItsHash checks that a user may name a commit by the hash of a tag.
func TestTagByItsHash(t *testing.T) {
	r := repository(t)
	tag := exec.CommandContext(t.Context(), "git", "-C", r.Dir(), "-c", "user.name=t", "-c", "user.email=t@t.invalid", "tag", "-a", "-m", "x", "v1", "topic")
	if out, err := tag.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	hash, err := r.git(t.Context(), "rev-parse", "v1")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if text, err := r.Read(t.Context(), strings.TrimSpace(hash), "k/one/one.c"); err != nil || string(text) != "new" {
			t.Errorf("%q, %v", text, err)
		}
	}
}

// TestMemoIsBounded checks that a memo does not grow, and that its contents cannot be changed.
func TestMemoIsBounded(t *testing.T) {
	m := newMemo()
	for i := range 10 * maxAnswers {
		m.keep(fmt.Sprint(i), make([]byte, maxAnswer))
	}
	m.keep("long", make([]byte, maxAnswer+1))
	if n := m.answers.Len(); n > maxAnswers || m.get("long") != nil {
		t.Errorf("%d answers are kept", n)
	}
	text := []byte("as it was")
	m.keep("text", text)
	text[0] = 'X'
	if string(m.get("text")) != "as it was" {
		t.Error("an answer was changed")
	}
}
