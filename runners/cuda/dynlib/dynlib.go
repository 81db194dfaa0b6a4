// Package dynlib loads the shared libraries that the NVIDIA driver installs and
// finds functions in them, with messages for a host that lacks them. It calls
// none of the functions: what they take and return is their callers' business.
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

// ErrMissing says that this machine does not have the library.
var ErrMissing = errors.New("install the NVIDIA driver")

// A Library is a loaded one. It stays loaded for the life of the process: the
// driver's libraries start threads of their own and do not survive being
// unmapped.
type Library struct {
	Handle uintptr
	path   string
}

// Open loads a library by its path, or by its name from the loader's path.
// Without it the error is [ErrMissing].
func Open(path string) (Library, error) {
	// The loader keeps its message for the thread that asked.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		// The loader names the file it misses first: a library that is there but
		// lacks one of its own needs must not be reported as absent.
		if strings.HasPrefix(err.Error(), path+": cannot open shared object file: No such file") {
			return Library{}, fmt.Errorf("%s not found: %w", path, ErrMissing)
		}
		return Library{}, fmt.Errorf("loading %s: %w: repair the NVIDIA driver's installation", path, err)
	}
	return Library{handle, path}, nil
}

// A Symbol says where a function's address goes and what it is called in the
// library: the first name that is there wins. An optional one may be missing,
// and is zero then.
type Symbol struct {
	To       *uintptr
	Optional bool
	Names    []string
}

// Symbols are the fields of a struct, each of them the address of a function of the
// field's name. A tag may name it otherwise, the newest name first, or make it
// optional: `c:"cuMemFree_v2 cuMemFree" optional:"true"`.
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

// Resolve finds the functions. The oldest driver that has all of them is named
// to those whose driver has not.
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

// GoString copies a string that a library owns. The drivers' texts are far
// shorter than the limit, which is there against a missing terminator.
func GoString(p *byte) string {
	const limit = 4096
	n := 0
	for n < limit && *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}
