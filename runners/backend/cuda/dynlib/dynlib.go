// Package dynlib loads the shared libraries that the NVIDIA driver installs and finds functions in
// them, with clear messages for a host that lacks them. Packages driver and nvml use it. It calls
// none of the functions: their parameters and results are the callers' responsibility.
package dynlib

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// ErrMissing means that this machine does not have the library.
var ErrMissing = errors.New("install the NVIDIA driver")

// A Library is a loaded library. It stays loaded for the life of the process, because the driver's
// libraries start threads and do not survive being unmapped.
type Library struct {
	Handle uintptr
	path   string
}

// Open loads a library by its path, or by its name from the loader's path. If it does not exist,
// the error is [ErrMissing].
func Open(path string) (Library, error) {
	// The loader keeps its error message per thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		// The loader's message starts with the file that it misses. A library that exists but lacks
		// one of its dependencies must not be reported as missing.
		if strings.HasPrefix(err.Error(), path+": cannot open shared object file: No such file") {
			return Library{}, fmt.Errorf("%s not found: %w", path, ErrMissing)
		}
		return Library{}, fmt.Errorf("loading %s: %w: repair the NVIDIA driver's installation", path, err)
	}
	return Library{handle, path}, nil
}

// A Symbol says where to store a function's address, and its possible names in the library. The
// first name that exists wins. An optional function may be missing; its address is then zero.
type Symbol struct {
	To       *uintptr
	Optional bool
	Names    []string
}

// Symbols returns one Symbol for each field of a struct. Each field holds the address of the
// function with the field's name. A tag may give different names, the newest first, or make the
// function optional: `c:"cuMemFree_v2 cuMemFree" optional:"true"`.
func Symbols[T any](table *T) []Symbol {
	v := reflect.ValueOf(table).Elem()
	var all []Symbol
	for i := range v.NumField() {
		field := v.Type().Field(i)
		names := strings.Fields(cmp.Or(field.Tag.Get("c"), field.Name))
		all = append(all, Symbol{To: (*uintptr)(v.Field(i).Addr().UnsafePointer()), Names: names, Optional: field.Tag.Get("optional") == "true"})
	}
	return all
}

// Resolve finds the functions. oldest is the oldest driver that has all of them; the error names
// it.
func (l Library) Resolve(symbols []Symbol, oldest string) error {
	for _, s := range symbols {
		for _, name := range s.Names {
			if addr, err := purego.Dlsym(l.Handle, name); err == nil {
				*s.To = addr
				break
			}
		}
		if *s.To == 0 && !s.Optional {
			return fmt.Errorf("%s lacks %s: upgrade the NVIDIA driver to %s or newer", l.path, s.Names[0], oldest)
		}
	}
	return nil
}

// CString reads a NUL-terminated string out of a buffer that C filled.
func CString(buf []byte) string {
	if i := bytes.IndexByte(buf, 0); i >= 0 {
		buf = buf[:i]
	}
	return string(buf)
}

// GoString copies a string that a library owns. The limit protects against a missing terminator;
// the drivers' texts are far shorter.
func GoString(p *byte) string {
	const limit = 4096
	n := 0
	for n < limit && *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}
