package dynlib

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestOpen(t *testing.T) {
	text := filepath.Join(t.TempDir(), "libcuda.so.1")
	if err := os.WriteFile(text, []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path, says string
		missing          bool
	}{
		{"not there", "lib-that-is-not-there.so.1", "lib-that-is-not-there.so.1 not found: install the NVIDIA driver", true},
		{"a link to nowhere", text + ".gone", ".gone not found: install the NVIDIA driver", true},
		{"not a library", text, "repair the NVIDIA driver's installation", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(c.path)
			if err == nil || !strings.HasSuffix(err.Error(), c.says) || errors.Is(err, ErrMissing) != c.missing {
				t.Errorf("got  %v\nwant %s", err, c.says)
			}
		})
	}
}

func TestResolve(t *testing.T) {
	l, err := Open("libc.so.6")
	if err != nil {
		t.Skip("no libc.so.6:", err)
	}
	var first, second, none uintptr
	err = l.Resolve([]Symbol{
		{To: &first, Names: []string{"printf"}},
		{To: &second, Names: []string{"printf_v9", "printf"}},
		{To: &none, Names: []string{"printf_v9"}, Optional: true},
	}, "525")
	if err != nil || first == 0 || second != first || none != 0 {
		t.Errorf("%v: %#x, %#x and %#x", err, first, second, none)
	}
	const want = "libc.so.6 lacks cuInit: upgrade the NVIDIA driver to 525 (CUDA 12.0) or newer"
	if err := l.Resolve([]Symbol{{To: &none, Names: []string{"cuInit"}}}, "525 (CUDA 12.0)"); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestStrings(t *testing.T) {
	buf := []byte("driver\x00rest")
	if got := CString(buf); got != "driver" {
		t.Errorf("CString: %q", got)
	}
	if got := CString([]byte("full")); got != "full" {
		t.Errorf("CString without an end: %q", got)
	}
	if got := GoString(&buf[0]); got != "driver" {
		t.Errorf("GoString: %q", got)
	}
}

// TestOpenByMany checks that the loader's message, which is kept per thread, is not lost if the
// goroutine moves to another thread between the failure and the query for its reason.
func TestOpenByMany(t *testing.T) {
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for range 200 {
				if _, err := Open("libnowhere.so.1"); !errors.Is(err, ErrMissing) {
					t.Errorf("got %v", err)
					return
				}
			}
		})
	}
	all.Wait()
}
