package driver

import (
	"sync/atomic"
	"unsafe"
)

// A Gate holds a stream back until the host opens it. Work that is queued behind a
// closed gate starts at once when it opens, without a pause of the host in between.
type Gate struct {
	d    *Driver
	flag *uint32 // in pinned memory, which the GPU reads
}

// NewGate makes a gate, or nil where the driver has no such thing.
func (c *Context) NewGate() (*Gate, error) {
	if c.d.sym.cuStreamWaitValue32 == 0 {
		return nil, nil
	}
	g := &Gate{d: c.d}
	if code := c.d.sym.cuMemAllocHost.call(uintptr(unsafe.Pointer(&g.flag)), 4); code != success {
		return nil, c.d.newError(code, "allocating pinned memory on "+c.dev.String())
	}
	return g, nil
}

// Close has the stream wait for Open.
func (g *Gate) Close(s *Stream) error {
	const equal = 1 // CU_STREAM_WAIT_VALUE_EQ
	atomic.StoreUint32(g.flag, 0)
	return g.d.check(g.d.sym.cuStreamWaitValue32.call(s.handle, uintptr(unsafe.Pointer(g.flag)), 1, equal), "holding a stream back")
}

// Open lets the stream go on.
func (g *Gate) Open() { atomic.StoreUint32(g.flag, 1) }
