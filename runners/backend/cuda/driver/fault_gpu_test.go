package driver

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"
)

const illegalEnv = "KERNELGATE_TEST_ILLEGAL_ADDRESS"

func TestGPUIllegalAddress(t *testing.T) {
	_, th := gpu(t)
	out := runChild(t, "TestGPUIllegalAddressChild", illegalEnv)
	t.Logf("the child said:\n%s", out)
	if err := th.Do((*Context).Synchronize); err != nil {
		t.Errorf("the child's fault reached its parent: %v", err)
	}
}

// TestGPUIllegalAddressChild runs in a child process, because the fault destroys the context of its
// process.
func TestGPUIllegalAddressChild(t *testing.T) {
	if os.Getenv(illegalEnv) == "" {
		t.Skip("runs as the child of TestGPUIllegalAddress")
	}
	d, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	th, err := dev.NewThread()
	if err != nil {
		t.Fatal(err)
	}
	err = th.Do(func(c *Context) error {
		m, err := c.LoadModule(kernelsPTX)
		if err != nil {
			return err
		}
		poke, err := m.Function("poke")
		if err != nil {
			return err
		}
		s, err := c.NewStream()
		if err != nil {
			return err
		}
		if err := poke.Launch(s, Launch{Grid: Dim{X: 1}, Block: Dim{X: 1}}, new(Args).Pointer(0x10)); err != nil {
			return err
		}
		err = s.Synchronize()
		t.Logf("the fault: %v", err)
		if _, again := c.Alloc(16); !errors.Is(again, IllegalAddress) {
			t.Errorf("the next call does not repeat the fault: %v", again)
		}
		return err
	})
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Code != IllegalAddress || !e.KernelFault() {
		t.Fatalf("got %v, want an illegal address", err)
	}
	const want = "waiting for the stream: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered"
	if err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	t.Logf("closing: %v", th.Close())
}

func TestGPUOutsideDo(t *testing.T) {
	_, th := gpu(t)
	var leaked *Context
	if err := th.Do(func(c *Context) error { leaked = c; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := leaked.NewStream(); !errors.Is(err, invalidContext) {
		t.Errorf("a context outside Do: %v", err)
	}
}

func TestGPUBadModules(t *testing.T) {
	_, th := gpu(t)
	within(t, th, func(c *Context, _ *Stream) error {
		broken := strings.Replace(string(kernelsPTX), "add.f32", "add.f33", 1)
		_, err := c.LoadModule([]byte(broken))
		t.Logf("broken PTX: %v", err)
		if !errors.Is(err, invalidPTX) || !strings.Contains(err.Error(), "\n") {
			t.Errorf("broken PTX gives no compiler message: %v", err)
		}
		_, err = c.LoadModule([]byte("neither PTX nor a cubin"))
		t.Logf("neither PTX nor a cubin: %v", err)
		if CodeOf(err) == success {
			t.Errorf("neither PTX nor a cubin: %v", err)
		}
		m, err := c.LoadModule(kernelsPTX)
		if err != nil {
			return err
		}
		if _, err := m.Function("vec_sub"); !errors.Is(err, NotFound) {
			t.Errorf("an unknown kernel: %v", err)
		}
		return m.Close()
	})
}

func TestGPUResources(t *testing.T) {
	dev, th := gpu(t)
	p, err := dev.Properties()
	if err != nil {
		t.Fatal(err)
	}
	within(t, th, func(c *Context, _ *Stream) error {
		v, err := newVecAdd(c, kernelsPTX, 256)
		if err != nil {
			return err
		}
		most := p.SharedPerBlockOptin
		if err := v.fn.AllowShared(most); err != nil {
			return err
		}
		if err := v.fn.AllowShared(10 * most); !errors.Is(err, invalidValue) {
			t.Errorf("too much shared memory: %v", err)
		}
		return nil
	})
}

func TestGPUClusters(t *testing.T) {
	dev, th := gpu(t)
	if can, err := dev.attribute(120 /* CLUSTER_LAUNCH */); err != nil || can == 0 {
		t.Skipf("this GPU has no clusters (%v)", err)
	}
	within(t, th, func(c *Context, s *Stream) error {
		m, err := c.LoadModule(clusterPTX)
		if err != nil {
			return err
		}
		f, err := m.Function("cluster_size")
		if err != nil {
			return err
		}
		const blocks = 16
		out, err := c.Alloc(4 * blocks)
		if err != nil {
			return err
		}
		for _, size := range []uint32{0, 1, 2, 4, 8} {
			l := Launch{Grid: Dim{X: blocks}, Block: Dim{X: 64}, Cluster: Dim{X: size}}
			got := make([]byte, 4*blocks)
			if err := errors.Join(s.Fill8(out, 0xFF), f.Launch(s, l, new(Args).Pointer(out.Ptr)), s.ToHost(got, out)); err != nil {
				return err
			}
			for i := range blocks {
				if n := binary.NativeEndian.Uint32(got[4*i:]); n != max(size, 1) {
					t.Errorf("block %d sees a cluster of %d, want %d", i, n, max(size, 1))
				}
			}
		}
		err = f.Launch(s, Launch{Grid: Dim{X: 48}, Block: Dim{X: 64}, Cluster: Dim{X: 24}}, new(Args).Pointer(out.Ptr))
		t.Logf("a cluster of 24: %v", err)
		if CodeOf(err) == success {
			t.Error("a cluster of 24 blocks was launched")
		}
		return m.Close()
	})
}

func TestGPUTensorMap(t *testing.T) {
	dev, th := gpu(t)
	if can, err := dev.attribute(127 /* TENSOR_MAP_ACCESS_SUPPORTED */); err != nil || can == 0 {
		t.Skipf("this GPU has no tensor maps (%v)", err)
	}
	within(t, th, func(c *Context, _ *Stream) error {
		b, err := c.Alloc(2048 * 128)
		if err != nil {
			return err
		}
		tile := TensorTile{Type: TensorFloat16, Base: b.Ptr, Dims: []uint64{64, 2048}, Strides: []uint64{128},
			Box: []uint32{64, 64}, Swizzle: Swizzle128B, Promotion: Promote128B}
		m, err := c.EncodeTensorMap(tile)
		if err != nil {
			return err
		}
		if m == (TensorMap{}) {
			t.Error("the descriptor is empty")
		}
		line := TensorTile{Type: TensorFloat32, Base: b.Ptr, Dims: []uint64{1024}, Box: []uint32{256}}
		if _, err := c.EncodeTensorMap(line); err != nil {
			t.Errorf("rank one: %v", err)
		}
		tile.Box = []uint32{64, 512}
		if _, err := c.EncodeTensorMap(tile); !errors.Is(err, invalidValue) {
			t.Errorf("a box of 512 rows: %v", err)
		}
		return c.Free(b)
	})
}
