package driver

import (
	"sync/atomic"
	"unsafe"
)

// A Gate blocks a stream until the host opens it. Work that is queued behind a closed gate starts
// as soon as the gate opens, so that no pause of the host falls between its launches.
type Gate struct {
	d    *Driver
	flag *uint32 // in pinned memory, which the GPU reads
}

// NewGate makes a gate. It returns nil if the driver does not support gates.
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

// Close makes the stream wait for Open.
func (g *Gate) Close(s *Stream) error {
	const equal = 1 // CU_STREAM_WAIT_VALUE_EQ
	atomic.StoreUint32(g.flag, 0)
	return g.d.check(g.d.sym.cuStreamWaitValue32.call(s.handle, uintptr(unsafe.Pointer(g.flag)), 1, equal), "holding a stream back")
}

// Open lets the stream continue.
func (g *Gate) Open() { atomic.StoreUint32(g.flag, 1) }
