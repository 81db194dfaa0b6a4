package ident_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/ident"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		what string
		is   func(string) bool
		yes  []string
		no   []string
	}{
		{"name", ident.IsName, []string{"a", "sdpa_fp8", "v1.2-x", strings.Repeat("a", 63)}, []string{"", "_a", ".a", "a b", "a/b", "a\n", strings.Repeat("a", 64)}},
		{"label", ident.IsLabel, []string{"l4", "rtx-4090", "a_b"}, []string{"", "-a", "a.b", "a,b", strings.Repeat("a", 64)}},
		{"commit", ident.IsCommit, []string{strings.Repeat("0a", 20), strings.Repeat("f", 64)}, []string{"", "HEAD", strings.Repeat("a", 39), strings.Repeat("a", 41), strings.Repeat("A", 40), strings.Repeat("a", 40) + "\n"}},
		{"repository", ident.IsRepository, []string{"a/b", "o-1_x/.github", "o/a..b", "o/" + strings.Repeat("a", 100)},
			[]string{"", "a", "/b", "a/", "a/b/c", "../b", ".a/b", "a/.", "a/..", "-a/b", "a b/c", "a/b\n", "o/" + strings.Repeat("a", 101)}},
	} {
		for _, text := range c.yes {
			if !c.is(text) {
				t.Errorf("%q is no %s", text, c.what)
			}
		}
		for _, text := range c.no {
			if c.is(text) {
				t.Errorf("%q is a %s", text, c.what)
			}
		}
	}
}
