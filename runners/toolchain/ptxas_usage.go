package toolchain

import (
	"fmt"
	"strconv"
	"strings"
)

// A FunctionUsage is what the tools said of one kernel entry; a nil field was not printed.
type FunctionUsage struct {
	Name string // as the linker knows it
	Arch string // such as sm_89; empty where the tool did not say

	Registers    *int // per thread
	Stack        *int // bytes, with what its callees need where the tool knows that
	SpillStores  *int // bytes
	SpillLoads   *int // bytes
	StaticShared *int // bytes; dynamic shared memory is the launch's and never printed
}

// raise sets a field to n unless it already holds more.
func raise(field **int, n int) {
	if *field == nil || **field < n {
		*field = &n
	}
}

// raiseAll takes over every figure of other that is higher.
func (u *FunctionUsage) raiseAll(other FunctionUsage) {
	for _, f := range []struct {
		to   **int
		from *int
	}{
		{&u.Registers, other.Registers},
		{&u.Stack, other.Stack},
		{&u.SpillStores, other.SpillStores},
		{&u.SpillLoads, other.SpillLoads},
		{&u.StaticShared, other.StaticShared},
	} {
		if f.from != nil {
			raise(f.to, *f.from)
		}
	}
}

// count reads the number before unit. Old releases print the program's own bytes and the system's as "8228+16".
func count(item, unit string) (int, error) {
	sum := 0
	for part := range strings.SplitSeq(strings.TrimSpace(strings.TrimSuffix(item, unit)), "+") {
		// 48 bits are more than any GPU's memory, and leave room to add up.
		n, err := strconv.ParseUint(part, 10, 48)
		if err != nil {
			return 0, fmt.Errorf("%q: want a count of %s: %w", item, unit, err)
		}
		sum += int(n)
	}
	return sum, nil
}
