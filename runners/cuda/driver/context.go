package driver

import (
	"fmt"
	"unsafe"
)

// A Context is a device's context, current on the thread of the [Thread.Do]
// that handed it out and of use there alone.
type Context struct {
	d   *Driver
	dev Device
}

// Device is the GPU that the context belongs to.
func (c *Context) Device() Device { return c.dev }

// Synchronize waits for all work in the context and reports its faults.
func (c *Context) Synchronize() error {
	if code := c.d.sym.cuCtxSynchronize.call(); code != Success {
		return c.d.newError(code, "waiting for "+c.dev.String())
	}
	return nil
}

// MemoryInfo is the device's free and total memory in bytes.
func (c *Context) MemoryInfo() (free, total uint64, err error) {
	var f, t uint64
	if code := c.d.sym.cuMemGetInfo.call(uintptr(unsafe.Pointer(&f)), uintptr(unsafe.Pointer(&t))); code != Success {
		return 0, 0, c.d.newError(code, "reading the free memory of "+c.dev.String())
	}
	return f, t, nil
}

// ResetPersistingL2 turns all persisting lines of the L2 cache back into normal
// ones. GPUs before Ampere have none: the code is then [NotSupported].
func (c *Context) ResetPersistingL2() error {
	if code := c.d.sym.cuCtxResetPersistingL2Cache.call(); code != Success {
		return c.d.newError(code, "resetting the persisting L2 lines of "+c.dev.String())
	}
	return nil
}

// A Limit is a CUlimit.
type Limit int32

const (
	LimitStackSize             Limit = 0 // bytes a thread
	LimitPrintfFIFO            Limit = 1 // bytes
	LimitMallocHeap            Limit = 2 // bytes
	LimitMaxL2FetchGranularity Limit = 5 // bytes, 0 to 128
	LimitPersistingL2          Limit = 6 // bytes
)

// String is the name in cuda.h without its prefix.
func (l Limit) String() string {
	switch l {
	case LimitStackSize:
		return "STACK_SIZE"
	case LimitPrintfFIFO:
		return "PRINTF_FIFO_SIZE"
	case LimitMallocHeap:
		return "MALLOC_HEAP_SIZE"
	case LimitMaxL2FetchGranularity:
		return "MAX_L2_FETCH_GRANULARITY"
	case LimitPersistingL2:
		return "PERSISTING_L2_CACHE_SIZE"
	}
	return fmt.Sprintf("limit %d", int(l))
}

// SetLimit asks for a limit; the driver may round it, see [Context.Limit].
func (c *Context) SetLimit(l Limit, value uint64) error {
	if code := c.d.sym.cuCtxSetLimit.call(uintptr(l), uintptr(value)); code != Success {
		return c.d.newError(code, fmt.Sprintf("setting %s of %s to %d", l, c.dev, value))
	}
	return nil
}

// Limit is a limit's value now.
func (c *Context) Limit(l Limit) (uint64, error) {
	var v uint64
	if code := c.d.sym.cuCtxGetLimit.call(uintptr(unsafe.Pointer(&v)), uintptr(l)); code != Success {
		return 0, c.d.newError(code, fmt.Sprintf("reading %s of %s", l, c.dev))
	}
	return v, nil
}
