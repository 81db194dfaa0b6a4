package worker

import "testing"

// A batch never takes more than half of the memory, and a launch is always possible.
func TestFittingBatch(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		batch, bytes int
		memory       uint64
		want         int
	}{
		{32, 1 << 20, 24 * gib, 32},
		{32, 2 * gib, 141 * gib, 8},
		{32, gib, 24 * gib, 3},
		{32, 16 * gib, 141 * gib, 1},
		{1, 16 * gib, 24 * gib, 1},
		{8, 64 * gib, 24 * gib, 1},
		{8, 0, 24 * gib, 8},
		{4, 1 << 20, 0, 1},
	} {
		if got := fittingBatch(c.batch, c.bytes, c.memory); got != c.want {
			t.Errorf("%d launches of %d MiB in %d GiB: %d, want %d", c.batch, c.bytes>>20, c.memory>>30, got, c.want)
		}
	}
	if checkedAtOnce(64<<20, 5) || !checkedAtOnce(16*gib, 1) {
		t.Error("small outputs are kept, and large ones are not")
	}
}

// A batch with a warm cache never takes more than half of the cache, and a launch is always possible.
func TestWarmBatch(t *testing.T) {
	const l2 = 50 << 20
	for _, c := range []struct{ batch, bytes, want int }{{32, 64 << 10, 32}, {32, 4 << 20, 6}, {32, 26 << 20, 1}, {1, 4 << 20, 1}, {8, 0, 8}} {
		if got := warmBatch(c.batch, c.bytes, l2); got != c.want {
			t.Errorf("%d launches of %d KiB: %d, want %d", c.batch, c.bytes>>10, got, c.want)
		}
	}
}
