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

// Every row of the table, at the limits of the CUDA programming guide: full blocks of shared memory, one byte more, and blocks of one warp.
func TestOccupancyTable(t *testing.T) {
	for arch, sm := range map[string]struct{ warps, blocks, kib int }{
		"sm_75": {32, 16, 64}, "sm_80": {64, 32, 164}, "sm_86": {48, 16, 100}, "sm_87": {48, 16, 164}, "sm_89": {48, 24, 100}, "sm_90": {64, 32, 228},
		"sm_100": {64, 32, 228}, "sm_103": {64, 32, 228}, "sm_110": {48, 24, 228}, "sm_120": {48, 24, 100}, "sm_121": {48, 24, 100},
	} {
		reserved, unit := 1<<10, 128
		if arch == "sm_75" {
			reserved, unit = 0, 256
		}
		half := sm.kib<<10/2 - reserved
		for _, c := range []struct {
			name            string
			threads, shared int
			blocks          int
			limit           string
		}{
			{"one warp a block", 32, 0, sm.blocks, "blocks"},
			{"one thread a block", 1, 0, sm.blocks, "blocks"},
			{"all warps in one block", 32 * sm.warps, 0, 1, "warps"},
			{"all warps in two blocks", 16 * sm.warps, 0, 2, "warps"},
			{"half of the shared memory", 32, half, 2, "shared memory"},
			{"a byte more than half", 32, half + 1, 1, "shared memory"},
			{"all of it", 32, sm.kib<<10 - reserved, 1, "shared memory"},
			{"a unit less than half", 32, half - unit + 1, 2, "shared memory"},
		} {
			if blocks, limit, ok := BlocksPerSM(arch, c.threads, 0, c.shared); !ok || blocks != c.blocks || limit != c.limit {
				t.Errorf("%s, %s: %d by %s (%v), want %d by %s", arch, c.name, blocks, limit, ok, c.blocks, c.limit)
			}
		}
		for _, threads := range []int{0, -1} {
			if _, _, ok := BlocksPerSM(arch, threads, 32, 0); ok {
				t.Errorf("%s: %d threads have an occupancy", arch, threads)
			}
		}
	}
}
