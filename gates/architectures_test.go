package gates

import "testing"

// What an SM holds is that of the CUDA programming guide, at every limit: the last block that fits, and one that does not.
func TestOccupancyOfEveryArchitecture(t *testing.T) {
	const kib = 1024
	type limits struct{ warps, blocks, shared, unit, reserved int }
	guide := map[string]limits{
		"sm_75":  {32, 16, 64 * kib, 256, 0},
		"sm_80":  {64, 32, 164 * kib, 128, kib},
		"sm_86":  {48, 16, 100 * kib, 128, kib},
		"sm_87":  {48, 16, 164 * kib, 128, kib},
		"sm_89":  {48, 24, 100 * kib, 128, kib},
		"sm_90":  {64, 32, 228 * kib, 128, kib},
		"sm_100": {64, 32, 228 * kib, 128, kib},
		"sm_103": {64, 32, 228 * kib, 128, kib},
		"sm_110": {48, 24, 228 * kib, 128, kib},
		"sm_120": {48, 24, 100 * kib, 128, kib},
		"sm_121": {48, 24, 100 * kib, 128, kib},
	}
	if len(guide) != len(smTable) {
		t.Errorf("%d architectures are known, and %d here", len(smTable), len(guide))
	}
	for arch, l := range guide {
		want := func(what string, threads, registers, shared, blocks int, limit string) {
			t.Helper()
			for _, suffix := range []string{"", "a", "f"} {
				got, by, ok := BlocksPerSM(arch+suffix, threads, registers, shared)
				if !ok || got != blocks || by != limit {
					t.Errorf("%s%s, %s: %d blocks by %s (%v), want %d by %s", arch, suffix, what, got, by, ok, blocks, limit)
				}
			}
		}
		want("small blocks", 32, 0, 0, l.blocks, "blocks")
		want("one thread", 1, 0, 0, l.blocks, "blocks")
		for _, warps := range []int{7, 11, 13, 16, 24} {
			want("warps", 32*warps, 0, 0, l.warps/warps, "warps")
			want("one thread fewer", 32*warps-1, 0, 0, l.warps/warps, "warps")
		}
		want("all of the shared memory", 32, 0, l.shared-l.reserved, 1, "shared memory")
		want("more than all of it", 32, 0, l.shared-l.reserved+1, 0, "shared memory")
		half := l.shared / 2 / l.unit * l.unit
		want("half of the shared memory", 32, 0, half-l.reserved, 2, "shared memory")
		want("a byte more than half", 32, 0, half-l.reserved+1, 1, "shared memory")
		// 65,536 registers in four partitions: 16,384 for the warps of each, of which 129 registers a thread take 136*32.
		want("registers", 256, 129, 0, 16384/(136*32)*4/8, "registers")
		want("all registers", 1024, 65, 0, 0, "registers")
	}
	for arch, threads := range map[string]int{"sm_70": 32, "": 32, "sm_90": 0} {
		if blocks, limit, ok := BlocksPerSM(arch, threads, 32, 0); ok || blocks != 0 || limit != "" {
			t.Errorf("%q with %d threads: %d by %s", arch, threads, blocks, limit)
		}
	}
}
