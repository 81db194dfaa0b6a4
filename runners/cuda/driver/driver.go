// Package driver calls the CUDA driver API (libcuda.so.1) without cgo: the part
// of it that a measuring worker needs, typed, and with errors that name what
// was being done. It loads modules that someone else compiled; it compiles
// nothing, times nothing by itself and judges nothing.
//
// A CUDA context belongs to an operating-system thread, and a goroutine does
// not stay on one. So everything that touches a context hangs off [Context],
// and a Context is only handed out inside [Thread.Do], which runs on a thread
// that is locked and has the context current:
//
//	drv, err := driver.Open()
//	dev, err := drv.Device(0)
//	thread, err := dev.NewThread()
//	defer thread.Close()
//	err = thread.Do(func(ctx *driver.Context) error {
//		stream, err := ctx.NewStream()
//		…
//	})
//
// A Context that is carried out of Do and used elsewhere fails with
// invalidContext; it does not corrupt anything.
//
// The default (null) stream is never used: copies, fills and launches are all
// ordered on a [Stream].
package driver

import (
	"fmt"
	"unsafe"

	"github.com/kernelgate/kernelgate/runners/cuda/dynlib"
)

// LibraryName is the name under which the NVIDIA driver installs the CUDA driver API.
const LibraryName = "libcuda.so.1"

// A Driver is the loaded and initialised CUDA driver library. It stays loaded
// for the life of the process.
type Driver struct {
	handle uintptr
	sym    symbols
}

// Open loads libcuda.so.1 from the loader's path and initialises it. Without
// the library the error is [dynlib.ErrMissing]; with the library but without a GPU it
// is an [*Error] whose code is noDevice.
func Open() (*Driver, error) { return openPath(LibraryName) }

// openPath is Open for a library at another place.
func openPath(path string) (*Driver, error) {
	library, err := dynlib.Open(path)
	if err != nil {
		return nil, err
	}
	d := &Driver{handle: library.Handle}
	if err := library.Resolve(dynlib.Symbols(&d.sym), "525 (CUDA 12.0)"); err != nil {
		return nil, err
	}
	if err := d.check(d.sym.cuInit.call(0), "initialising CUDA"); err != nil {
		return nil, err
	}
	return d, nil
}

// A Version is a CUDA version as the driver reports it: 1000·major + 10·minor.
type Version int

func (v Version) String() string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// Version is the newest CUDA version that the driver supports.
func (d *Driver) Version() (Version, error) {
	var v int32
	err := d.check(d.sym.cuDriverGetVersion.call(uintptr(unsafe.Pointer(&v))), "reading the driver's version")
	return Version(v), err
}
