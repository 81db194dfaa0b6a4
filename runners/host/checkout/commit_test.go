package checkout

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func FuzzCommit(f *testing.F) {
	one, two := strings.Repeat("1", 40), strings.Repeat("2", 64)
	for _, text := range []string{
		"", "tree", "tree " + one, "tree " + one + "\nparent " + two + "\nparent " + one + "\nauthor x\n\nparent " + one,
		"parent " + one + "\ntree " + one, "tree refs/heads/main\n", "tree " + one + "\nparent :/x\n", "tree " + one + "\ntree " + two,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := parseCommit(data)
		if c.tree != "" && !wholeHash.MatchString(c.tree) || c.tree == "" && len(c.parents) > 0 {
			t.Errorf("%q has the tree %q and the parents %q", data, c.tree, c.parents)
		}
		begin := "tree " + c.tree + "\n"
		for _, p := range c.parents {
			if begin += "parent " + p + "\n"; !wholeHash.MatchString(p) {
				t.Errorf("%q has the parent %q", data, p)
			}
		}
		if c.tree != "" && !strings.HasPrefix(string(data)+"\n", begin) {
			t.Errorf("%q does not begin with %q", data, begin)
		}
	})
}

// TestCommitOfAStranger checks that a commit that names git expressions instead of object ids leads
// nowhere.
func TestCommitOfAStranger(t *testing.T) {
	m := mirrorOf(t)
	main := m.git(m.from, "rev-parse", "main")
	write := func(text string) string {
		t.Helper()
		cmd := exec.Command("git", "-C", m.Dir(), "hash-object", "-t", "commit", "-w", "--literally", "--stdin")
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	tree := m.git(m.from, "rev-parse", "main^{tree}")
	for _, text := range []string{"", "tree main^{tree}\n", "tree refs/heads/main\n\nx", "tree " + main[:12] + "\n", "author x\ntree " + tree + "\n"} {
		if _, err := m.Again().Kernels(t.Context(), write(text)); !errors.As(err, new(Refused)) {
			t.Errorf("%q: %v", text, err)
		}
	}
	odd := write("tree " + tree + "\nparent refs/heads/main\n\nx")
	if base, err := m.Again().MergeBase(t.Context(), main, odd); err == nil {
		t.Errorf("it stands upon %s", base)
	}
	if got, err := m.Again().Kernels(t.Context(), main); err != nil || !slices.Contains(got, "k/one") {
		t.Errorf("afterwards: %v, %v", got, err)
	}
}
