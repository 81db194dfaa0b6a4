package gates

import "strings"

// An smLimits is the resources of one streaming multiprocessor of an architecture.
type smLimits struct {
	warps, blocks  int
	shared         int // bytes per SM
	sharedUnit     int // allocation granularity
	sharedReserved int // taken by the system per block
}

// Registers are alike on all of these: 65,536 per SM, handed out to warps in
// units of 256, in each of four partitions.
const (
	smRegisters  = 65536
	registerUnit = 256
	partitions   = 4
)

// From the occupancy tables of the CUDA programming guide (compute
// capabilities); arch-specific suffixes (sm_90a) change nothing here.
var smTable = map[string]smLimits{
	"sm_75":  {32, 16, 64 << 10, 256, 0},
	"sm_80":  {64, 32, 164 << 10, 128, 1 << 10},
	"sm_86":  {48, 16, 100 << 10, 128, 1 << 10},
	"sm_87":  {48, 16, 164 << 10, 128, 1 << 10},
	"sm_89":  {48, 24, 100 << 10, 128, 1 << 10},
	"sm_90":  {64, 32, 228 << 10, 128, 1 << 10},
	"sm_100": {64, 32, 228 << 10, 128, 1 << 10},
	"sm_103": {64, 32, 228 << 10, 128, 1 << 10},
	"sm_110": {48, 24, 228 << 10, 128, 1 << 10},
	"sm_120": {48, 24, 100 << 10, 128, 1 << 10},
	"sm_121": {48, 24, 100 << 10, 128, 1 << 10},
}

// BlocksPerSM is how many blocks of a kernel one SM holds at a time, and what
// limits it. ok is false for an architecture that the table does not have.
func BlocksPerSM(arch string, threads, registers, shared int) (blocks int, limit string, ok bool) {
	sm, ok := limitsOf(arch)
	if !ok || threads <= 0 {
		return 0, "", false
	}
	warps := (threads + 31) / 32
	blocks, limit = sm.blocks, "blocks"
	lower := func(n int, what string) {
		if n < blocks {
			blocks, limit = n, what
		}
	}
	lower(sm.warps/warps, "warps")
	if registers > 0 {
		perWarp := roundUp(roundUp(registers, 8)*32, registerUnit)
		// A warp lives in one partition and cannot borrow another's registers.
		perPartition := smRegisters / partitions / perWarp
		lower(perPartition*partitions/warps, "registers")
	}
	perBlock := roundUp(shared+sm.sharedReserved, sm.sharedUnit)
	if perBlock > 0 {
		lower(sm.shared/perBlock, "shared memory")
	}
	return blocks, limit, true
}

func limitsOf(arch string) (smLimits, bool) {
	sm, ok := smTable[strings.TrimRight(arch, "af")]
	return sm, ok
}

// moreBlocks is what would let one more block share a multiprocessor: the most registers of a thread, or bytes of shared memory of a
// block. ok is false where neither is the limit, or where something else would limit it next.
func moreBlocks(arch string, threads, registers, shared int) (blocks int, limit string, most int, ok bool) {
	blocks, limit, ok = BlocksPerSM(arch, threads, registers, shared)
	if !ok {
		return 0, "", 0, false
	}
	more := func(registers, shared int) bool {
		n, _, _ := BlocksPerSM(arch, threads, registers, shared)
		return n > blocks
	}
	switch limit {
	case "registers":
		for most = registers - 1; most > 0 && !more(most, shared); most-- {
		}
	case "shared memory":
		for most = shared - 1; most > 0 && !more(registers, most); most-- {
		}
	}
	return blocks, limit, most, most > 0
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }
