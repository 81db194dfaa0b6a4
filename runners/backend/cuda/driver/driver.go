// Package driver calls the CUDA driver API (libcuda.so.1) without cgo. It wraps the part of the API
// that a measuring worker needs, with types, and with errors that name the failed operation. It
// loads modules that were compiled elsewhere. It compiles nothing, decides nothing about timing and
// judges nothing.
//
// A CUDA context belongs to an operating-system thread, and a goroutine does not stay on one
// thread. So everything that uses a context is a method of [Context] or of an object made from one.
// A Context is only available inside [Thread.Do], which runs on a locked thread that has the
// context current:
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
// If a Context leaves Do and is used elsewhere, its calls fail with invalidContext; they corrupt
// nothing.
//
// The package never uses the default (null) stream: copies, fills and launches are all ordered on a
// [Stream].
package driver

import (
	"fmt"
	"unsafe"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/dynlib"
)

// LibraryName is the name under which the NVIDIA driver installs the CUDA driver API.
const LibraryName = "libcuda.so.1"

// A Driver is the loaded and initialised CUDA driver library. It stays loaded
// for the life of the process.
type Driver struct {
	handle uintptr
	sym    symbols
}

// Open loads libcuda.so.1 from the loader's path and initialises it. Without the library the error
// is [dynlib.ErrMissing]. With the library but without a GPU it is an [*Error] whose code is
// noDevice.
func Open() (*Driver, error) { return openPath(LibraryName) }

// openPath is Open for a library at a different path.
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

// Version returns the newest CUDA version that the driver supports.
func (d *Driver) Version() (Version, error) {
	var v int32
	err := d.check(d.sym.cuDriverGetVersion.call(uintptr(unsafe.Pointer(&v))), "reading the driver's version")
	return Version(v), err
}
