// Package nvml reads a GPU's clocks, temperature, power, memory errors and processes from the
// NVIDIA management library (libnvidia-ml.so.1) without cgo. A runner uses these facts to decide
// whether the GPU is fit to measure. The package changes no setting and judges nothing.
//
// Not every GPU, driver or container supports every query. If a value is not available, the error
// satisfies [Unsupported], and the caller should show the value as absent. All methods may be
// called from any goroutine.
package nvml

import (
	"fmt"
	"unsafe"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/dynlib"
)

// libraryName is the name under which the NVIDIA driver installs the library.
const libraryName = "libnvidia-ml.so.1"

// A Library is the loaded and initialised management library.
type Library struct {
	handle uintptr
	sym    symbols
}

// Open loads libnvidia-ml.so.1 from the loader's path and initialises it.
// Without the library the error is [dynlib.ErrMissing].
func Open() (*Library, error) { return openPath(libraryName) }

// openPath is Open for a library at a different path.
func openPath(path string) (*Library, error) {
	library, err := dynlib.Open(path)
	if err != nil {
		return nil, err
	}
	l := &Library{handle: library.Handle}
	if err := library.Resolve(dynlib.Symbols(&l.sym), "525"); err != nil {
		return nil, err
	}
	if err := l.check(l.sym.nvmlInit.call(), "initialising NVML"); err != nil {
		return nil, err
	}
	return l, nil
}

// Close shuts the library down. Its devices must not be used afterwards. The library stays mapped.
func (l *Library) Close() error {
	return l.check(l.sym.nvmlShutdown.call(), "shutting down NVML")
}

// DriverVersion returns the version of the installed driver, such as 580.82.07.
func (l *Library) DriverVersion() (string, error) {
	buf := make([]byte, 80)
	err := l.check(l.sym.nvmlSystemGetDriverVersion.call(uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf))), "reading the driver's version")
	return dynlib.CString(buf), err
}

// DeviceCount returns how many GPUs the library sees: all GPUs of the machine, whatever
// CUDA_VISIBLE_DEVICES says.
func (l *Library) DeviceCount() (int, error) {
	var n uint32
	err := l.check(l.sym.nvmlDeviceGetCount.call(uintptr(unsafe.Pointer(&n))), "counting the GPUs")
	return int(n), err
}

// DeviceByIndex finds a GPU by its index in the library's list, which differs from CUDA's. To find
// the GPU that a CUDA process uses, look it up by PCI address.
func (l *Library) DeviceByIndex(index int) (Device, error) {
	d := Device{l: l, label: fmt.Sprintf("GPU %d", index)}
	err := l.check(l.sym.nvmlDeviceGetHandleByIndex.call(uintptr(index), uintptr(unsafe.Pointer(&d.handle))), "finding "+d.label)
	return d, err
}

// DeviceByPCI finds a GPU by its address, such as 0000:17:00.0.
func (l *Library) DeviceByPCI(address string) (Device, error) {
	d := Device{l: l, label: address}
	cname := append([]byte(address), 0)
	err := l.check(l.sym.nvmlDeviceGetHandleByPciBusId.call(uintptr(unsafe.Pointer(&cname[0])), uintptr(unsafe.Pointer(&d.handle))), "finding GPU "+address)
	return d, err
}
