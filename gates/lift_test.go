package gates

import "testing"

// What would let one more block share a multiprocessor really does, and one more of it does not.
func TestMoreBlocks(t *testing.T) {
	for _, c := range []struct {
		arch                       string
		threads, registers, shared int
		limit                      string
		blocks, most               int
	}{
		{"sm_90", 256, 96, 206 << 10, "shared memory", 1, 115712},
		{"sm_90a", 256, 96, 0, "registers", 2, 80},
		{"sm_90", 1024, 64, 0, "registers", 1, 32},
	} {
		blocks, limit, most, ok := moreBlocks(c.arch, c.threads, c.registers, c.shared)
		if !ok || blocks != c.blocks || limit != c.limit || most != c.most {
			t.Errorf("%+v: %d blocks by %s, at most %d, %v", c, blocks, limit, most, ok)
		}
	}
	for _, c := range []struct {
		arch                       string
		threads, registers, shared int
	}{{"sm_90", 1024, 32, 0}, {"sm_90", 32, 16, 0}, {"sm_1", 256, 96, 0}} {
		if _, limit, most, ok := moreBlocks(c.arch, c.threads, c.registers, c.shared); ok {
			t.Errorf("%+v: at most %d of %s", c, most, limit)
		}
	}
}
