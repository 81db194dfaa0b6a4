package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fixture is a module whose tests notice some of its faults.
var fixture = map[string]string{
	"go.mod": "module example.com/m\n\ngo 1.26\n",
	"p/p.go": `package p

import (
	"errors"
	"fmt"
)

// Clamp is n, but at least low and at most high.
func Clamp(n, low, high int) (int, error) {
	if low > high {
		return 0, errors.New("low is above high")
	}
	switch {
	case n < low:
		return low, nil
	case n > high:
		n = high
	}
	return n, nil
}

// Text is not mutated.
func Text(n int) string { return fmt.Sprintf("%d of %d", n+1, 2) }

// Untested has no test of its own package.
func Untested(n int) bool { return n%2 == 0 }
`,
	"p/p_test.go": `package p

import "testing"

func TestClamp(t *testing.T) {
	for _, c := range [][4]int{{1, 2, 4, 2}, {3, 2, 4, 3}, {5, 2, 4, 4}, {3, 3, 3, 3}} {
		if got, err := Clamp(c[0], c[1], c[2]); err != nil || got != c[3] {
			t.Error(c, got)
		}
	}
}
`,
	"user/user_test.go": `package user

import (
	"testing"

	"example.com/m/p"
)

func TestUntested(t *testing.T) {
	if p.Untested(1) || !p.Untested(4) {
		t.Error("wrong")
	}
}
`,
}

func TestMutate(t *testing.T) {
	dir := t.TempDir()
	for name, text := range fixture {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, progress bytes.Buffer
	o := options{dir: dir, targets: []target{{pkg: "p", users: []string{"user"}}}, factor: 10}
	if err := mutate(t.Context(), o, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	// No test has low above high; at the limits both sides give the same number.
	want := `p/p.go:11: survived
  - return 0, errors.New("low is above high")
  + return 0, nil
p/p.go:14: survived
  - n < low
  + n <= low
p/p.go:16: survived
  - n > high
  + n >= high
p                      15 of   18 killed, 83.3 %
all                    15 of   18 killed, 83.3 %
`
	if out.String() != want {
		t.Errorf("got\n%s", &out)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "p", "*")); err != nil || len(left) != 2 {
		t.Errorf("the module has %v, %v", left, err)
	}
}

func TestChooseRefusesUnknownPackages(t *testing.T) {
	if _, err := choose(targets, []string{"gates", "gate"}); err == nil || !strings.Contains(err.Error(), "gate is not in") {
		t.Error(err)
	}
}
