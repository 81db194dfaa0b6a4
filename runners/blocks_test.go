package runners

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestBlocksMirrorThemselves(t *testing.T) {
	seen := map[string]bool{}
	for _, block := range Blocks(rand.New(rand.NewPCG(1, 1)), 60) {
		back := []byte(block)
		slices.Reverse(back)
		if len(block) != 6 || string(back) != block || strings.Count(block, "b") != 2 || strings.Count(block, "c") != 2 {
			t.Fatalf("block %q", block)
		}
		seen[block] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d orders of the three sides, want all 6", len(seen))
	}
}
