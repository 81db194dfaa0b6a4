package nvml

import (
	"errors"
	"fmt"
	"time"
	"unsafe"
)

// eventData is nvmlEventData_t.
type eventData struct {
	device          uintptr
	kind            uint64
	data            uint64
	gpuInstance     uint32
	computeInstance uint32
}

// xidEvent is nvmlEventTypeXidCriticalError.
const xidEvent = 0x8

// An Xid is the number under which the driver reports a fault of a GPU, or of a program on it.
type Xid uint64

// xidNames are the Xids that kernels and failing hardware cause, in the words of NVIDIA's list.
var xidNames = map[Xid]string{
	8:   "GPU stopped processing",
	13:  "graphics engine exception",
	31:  "GPU memory page fault",
	43:  "GPU stopped processing",
	45:  "preemptive cleanup, due to previous errors",
	48:  "double bit ECC error",
	62:  "internal micro-controller halt",
	63:  "ECC page retirement or row remapping",
	64:  "ECC page retirement or row remapping failed",
	74:  "NVLink error",
	79:  "GPU has fallen off the bus",
	92:  "high single-bit ECC error rate",
	94:  "contained ECC error",
	95:  "uncontained ECC error",
	119: "GSP RPC timeout",
	120: "GSP error",
	140: "unrecovered ECC error",
	999: "unknown",
}

// String returns the number with its meaning, if this package knows it.
func (x Xid) String() string {
	if name, ok := xidNames[x]; ok {
		return fmt.Sprintf("Xid %d (%s)", uint64(x), name)
	}
	return fmt.Sprintf("Xid %d", uint64(x))
}

// Hardware reports whether the GPU, its memory or its links are at fault. A kernel may have caused
// any other Xid, including unknown ones.
func (x Xid) Hardware() bool {
	switch x {
	case 48, 62, 64, 74, 79, 92, 94, 95, 119, 120, 140:
		return true
	}
	return false
}

// An XidWatch receives every Xid of one GPU from its creation on, whichever process caused it. Only
// one goroutine may use it at a time.
type XidWatch struct {
	d   Device
	set uintptr
}

// WatchXids starts to listen. A container or a driver may not allow it. A doctor should show the
// error; other callers can ignore it.
func (d Device) WatchXids() (*XidWatch, error) {
	w := &XidWatch{d: d}
	if code := d.l.sym.nvmlEventSetCreate.call(uintptr(unsafe.Pointer(&w.set))); code != success {
		return nil, d.l.newError(code, "listening for Xids of "+d.label)
	}
	if code := d.l.sym.nvmlDeviceRegisterEvents.call(d.handle, xidEvent, w.set); code != success {
		return nil, errors.Join(d.l.newError(code, "listening for Xids of "+d.label), w.Close())
	}
	return w, nil
}

// Next returns the earliest Xid that it has not returned yet. ok is false if none arrives in time.
func (w *XidWatch) Next(patience time.Duration) (x Xid, ok bool, err error) {
	var event eventData
	code := w.d.l.sym.nvmlEventSetWait.call(w.set, uintptr(unsafe.Pointer(&event)), uintptr(max(patience.Milliseconds(), 0)))
	switch {
	case code == timeout:
		return 0, false, nil
	case code != success:
		return 0, false, w.d.l.newError(code, "waiting for Xids of "+w.d.label)
	}
	return Xid(event.data), true, nil
}

// Close stops listening.
func (w *XidWatch) Close() error {
	return w.d.l.check(w.d.l.sym.nvmlEventSetFree.call(w.set), "no longer listening for Xids of "+w.d.label)
}
