package toolchain

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/elf"
)

// A Start says how a kernel is launched, if its compiler decides that and not the manifest. It is
// untrusted, and check compares it with the machine code.
type Start struct {
	Block   [3]int    `json:"block"`             // threads
	Shared  int       `json:"shared"`            // dynamic shared memory of a block, bytes
	Cluster int       `json:"cluster,omitempty"` // blocks of a cluster, along x, by which the grid is multiplied; 0 leaves it to the code
	Passed  []Passed  `json:"passed,omitempty"`  // the arguments that are parameters, in order; nil means all of them, as in C
	Scratch []Scratch `json:"scratch,omitempty"` // pointers behind them
}

// A Passed is one of the manifest's arguments as the code takes it. The type is Triton's name.
type Passed struct {
	Argument   int         `json:"argument"`
	Type       string      `json:"type"`
	Descriptor *Descriptor `json:"descriptor,omitempty"` // of a tensor descriptor, which is several parameters
}

// Scratch is memory that a kernel needs in addition to its arguments, by the blocks of its grid; a
// null pointer if it needs none.
type Scratch struct {
	Size  int `json:"size"`
	Align int `json:"align"`
}

const (
	maxBlockThreads = 1024
	maxBlockShared  = 227 << 10
	maxClusterSize  = 8
	maxScratch      = 1 << 20 // bytes of a block
	maxScratchAlign = 4096
	maxScratches    = 2
)

// typeSizes are the bytes of the types that can be passed, except pointers.
var typeSizes = map[string]int{
	"i1": 1, "u1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8, "fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8,
}

// sizes returns the bytes of its parameters; 0 for a type that cannot be passed.
func (p Passed) sizes() []int {
	switch {
	case p.Descriptor != nil:
		return p.Descriptor.sizes()
	case p.Pointer():
		return []int{8}
	}
	return []int{typeSizes[p.Type]}
}

// Pointer reports whether it is the address of an array.
func (p Passed) Pointer() bool { return strings.HasPrefix(p.Type, "*") }

// Attributes of .nv.info.<kernel> that describe the launch.
const (
	attributeThreads = 0x10 // .reqntid
	attributeCluster = 0x3d
)

// check returns what in a launch does not fit the machine code, or any GPU. The error is for
// people.
func (s *Start) check(f *cubinFile, k Kernel) error {
	threads := 1
	for _, n := range s.Block {
		if n < 1 || n > maxBlockThreads {
			threads = 0
		}
		threads *= n
	}
	switch {
	case threads < 1 || threads > maxBlockThreads:
		return fmt.Errorf("a block of %s threads (1 to %d are possible)", axes(s.Block), maxBlockThreads)
	case s.Shared < 0 || s.Shared > maxBlockShared:
		return fmt.Errorf("%d bytes of shared memory (0 to %d are possible)", s.Shared, maxBlockShared)
	case s.Cluster < 0 || s.Cluster > maxClusterSize:
		return fmt.Errorf("a cluster of %d blocks (1 to %d are possible)", s.Cluster, maxClusterSize)
	case len(s.Scratch) > maxScratches:
		return fmt.Errorf("%d scratch memories (up to %d are possible)", len(s.Scratch), maxScratches)
	}
	for _, m := range s.Scratch {
		if m.Size < 0 || m.Size > maxScratch || m.Align < 1 || m.Align > maxScratchAlign || m.Align&(m.Align-1) != 0 {
			return fmt.Errorf("scratch memory of %d bytes a block at multiples of %d (up to %d at powers of two up to %d are possible)", m.Size, m.Align, maxScratch, maxScratchAlign)
		}
	}
	list, err := f.kernelAttributes(k.Symbol)
	if err != nil {
		return err
	}
	for _, a := range list {
		if a.kind != attributeThreads && (a.kind != attributeCluster || s.Cluster == 0) || !a.sized {
			continue
		}
		if len(a.data) != 12 {
			return fmt.Errorf("three numbers of threads or blocks in %d bytes", len(a.data))
		}
		var in [3]int
		for i := range in {
			in[i] = int(binary.LittleEndian.Uint32(a.data[4*i:]))
		}
		want, what := s.Block, "threads a block"
		if a.kind == attributeCluster {
			want, what = [3]int{s.Cluster, 1, 1}, "blocks a cluster"
		}
		if in != want {
			return fmt.Errorf("%s %s, and the code is made for %s", axes(want), what, axes(in))
		}
	}
	return nil
}

func axes(n [3]int) string { return fmt.Sprintf("%d × %d × %d", n[0], n[1], n[2]) }

// checkPassed compares what is passed with the kernel's parameter table.
func (s *Start) checkPassed(k Kernel, arguments int) error {
	last := -1
	for _, p := range s.Passed {
		if p.Argument <= last || p.Argument >= arguments {
			return fmt.Errorf("argument %d of %d in a place where it cannot be", p.Argument, arguments)
		}
		if last = p.Argument; p.sizes()[0] == 0 {
			return fmt.Errorf("the argument %d as %s, which cannot be passed", p.Argument, elf.Quote(p.Type))
		}
	}
	var want []string
	for _, p := range s.Passed {
		want = append(want, fmt.Sprintf("%s (%s)", p.Type, joined(p.sizes())))
	}
	for range s.Scratch {
		want = append(want, "scratch pointer (8)")
	}
	if sizes := mapped(k.Params, func(p Param) int { return p.Size }); !slices.Equal(s.sizes(), sizes) {
		return fmt.Errorf("%d parameters of %s bytes, and the code takes %d of %s bytes", len(s.sizes()), strings.Join(want, ", "), len(sizes), joined(sizes))
	}
	return nil
}

// sizes returns the bytes of all parameters.
func (s *Start) sizes() []int {
	all := slices.Concat(mapped(s.Passed, Passed.sizes)...)
	for range s.Scratch {
		all = append(all, 8)
	}
	return all
}

func mapped[T, V any](list []T, value func(T) V) []V {
	var all []V
	for _, item := range list {
		all = append(all, value(item))
	}
	return all
}

func joined(numbers []int) string { return strings.Trim(fmt.Sprint(numbers), "[]") }
