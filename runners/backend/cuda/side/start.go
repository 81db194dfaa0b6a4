package side

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// loadKinds loads all code of a kernel that is compiled differently for different launches.
func (k *Kernel) loadKinds() error {
	text, err := os.ReadFile(k.built.Kinds)
	if err != nil {
		return fmt.Errorf("reading which code there is: %w", err)
	}
	var all map[string]Built
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("reading which code there is: %w", err)
	}
	k.kinds = map[string]*Kernel{}
	for key, built := range all {
		kind := *k
		kind.kinds, kind.built = nil, k.built
		kind.built.Kinds, kind.built.Image, kind.built.Symbols, kind.built.Globals, kind.built.Start = "", built.Image, built.Symbols, built.Globals, built.Start
		if err := kind.load(); err != nil {
			return err
		}
		k.kinds[key] = &kind
	}
	return nil
}

// code is the code of each kernel of a launch, in order, and itself for a kernel that has one for all launches.
func (k *Kernel) code(dims manifest.Dims, kernels int) ([]*Kernel, error) {
	if k.kinds == nil {
		return slices.Repeat([]*Kernel{k}, kernels), nil
	}
	list, err := k.manifest.Specials(k.built.Variant, dims, k.built.Toggles, k.built.Exact)
	if err != nil {
		return nil, err
	}
	var all []*Kernel
	for _, special := range list {
		kind := k.kinds[special.Key()]
		if kind == nil {
			return nil, fmt.Errorf("nothing was compiled for %s", dims)
		}
		all = append(all, kind)
	}
	if len(all) != kernels {
		return nil, fmt.Errorf("%d kernels were compiled for a launch of %d", len(all), kernels)
	}
	return all, nil
}

// started applies to a launch what the code's compiler says about it. A cluster multiplies the
// grid, as in Triton.
func started(g manifest.Geometry, s toolchain.Start) manifest.Geometry {
	g.Block, g.SharedMemory, g.Cluster = s.Block, s.Shared, [3]int{max(1, s.Cluster), 1, 1}
	g.Grid[0] *= g.Cluster[0]
	return g
}

// dtypes are the formats of arguments that are passed by value.
var dtypes = map[string]manifest.DType{
	"i1": manifest.Bool, "u1": manifest.Bool, "i8": manifest.I8, "u8": manifest.U8, "i16": manifest.I16, "u16": manifest.U16, "i32": manifest.I32, "u32": manifest.U32,
	"i64": manifest.I64, "u64": manifest.U64, "fp16": manifest.F16, "bf16": manifest.BF16, "fp32": manifest.F32, "fp64": manifest.F64,
}

// compiledAlignment is the alignment of arrays that the compiler was allowed to assume.
const compiledAlignment = 16

// pass appends the arguments that the code takes, in the code's formats. describe supplies tensor
// descriptors.
func pass(list *driver.Args, passed []toolchain.Passed, args []tensor.Arg, address func(int) uint64, describe func(int, toolchain.Descriptor) ([][]byte, error)) error {
	for _, p := range passed {
		if p.Argument < 0 || p.Argument >= len(args) {
			return fmt.Errorf("argument %d of %d is passed", p.Argument, len(args))
		}
		a := args[p.Argument]
		array := p.Pointer() || p.Descriptor != nil
		switch d, ok := dtypes[p.Type]; {
		case array && !a.Array() || !array && (!ok || len(a.Real) != 1):
			return fmt.Errorf("the argument %s cannot be passed as %s", a.Name, p.Type)
		case !array:
			value := make([]byte, d.Size())
			tensor.Encode(d, value, a.Real)
			list.Bytes(value, d.Size())
		case address(p.Argument)%compiledAlignment != 0:
			return fmt.Errorf("the array %s lies at %#x, no multiple of the %d that the code was compiled for", a.Name, address(p.Argument), compiledAlignment)
		case p.Descriptor != nil:
			values, err := describe(p.Argument, *p.Descriptor)
			if err != nil {
				return err
			}
			for _, v := range values {
				list.Bytes(v, len(v))
			}
		default:
			list.Pointer(driver.DevicePtr(address(p.Argument)))
		}
	}
	return nil
}

// maxScratch bounds the memory that one launch may have in addition to its arguments.
const maxScratch = 1 << 30

// addScratch appends pointers to the memory that the code needs in addition to its arguments, for
// the n-th launch of a batch. No two launches that run together share it, and Reset overwrites it.
func (k *Kernel) addScratch(list *driver.Args, n int, g manifest.Geometry) error {
	for i, s := range k.built.Start.Scratch {
		if s.Size == 0 {
			list.Pointer(0)
			continue
		}
		size := int64(s.Size) * int64(g.Grid[0]) * int64(g.Grid[1]) * int64(g.Grid[2])
		if size > maxScratch {
			return &Failure{gates.Failure{Kind: gates.FailureLaunch, Detail: fmt.Sprintf("the kernel asks for %d bytes of scratch memory a launch, over the limit of %d", size, maxScratch)}}
		}
		buffer, err := k.scratchOf(n, i, (size+3)&^3, int64(s.Align))
		if err != nil {
			return err
		}
		list.Pointer(buffer.Ptr)
	}
	return nil
}

// scratchOf returns the i-th scratch memory of the n-th launch. A launch that needs more gets a new
// buffer; launches that were prepared before keep theirs.
func (k *Kernel) scratchOf(n, i int, size, align int64) (driver.Buffer, error) {
	if k.scratch == nil {
		k.scratch = map[int][]driver.Buffer{}
	}
	at := 2*n + i
	for _, b := range k.scratch[at] {
		if b.Size >= size {
			return b, nil
		}
	}
	memory, err := k.ctx.Alloc(size + align)
	if err != nil {
		return memory, err
	}
	skip := int64(-uint64(memory.Ptr) & uint64(align-1))
	made := memory.Slice(skip, size)
	k.scratch[at] = append(k.scratch[at], made)
	return made, k.stream.Fill32(made, scratchPoison)
}

// scratchPoison is the value that fills scratch memory before a launch.
const scratchPoison = 0xC3C3C3C3

func (k *Kernel) resetScratch() error {
	for _, all := range k.scratch {
		for _, b := range all {
			if err := k.stream.Fill32(b, scratchPoison); err != nil {
				return err
			}
		}
	}
	return nil
}
