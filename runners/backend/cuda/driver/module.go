package driver

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/dynlib"
)

// A Module is code loaded into a context: a cubin, a fatbin or PTX text.
type Module struct {
	d      *Driver
	handle uintptr
}

// LoadModule loads code. The driver first compiles PTX; if that fails, the error includes the
// compiler's messages.
func (c *Context) LoadModule(image []byte) (*Module, error) {
	if len(image) == 0 {
		return nil, fmt.Errorf("loading a module onto %s: the image is empty", c.dev)
	}
	const errorLog, errorLogSize = 5, 6 // CU_JIT_ERROR_LOG_BUFFER and its _SIZE_BYTES
	text := make([]byte, len(image)+1)  // PTX must end in a zero byte
	copy(text, image)
	log := make([]byte, 16<<10)
	var pins runtime.Pinner
	pins.Pin(&log[0])
	defer pins.Unpin()
	options := [...]int32{errorLog, errorLogSize}
	// A void* array: the size is passed as the pointer's value, not behind the pointer.
	values := [...]uintptr{uintptr(unsafe.Pointer(&log[0])), uintptr(len(log))}

	m := &Module{d: c.d}
	code := c.d.sym.cuModuleLoadDataEx.call(
		uintptr(unsafe.Pointer(&m.handle)), uintptr(unsafe.Pointer(&text[0])),
		uintptr(len(options)), uintptr(unsafe.Pointer(&options)), uintptr(unsafe.Pointer(&values)))
	if code != success {
		err := c.d.newError(code, "loading a module onto "+c.dev.String())
		if said := dynlib.CString(log); said != "" {
			return nil, fmt.Errorf("%w\n%s", err, said)
		}
		return nil, err
	}
	return m, nil
}

// Close unloads the module. Its functions must not be used afterwards.
func (m *Module) Close() error {
	return m.d.check(m.d.sym.cuModuleUnload.call(m.handle), "unloading a module")
}

// Global returns the memory of one of the module's variables.
func (m *Module) Global(name string) (Buffer, error) {
	var at DevicePtr
	var size uint64
	cname := append([]byte(name), 0)
	err := m.d.check(m.d.sym.cuModuleGetGlobal.call(uintptr(unsafe.Pointer(&at)), uintptr(unsafe.Pointer(&size)), m.handle,
		uintptr(unsafe.Pointer(&cname[0]))), "finding variable "+name)
	return Buffer{at, int64(size)}, err
}

// A Function is a kernel of a loaded module.
type Function struct {
	d      *Driver
	handle uintptr
	name   string
	params []Param
	known  bool // whether the driver could describe the parameters
}

// Function finds a kernel by its name in the object code, which for C++ is the mangled one, and
// loads it fully. If the driver loaded it on its first launch, that would distort the launch's time
// or break a capture.
func (m *Module) Function(name string) (*Function, error) {
	f := &Function{d: m.d, name: name}
	cname := append([]byte(name), 0)
	if code := m.d.sym.cuModuleGetFunction.call(uintptr(unsafe.Pointer(&f.handle)), m.handle,
		uintptr(unsafe.Pointer(&cname[0]))); code != success {
		return nil, m.d.newError(code, "finding kernel "+name)
	}
	if m.d.sym.cuFuncLoad != 0 {
		if code := m.d.sym.cuFuncLoad.call(f.handle); code != success {
			return nil, m.d.newError(code, "loading kernel "+name)
		}
	}
	f.readParams()
	return f, nil
}

// readParams asks for one parameter after the other until the driver reports that there is no such
// index.
func (f *Function) readParams() {
	if f.d.sym.cuFuncGetParamInfo == 0 {
		return
	}
	for i := 0; ; i++ {
		var offset, size uint64
		code := f.d.sym.cuFuncGetParamInfo.call(f.handle, uintptr(i),
			uintptr(unsafe.Pointer(&offset)), uintptr(unsafe.Pointer(&size)))
		switch code {
		case success:
			f.params = append(f.params, Param{int(offset), int(size)})
		case invalidValue:
			f.known = true
			return
		default:
			f.params = nil
			return
		}
	}
}

// maxDynamicShared is CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
const maxDynamicShared = 8

// AllowShared permits launches of the kernel with up to this many bytes of dynamic shared memory. A
// launch with more than 48 KiB needs it.
func (f *Function) AllowShared(bytes int) error {
	return f.d.check(f.d.sym.cuFuncSetAttribute.call(f.handle, maxDynamicShared, uintptr(bytes)), fmt.Sprintf("allowing kernel %s %d bytes of dynamic shared memory", f.name, bytes))
}
