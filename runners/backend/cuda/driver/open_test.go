package driver

import (
	"errors"
	"testing"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/dynlib"
)

func TestOpenOnThisMachine(t *testing.T) {
	_, err := Open()
	if err == nil || !errors.Is(err, dynlib.ErrMissing) {
		t.Skipf("this machine has a CUDA driver (%v)", err)
	}
	const want = "libcuda.so.1 not found: install the NVIDIA driver"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestOpenWithoutAGPU(t *testing.T) {
	lib := compileFake(t)
	openFakeAt(t, lib).fail("cuInit", int32(noDevice), 0)
	_, err := openPath(lib)
	const want = "initialising CUDA: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected; " +
		"check that nvidia-smi lists a GPU and that CUDA_VISIBLE_DEVICES does not hide it"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}
