package inspect

import (
	"io"
	"strings"
	"testing"
)

func TestCappedKeepsTheStart(t *testing.T) {
	c := capped{Limit: 5}
	n, err := io.Copy(&c, strings.NewReader("abcdefgh"))
	if n != 8 || err != nil || c.String() != "abcde" || !c.Overflow {
		t.Errorf("copied %d, %v; kept %q, overflow %v", n, err, c.String(), c.Overflow)
	}
}
