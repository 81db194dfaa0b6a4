package nvml

import "unsafe"

// A Process has a compute context on a GPU. In a container the PIDs are often
// the host's.
type Process struct {
	PID         int
	MemoryBytes uint64
	MemoryKnown bool // the driver does not always say
}

// processInfo is nvmlProcessInfo_t of the third version of the question.
type processInfo struct {
	pid             uint32
	_               [4]byte
	usedMemory      uint64
	gpuInstance     uint32
	computeInstance uint32
}

// Processes are those with a compute context on the GPU, the caller's own
// included.
func (d Device) Processes() ([]Process, error) {
	const unknown = ^uint64(0) // NVML_VALUE_NOT_AVAILABLE
	// Processes come and go between being counted and being listed.
	for room := uint32(32); ; {
		infos := make([]processInfo, room)
		n := room
		code := d.l.sym.nvmlDeviceGetComputeRunningProcesses.call(d.handle,
			uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(&infos[0])))
		if code == insufficientSize && room < 1<<16 {
			room = max(n, room) + 32
			continue
		}
		if err := d.check(code, "compute processes"); err != nil {
			return nil, err
		}
		list := make([]Process, 0, n)
		for _, p := range infos[:min(n, room)] {
			q := Process{PID: int(p.pid), MemoryBytes: p.usedMemory, MemoryKnown: true}
			if p.usedMemory == unknown {
				q.MemoryBytes, q.MemoryKnown = 0, false
			}
			list = append(list, q)
		}
		return list, nil
	}
}
