package strict_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// A probe passes its node to the test.
type probe struct{ see func(*strict.Node) }

func (p *probe) UnmarshalStrict(n *strict.Node) { p.see(n) }

// visit reads text and lets the test examine its root.
func visit(t *testing.T, text string, see func(*strict.Node)) []string {
	t.Helper()
	called := false
	got := mistakes(strict.Decode("f.yaml", []byte(text), &probe{func(n *strict.Node) { called = true; see(n) }}))
	if !called {
		t.Fatalf("not read: %q", got)
	}
	return got
}

func TestChild(t *testing.T) {
	text := "a:\n  b: 1\n  b: 2\n  c: [x, {d: 3}]\ne: text\n"
	tests := []struct {
		name string
		keys []string
		want string
	}{
		{"of the root", []string{"a"}, "f.yaml:2:3: a: here"},
		{"the first of two, as it is decoded", []string{"a", "b"}, "f.yaml:2:6: a.b: here"},
		{"absent: at its parent", []string{"a", "z"}, "f.yaml:2:3: a.z: here"},
		{"absent, and what would be below it", []string{"y", "z"}, "f.yaml:1:1: y.z: here"},
		{"of a text", []string{"e", "z"}, "f.yaml:5:4: e.z: here"},
		{"no key at all", nil, "f.yaml:1:1: here"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := visit(t, text, func(n *strict.Node) { n.Child(tt.keys...).Errorf("here") })
			if diff := cmp.Diff([]string{tt.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	visit(t, text, func(n *strict.Node) {
		a := n.Child("a")
		if text, ok := a.Child("b").Text(); text != "1" || !ok {
			t.Errorf("a.b is %q, %v", text, ok)
		}
		if !a.Has("c") || a.Has("z") || n.Child("e").Has("c") {
			t.Error("Has is wrong")
		}
		absent := n.Child("y")
		if _, ok := absent.Text(); ok || absent.Null() || absent.List() || absent.Mapping() || absent.Items() != nil || absent.Pairs() != nil {
			t.Error("an absent node has content")
		}
		if got := a.Child("c").Items()[1].Child("d").Path(); got != "a.c[1].d" {
			t.Errorf("path %q", got)
		}
	})
	got := visit(t, text, func(n *strict.Node) {
		var s string
		if n.Child("y").Decode(&s) || n.Child("a", "c").Decode(&s) || !n.Child("e").Decode(&s) {
			t.Error("Decode does not tell what was clean")
		}
	})
	if diff := cmp.Diff([]string{"f.yaml:1:1: y: is missing (write a text)", "f.yaml:4:6: a.c: is a list (write a text)"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestOver(t *testing.T) {
	text := `under:
  a: {x: 1, y: 2}
  b: {x: 3}
  c: [1, 2, 3]
over:
  a: {x: 10}
  b: none
  c: [9]
  d: 4
`
	tests := []struct {
		name string
		keys []string
		want string
	}{
		{"set above", []string{"a", "x"}, "f.yaml:6:10: over.a.x: here"},
		{"set below alone", []string{"a", "y"}, "f.yaml:2:16: under.a.y: here"},
		{"set nowhere: at the upper parent", []string{"a", "z"}, "f.yaml:6:6: over.a.z: here"},
		{"set nowhere, and its parent neither", []string{"e", "z"}, "f.yaml:6:3: over.e.z: here"},
		{"taken away above", []string{"b"}, "f.yaml:7:6: over.b: here"},
		{"set above alone", []string{"d"}, "f.yaml:9:6: over.d: here"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := visit(t, text, func(n *strict.Node) {
				n.Child("over").Over(n.Child("under")).Child(tt.keys...).Errorf("here")
			})
			if diff := cmp.Diff([]string{tt.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	visit(t, text, func(n *strict.Node) {
		laid := n.Child("over").Over(n.Child("under"))
		if !laid.Has("a") || !laid.Has("d") || laid.Has("e") || !laid.Child("a").Has("y") {
			t.Error("Has is wrong")
		}
		if got := len(laid.Child("c").Items()); got != 1 {
			t.Errorf("a list is laid over another: %d items", got)
		}
		// A rule without its own gates has the place of the rule.
		bare := n.Child("nothing").Over(n.Child("under"))
		if got := bare.Child("a", "y").Path(); got != "under.a.y" {
			t.Errorf("path %q", got)
		}
	})
}

// A strictBox reports the state of its content.
type strictBox struct {
	Size  int    `yaml:"size"`
	Inner *inner `yaml:"inner"`
}

type inner struct {
	Weight int `yaml:"weight"`
}

func (b *strictBox) ValidateStrict(n *strict.Node) {
	n.Errorf("box: clean %v, size %d", n.Clean(), b.Size)
}

func (i *inner) ValidateStrict(n *strict.Node) { n.Errorf("inner: clean %v", n.Clean()) }

func TestValidators(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		// A validator's report makes all nodes above unclean.
		{"clean", "{size: 3}", []string{"f.yaml:1:1: box: clean true, size 3"}},
		{"a field was refused", "{size: x}", []string{"f.yaml:1:1: box: clean false, size 0", `f.yaml:1:8: size: "x" is not a whole number (write e.g. 128)`}},
		{"a field is unknown", "{sice: 3}", []string{"f.yaml:1:1: box: clean false, size 0", `f.yaml:1:2: sice: unknown field (did you mean size?)`}},
		{"a validator below complained", "{inner: {weight: 1}}", []string{"f.yaml:1:1: box: clean false, size 0", "f.yaml:1:9: inner: inner: clean true"}},
		{"below is not clean either", "{inner: {weight: x}}", []string{"f.yaml:1:1: box: clean false, size 0", "f.yaml:1:9: inner: inner: clean false", `f.yaml:1:18: inner.weight: "x" is not a whole number (write e.g. 128)`}},
		{"what is taken away is not asked", "{inner: none}", []string{"f.yaml:1:1: box: clean true, size 0"}},
		{"nothing fits", "[]", []string{"f.yaml:1:1: box: clean false, size 0", "f.yaml:1:1: is a list (write a mapping with size, inner)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, mistakes(strict.Decode("f.yaml", []byte(tt.text), new(strictBox)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMistakesAreToldOnce(t *testing.T) {
	got := visit(t, "a: x", func(n *strict.Node) {
		var i int
		for range 2 {
			if n.Child("a").Decode(&i) {
				t.Error("the mistake is no mistake")
			}
		}
	})
	if diff := cmp.Diff([]string{`f.yaml:1:4: a: "x" is not a whole number (write e.g. 128)`}, got); diff != "" {
		t.Error(diff)
	}
}

func TestPairs(t *testing.T) {
	got := visit(t, "{b: 1, a: 2, b: 3}", func(n *strict.Node) {
		var keys string
		for _, p := range n.Pairs() {
			text, _ := p.Value.Text()
			keys += p.Key + text
		}
		if keys != "b1a2b3" {
			t.Errorf("pairs %s", keys)
		}
		n.Pairs()[1].Errorf("the key")
		n.Pairs()[1].Value.Errorf("the value")
	})
	if diff := cmp.Diff([]string{"f.yaml:1:8: a: the key", "f.yaml:1:11: a: the value"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestEach(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []int
		want   string
	}{
		{"as many", []int{1, 2, 3}, "a[0]=1 a[1]=2 a[2]=3 "},
		{"fewer values", []int{1}, "a[0]=1 "},
		{"none", nil, ""},
		{"more values", []int{1, 2, 3, 4}, "a[0]=1 a[1]=2 a[2]=3 "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			visit(t, "a: [x, y, z]", func(n *strict.Node) {
				got := ""
				strict.Each(n.Child("a"), tt.values, func(at *strict.Node, v *int) { got += fmt.Sprintf("%s=%d ", at.Path(), *v) })
				if got != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			})
		})
	}
}

func TestProblemString(t *testing.T) {
	for _, tt := range []struct {
		p    strict.Problem
		want string
	}{
		{strict.Problem{File: "a.yaml", Message: "is bad"}, "a.yaml: is bad"},
		{strict.Problem{File: "a.yaml", Line: 3, Message: "is bad"}, "a.yaml:3:1: is bad"},
		{strict.Problem{File: "a.yaml", Line: 3, Column: 7, Path: "x.y", Message: "is bad"}, "a.yaml:3:7: x.y: is bad"},
	} {
		if got := tt.p.String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
