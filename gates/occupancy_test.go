package gates

import "testing"

func TestBlocksPerSM(t *testing.T) {
	for _, c := range []struct {
		name                       string
		arch                       string
		threads, registers, shared int
		blocks                     int
		limit                      string
	}{
		{"L4, stage 2", "sm_89", 128, 84, 37120, 2, "shared memory"},
		{"L4, nothing but threads", "sm_89", 1024, 32, 0, 1, "warps"},
		{"L4, small blocks", "sm_89", 32, 16, 0, 24, "blocks"},
		{"L4, registers", "sm_89", 256, 128, 0, 2, "registers"},
		{"A100, registers round up to 8", "sm_80", 256, 65, 0, 3, "registers"},
		{"Turing, 32 warps", "sm_75", 256, 32, 0, 4, "warps"},
		{"H200, full block of shared memory", "sm_90", 128, 64, 227 << 10, 1, "shared memory"},
		{"H200, the a suffix changes nothing", "sm_90a", 128, 168, 0, 3, "registers"},
		{"H200, a warp cannot borrow from another partition", "sm_90", 32, 255, 0, 8, "registers"},
		{"RTX 50", "sm_120", 128, 40, 0, 12, "warps"},
	} {
		t.Run(c.name, func(t *testing.T) {
			blocks, limit, ok := BlocksPerSM(c.arch, c.threads, c.registers, c.shared)
			if !ok || blocks != c.blocks || limit != c.limit {
				t.Errorf("got %d by %s (%v), want %d by %s", blocks, limit, ok, c.blocks, c.limit)
			}
		})
	}
	if _, _, ok := BlocksPerSM("sm_52", 128, 32, 0); ok {
		t.Error("an architecture outside the table has an occupancy")
	}
}
