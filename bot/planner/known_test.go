package planner

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
)

const easy = "version: 1\ndevices: [cpu]\ngates: {}\nrules: [{name: default}]\n"

// A text is read once and its mistakes are told each time, by the name of the file. What is
// kept is bounded.
func TestTextsAreReadOnce(t *testing.T) {
	var k known
	first, err := k.policy("a.yaml", []byte(easy))
	if err != nil {
		t.Fatal(err)
	}
	want, err := policy.Parse("a.yaml", []byte(easy))
	if err != nil || !reflect.DeepEqual(first, want) {
		t.Errorf("it was read as %+v, want %+v, %v", first, want, err)
	}
	if again, err := k.policy("b.yaml", []byte(easy)); err != nil || again != first {
		t.Errorf("it was read again: %v", err)
	}
	if other, err := k.policy("a.yaml", []byte(easy+"check: other\n")); err != nil || other == first || other.Check != "other" {
		t.Errorf("another text: %+v, %v", other, err)
	}
	for _, file := range []string{"a.yaml", "b.yaml"} {
		if _, err := k.policy(file, []byte("version: 9\n")); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("the mistakes of %s: %v", file, err)
		}
	}
	for i := range 2 * maxKnown {
		if _, err := k.policy("a.yaml", fmt.Appendf(nil, "%s# %d\n", easy, i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := k.policies.Len(); n > maxKnown {
		t.Errorf("%d are kept", n)
	}
	long := []byte(easy + "# " + strings.Repeat("x", maxKnownText) + "\n")
	one, err := k.policy("a.yaml", long)
	if err != nil {
		t.Fatal(err)
	}
	if two, err := k.policy("a.yaml", long); err != nil || one == two {
		t.Errorf("a long text is kept: %v", err)
	}
}
