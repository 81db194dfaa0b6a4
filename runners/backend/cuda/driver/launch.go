package driver

import (
	"fmt"
	"runtime"
	"unsafe"
)

// A Dim is a size in three dimensions; a zero Y or Z counts as one.
type Dim struct {
	X, Y, Z uint32
}

func (d Dim) full() Dim { return Dim{d.X, max(d.Y, 1), max(d.Z, 1)} }

// A Launch is the shape of a kernel's launch.
type Launch struct {
	Grid   Dim // blocks
	Block  Dim // threads
	Shared int // bytes of dynamic shared memory per block
	// Cluster is the number of blocks per cluster; Grid must be a multiple of it. Zero means the
	// size that the kernel was compiled for, if any.
	Cluster Dim
	// Cooperative makes all blocks run at the same time, so that they can wait for each other.
	Cooperative bool
	// Programmatic lets the kernel start before the kernel before it on the stream has ended. It waits for its memory itself.
	Programmatic bool
	Priority     int  // among kernels that run at the same time; lower comes first
	Carveout     *int // preferred share of shared memory in an SM's L1 cache, in percent; nil leaves it to the driver
}

// Launch queues the kernel. It copies the parameters before it returns, and checks them against the
// kernel's declaration if the driver knows the declaration.
func (f *Function) Launch(s *Stream, l Launch, a *Args) error {
	if f.known {
		if err := a.check(f.params); err != nil {
			return fmt.Errorf("launching %s: %w", f.name, err)
		}
	}
	params := a.seal()
	var pins runtime.Pinner
	defer pins.Unpin()
	a.pin(&pins)

	grid, block := l.Grid.full(), l.Block.full()
	var code Code
	attrs := l.attributes()
	if len(attrs) == 0 {
		code = f.d.sym.cuLaunchKernel.call(f.handle,
			uintptr(grid.X), uintptr(grid.Y), uintptr(grid.Z),
			uintptr(block.X), uintptr(block.Y), uintptr(block.Z),
			uintptr(l.Shared), s.handle, uintptr(unsafe.Pointer(params)), 0)
	} else {
		if f.d.sym.cuLaunchKernelEx == 0 {
			return f.d.missing("cuLaunchKernelEx", "launching "+f.name+" with attributes such as clusters")
		}
		pins.Pin(&attrs[0])
		config := launchConfig{grid: grid, block: block, shared: uint32(l.Shared), stream: s.handle, attrs: &attrs[0], count: uint32(len(attrs))}
		code = f.d.sym.cuLaunchKernelEx.call(uintptr(unsafe.Pointer(&config)), f.handle, uintptr(unsafe.Pointer(params)), 0)
	}
	if code != success {
		return f.d.newError(code, "launching "+f.name)
	}
	return nil
}

// attributes returns the launch attributes that a plain launch does not have.
func (l Launch) attributes() []launchAttribute {
	var attrs []launchAttribute
	if l.Cluster != (Dim{}) {
		attrs = append(attrs, launchAttribute{id: attrClusterDimension, value: l.Cluster.full()})
	}
	if l.Cooperative {
		attrs = append(attrs, launchAttribute{id: attrCooperative, value: Dim{X: 1}})
	}
	if l.Programmatic {
		attrs = append(attrs, launchAttribute{id: attrProgrammatic, value: Dim{X: 1}})
	}
	if l.Priority != 0 {
		attrs = append(attrs, launchAttribute{id: attrPriority, value: Dim{X: uint32(int32(l.Priority))}})
	}
	if l.Carveout != nil {
		attrs = append(attrs, launchAttribute{id: attrCarveout, value: Dim{X: uint32(*l.Carveout)}})
	}
	return attrs
}

// BlocksAtOnce returns how many blocks of a launch one SM holds at the same time.
func (f *Function) BlocksAtOnce(l Launch) (int, error) {
	var blocks int32
	block := l.Block.full()
	err := f.d.check(f.d.sym.cuOccupancyMaxActiveBlocksPerMultiprocessor.call(uintptr(unsafe.Pointer(&blocks)), f.handle,
		uintptr(block.X*block.Y*block.Z), uintptr(l.Shared)), "asking how many blocks of "+f.name+" an SM holds")
	return int(blocks), err
}

// launchConfig is CUlaunchConfig. Go pads it as C does.
type launchConfig struct {
	grid, block Dim
	shared      uint32
	stream      uintptr
	attrs       *launchAttribute
	count       uint32
}

const (
	attrCooperative      = 2  // CU_LAUNCH_ATTRIBUTE_COOPERATIVE
	attrClusterDimension = 4  // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
	attrProgrammatic     = 6  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
	attrPriority         = 8  // CU_LAUNCH_ATTRIBUTE_PRIORITY
	attrCarveout         = 14 // CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
)

// launchAttribute is CUlaunchAttribute with the cluster member of its union. The member's X lies at
// the same offset as the int of all other attributes.
type launchAttribute struct {
	id    int32
	_     [4]byte
	value Dim
	_     [64 - unsafe.Sizeof(Dim{})]byte
}
