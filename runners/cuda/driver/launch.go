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
	Shared int // dynamic shared memory, bytes a block
	// Cluster is blocks a cluster, of which Grid must be a multiple. Zero leaves
	// it to the kernel: one that was compiled for a cluster size keeps it.
	Cluster Dim
	// Cooperative has all blocks run at once, so that they can wait for each other.
	Cooperative bool
}

// Launch queues the kernel. The parameters are copied before it returns, and
// checked against the kernel's declaration where the driver knows it.
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
			return f.d.missing("cuLaunchKernelEx", "launching "+f.name+" in clusters or cooperatively")
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

// attributes is what a plain launch does not have.
func (l Launch) attributes() []launchAttribute {
	var attrs []launchAttribute
	if l.Cluster != (Dim{}) {
		attrs = append(attrs, launchAttribute{id: attrClusterDimension, value: l.Cluster.full()})
	}
	if l.Cooperative {
		attrs = append(attrs, launchAttribute{id: attrCooperative, value: Dim{X: 1}})
	}
	return attrs
}

// BlocksAtOnce is how many blocks of a launch an SM holds at a time.
func (f *Function) BlocksAtOnce(l Launch) (int, error) {
	var blocks int32
	block := l.Block.full()
	err := f.d.check(f.d.sym.cuOccupancyMaxActiveBlocksPerMultiprocessor.call(uintptr(unsafe.Pointer(&blocks)), f.handle,
		uintptr(block.X*block.Y*block.Z), uintptr(l.Shared)), "asking how many blocks of "+f.name+" an SM holds")
	return int(blocks), err
}

// launchConfig is CUlaunchConfig; Go pads it as C does.
type launchConfig struct {
	grid, block Dim
	shared      uint32
	stream      uintptr
	attrs       *launchAttribute
	count       uint32
}

const (
	attrCooperative      = 2 // CU_LAUNCH_ATTRIBUTE_COOPERATIVE
	attrClusterDimension = 4 // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
)

// launchAttribute is CUlaunchAttribute with the cluster's member of its union, whose X is
// where the int of all others lies.
type launchAttribute struct {
	id    int32
	_     [4]byte
	value Dim
	_     [64 - unsafe.Sizeof(Dim{})]byte
}
