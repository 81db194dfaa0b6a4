package strict_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// FuzzDecode checks that Decode either fills the value or reports what is wrong, in distinguishable
// lines and in order, and reports the same when it runs again.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"name: x\nbeds: [{plant: a, count: 1}]\ntools: {a: 1}\nfence: none\ncolour: red\nchild: {name: y}",
		"name: &n x\nowner: *n\nbeds: [&b {plant: *n}, *b]\nfence: {<<: *b}",
		"name: !t x\n? [a]\n: 1\nrows: 1\nrows: 2",
		"&t {child: *t}",
		"a: \"x\n", "---\n---\n", "\xff", "- a", "name:\n\t- x", "a: *b", "name: 'it''s'\nmotto: |\n  two\n  lines\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, into := range []func() any{
			func() any { return new(garden) }, func() any { return new(tree) }, func() any { return new(map[string][]string) },
		} {
			err := strict.Decode("f.yaml", data, into())
			if err == nil {
				continue
			}
			var ps strict.Problems
			if !errors.As(err, &ps) || len(ps) == 0 || len(ps) > 101 {
				t.Fatalf("%d problems, %T", len(ps), err)
			}
			if again := strict.Decode("f.yaml", data, into()); again == nil || again.Error() != err.Error() {
				t.Fatalf("first %v, then %v", err, again)
			}
			if last := ps[len(ps)-1]; last.Line == 0 {
				ps = ps[:len(ps)-1] // it is about the file, or says that there are more
			}
			if !slices.IsSortedFunc(ps, func(a, b strict.Problem) int { return a.Line - b.Line }) {
				t.Fatalf("out of order:\n%v", err)
			}
			for _, p := range ps {
				if strings.ContainsAny(p.Path, "\n\r") || p.Message == "" || p.Line < 0 || p.Line > len(data)+1 {
					t.Fatalf("unreadable: %+v", p)
				}
			}
		}
	})
}
