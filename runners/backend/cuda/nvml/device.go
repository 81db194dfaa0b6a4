package nvml

import (
	"fmt"
	"unsafe"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/dynlib"
)

// A Device is one GPU.
type Device struct {
	l      *Library
	handle uintptr
	label  string
}

// String returns the name by which the device was found.
func (d Device) String() string { return d.label }

// Name returns the product's name, such as NVIDIA H200.
func (d Device) Name() (string, error) { return d.text(d.l.sym.nvmlDeviceGetName, "name") }

// UUID identifies the GPU permanently, such as GPU-8f6d…; CUDA_VISIBLE_DEVICES accepts it.
func (d Device) UUID() (string, error) { return d.text(d.l.sym.nvmlDeviceGetUUID, "UUID") }

// Minor returns the number of its device file: 0 for /dev/nvidia0.
func (d Device) Minor() (int, error) {
	n, err := d.number(d.l.sym.nvmlDeviceGetMinorNumber, "minor number")
	return int(n), err
}

func (d Device) text(ask proc, what string) (string, error) {
	buf := make([]byte, 96)
	err := d.check(ask.call(d.handle, uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf))), what)
	return dynlib.CString(buf), err
}

// check returns nil if the query succeeded.
func (d Device) check(code Code, what string) error {
	return d.l.check(code, "reading the "+what+" of "+d.label)
}

// number makes a query whose result is an unsigned int.
func (d Device) number(ask proc, what string) (uint32, error) {
	var n uint32
	err := d.check(ask.call(d.handle, uintptr(unsafe.Pointer(&n))), what)
	return n, err
}

// A Clock is a clock domain.
type Clock int32

const (
	graphicsClock Clock = 0
	SMClock       Clock = 1
	MemoryClock   Clock = 2
)

func (c Clock) String() string {
	switch c {
	case graphicsClock:
		return "graphics clock"
	case SMClock:
		return "SM clock"
	case MemoryClock:
		return "memory clock"
	}
	return fmt.Sprintf("clock %d", int(c))
}

// Clock returns the current frequency in MHz.
func (d Device) Clock(c Clock) (int, error) {
	return d.clock(d.l.sym.nvmlDeviceGetClockInfo, c, c.String())
}

// MaxClock returns the highest frequency that the GPU can run at, in MHz.
func (d Device) MaxClock(c Clock) (int, error) {
	return d.clock(d.l.sym.nvmlDeviceGetMaxClockInfo, c, "highest "+c.String())
}

func (d Device) clock(ask proc, c Clock, what string) (int, error) {
	var mhz uint32
	err := d.check(ask.call(d.handle, uintptr(c), uintptr(unsafe.Pointer(&mhz))), what)
	return int(mhz), err
}

// Reasons returns why the clocks are not higher at the moment.
func (d Device) Reasons() (Reasons, error) {
	var r Reasons
	err := d.check(d.l.sym.nvmlDeviceGetCurrentClocksEventReasons.call(d.handle, uintptr(unsafe.Pointer(&r))), "clock event reasons")
	return r, err
}

// temperature is nvmlTemperature_v1_t.
type temperature struct {
	version uint32
	sensor  int32
	celsius int32
}

// Temperature returns the temperature of the GPU's die in degrees Celsius.
func (d Device) Temperature() (int, error) {
	const die = 0 // NVML_TEMPERATURE_GPU
	// CUDA 13 deprecates the older query but still has it. It is the one that every driver in use
	// supports.
	if d.l.sym.nvmlDeviceGetTemperature != 0 {
		var celsius uint32
		err := d.check(d.l.sym.nvmlDeviceGetTemperature.call(d.handle, die, uintptr(unsafe.Pointer(&celsius))), "temperature")
		return int(celsius), err
	}
	t := temperature{version: uint32(unsafe.Sizeof(temperature{})) | 1<<24, sensor: die}
	err := d.check(d.l.sym.nvmlDeviceGetTemperatureV.call(d.handle, uintptr(unsafe.Pointer(&t))), "temperature")
	return int(t.celsius), err
}

// Persistence reports whether the driver stays loaded while no process uses the GPU. Without it
// every process pays for waking the GPU, and clocks drop between processes.
func (d Device) Persistence() (bool, error) {
	on, err := d.number(d.l.sym.nvmlDeviceGetPersistenceMode, "persistence mode")
	return on != 0, err
}

// UncorrectedErrors counts the memory errors since the driver was loaded that ECC could not
// correct.
func (d Device) UncorrectedErrors() (uint64, error) {
	const uncorrected, volatile = 1, 0
	var n uint64
	err := d.check(d.l.sym.nvmlDeviceGetTotalEccErrors.call(d.handle, uncorrected, volatile, uintptr(unsafe.Pointer(&n))), "uncorrected memory errors")
	return n, err
}

// A Process has a compute context on a GPU. In a container the PIDs are often the host's.
type Process struct {
	PID         int
	MemoryBytes uint64
	MemoryKnown bool // the driver does not always know
}

// processInfo is nvmlProcessInfo_t of the third version of the query.
type processInfo struct {
	pid             uint32
	_               [4]byte
	usedMemory      uint64
	gpuInstance     uint32
	computeInstance uint32
}

// Processes lists the processes with a compute context on the GPU, including the caller's own.
func (d Device) Processes() ([]Process, error) {
	const unknown = ^uint64(0) // NVML_VALUE_NOT_AVAILABLE
	// Processes may start and end between the count and the list.
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
