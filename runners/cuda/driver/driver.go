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
//	thread, err := dev.NewThread(driver.ScheduleSpin)
//	defer thread.Close()
//	err = thread.Do(func(ctx *driver.Context) error {
//		stream, err := ctx.NewStream()
//		…
//	})
//
// A Context that is carried out of Do and used elsewhere fails with
// [InvalidContext]; it does not corrupt anything.
//
// The default (null) stream is never used: copies, fills and launches are all
// ordered on a [Stream].
package driver

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// LibraryName is the name under which the NVIDIA driver installs the CUDA driver API.
const LibraryName = "libcuda.so.1"

// ErrNoDriver says that this machine has no CUDA driver library.
var ErrNoDriver = errors.New("install the NVIDIA driver, or use --runner cpu")

// A Driver is the loaded and initialised CUDA driver library. It stays loaded
// for the life of the process: libcuda starts threads of its own and does not
// survive being unmapped.
type Driver struct {
	handle uintptr
	sym    symbols
}

// Open loads libcuda.so.1 from the loader's path and initialises it. Without
// the library the error is [ErrNoDriver]; with the library but without a GPU it
// is an [*Error] whose code is [NoDevice].
func Open() (*Driver, error) { return OpenPath(LibraryName) }

// OpenPath is Open for a library at another place.
func OpenPath(path string) (*Driver, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		// The loader names the file it misses first: a library that is there but
		// lacks one of its own needs must not be reported as absent.
		if strings.HasPrefix(err.Error(), path+": cannot open shared object file: No such file") {
			return nil, fmt.Errorf("%s not found: %w", path, ErrNoDriver)
		}
		return nil, fmt.Errorf("loading %s: %w: repair the NVIDIA driver's installation, or use --runner cpu", path, err)
	}
	d := &Driver{handle: handle}
	if err := d.sym.resolve(handle, path); err != nil {
		return nil, err
	}
	if code := d.sym.cuInit.call(0); code != Success {
		return nil, d.newError(code, "initialising CUDA")
	}
	return d, nil
}

// A Version is a CUDA version as the driver reports it: 1000·major + 10·minor.
type Version int

func (v Version) String() string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// Version is the newest CUDA version that the driver supports.
func (d *Driver) Version() (Version, error) {
	var v int32
	if code := d.sym.cuDriverGetVersion.call(uintptr(unsafe.Pointer(&v))); code != Success {
		return 0, d.newError(code, "reading the driver's version")
	}
	return Version(v), nil
}

// cString reads a NUL-terminated string out of a buffer that C filled.
func cString(buf []byte) string {
	if i := bytes.IndexByte(buf, 0); i >= 0 {
		buf = buf[:i]
	}
	return string(buf)
}
