package driver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOpenWithoutTheLibrary(t *testing.T) {
	_, err := OpenPath("libcuda-that-is-not-there.so.1")
	const want = "libcuda-that-is-not-there.so.1 not found: install the NVIDIA driver, or use --runner cpu"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if !errors.Is(err, ErrNoDriver) {
		t.Error("the error is not ErrNoDriver")
	}
}

func TestOpenOnThisMachine(t *testing.T) {
	_, err := Open()
	if err == nil || !errors.Is(err, ErrNoDriver) {
		t.Skipf("this machine has a CUDA driver (%v)", err)
	}
	const want = "libcuda.so.1 not found: install the NVIDIA driver, or use --runner cpu"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestOpenBadLibraries(t *testing.T) {
	text := filepath.Join(t.TempDir(), "libcuda.so.1")
	if err := os.WriteFile(text, []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, want string }{
		"not a library":     {text, "repair the NVIDIA driver's installation, or use --runner cpu"},
		"some other one":    {"libc.so.6", "libc.so.6 lacks cuInit: upgrade the NVIDIA driver"},
		"a missing symlink": {text + ".gone", "not found: install the NVIDIA driver"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := OpenPath(c.path)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %q in it", err, c.want)
			}
		})
	}
}

func TestOpenWithoutAGPU(t *testing.T) {
	lib := compileFake(t)
	openFakeAt(t, lib).fail("cuInit", int32(NoDevice), 0)
	_, err := OpenPath(lib)
	const want = "initialising CUDA: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected; " +
		"check that nvidia-smi lists a GPU and that CUDA_VISIBLE_DEVICES does not hide it, or use --runner cpu"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}
