package driver

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestModule(t *testing.T) {
	f := openFake(t)
	within(t, f.thread(t), func(c *Context, _ *Stream) error {
		if _, err := c.LoadModule(nil); err == nil {
			t.Error("an empty image was loaded")
		}
		_, err := c.LoadModule([]byte("bad ptxas: line 3, syntax error"))
		if !errors.Is(err, invalidPTX) || !strings.HasSuffix(err.Error(), "\nptxas: line 3, syntax error") {
			t.Errorf("bad PTX: %v", err)
		}
		m, err := c.LoadModule([]byte("image"))
		if err != nil {
			return err
		}
		if _, err := m.Function("vec_sub"); !errors.Is(err, NotFound) || !strings.HasPrefix(err.Error(), "finding kernel vec_sub: ") {
			t.Errorf("an unknown kernel: %v", err)
		}
		fn, err := m.Function("vec_add")
		if err != nil {
			return err
		}
		params, known := fn.params, fn.known
		if diff := cmp.Diff([]Param{{0, 8}, {8, 8}, {16, 8}, {24, 4}}, params); diff != "" || !known {
			t.Errorf("known %v, parameters (-want +got):\n%s", known, diff)
		}
		if err := fn.AllowShared(227 << 10); err != nil {
			return err
		}
		f.fail("cuFuncSetAttribute", int32(invalidValue), 0)
		if err := fn.AllowShared(1 << 30); !errors.Is(err, invalidValue) || !strings.Contains(err.Error(), "allowing kernel vec_add 1073741824 bytes") {
			t.Errorf("too much shared memory: %v", err)
		}
		return m.Close()
	})
}

func TestTensorMap(t *testing.T) {
	f := openFake(t)
	within(t, f.thread(t), func(c *Context, _ *Stream) error {
		tile := TensorTile{
			Type:      TensorBFloat16,
			Base:      0x7FFF_0000_0010,
			Dims:      []uint64{64, 2048, 5 << 32},
			Strides:   []uint64{128, 1 << 39},
			Box:       []uint32{64, 128, 3},
			Swizzle:   Swizzle128B,
			Promotion: Promote256B,
			NaNFill:   true,
		}
		m, err := c.EncodeTensorMap(tile)
		if err != nil {
			return err
		}
		if m[0] != 0x5A || m[126] != 0x5A || m[127] != 0x5B {
			t.Errorf("the descriptor is not what the driver wrote: % x", m)
		}
		var got [12]uint64
		f.lastArgs(&got)
		want := [12]uint64{9, 3, 0x7FFF_0000_0010, 5 << 32, 1 << 39, 3, 1, 0, 3, 3, 1}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("arguments (-want +got):\n%s", diff)
		}

		line := TensorTile{Type: TensorFloat32, Base: 16, Dims: []uint64{1024}, Box: []uint32{256}}
		if _, err := c.EncodeTensorMap(line); err != nil {
			t.Errorf("rank one: %v", err)
		}
		for name, bad := range map[string]TensorTile{
			"no dimension":   {},
			"six dimensions": {Dims: make([]uint64, 6), Strides: make([]uint64, 5), Box: make([]uint32, 6)},
			"strides":        {Dims: []uint64{1, 2}, Box: []uint32{1, 1}},
			"box":            {Dims: []uint64{1, 2}, Strides: []uint64{16}, Box: []uint32{1}},
		} {
			if _, err := c.EncodeTensorMap(bad); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		return nil
	})
}

func TestOldDriver(t *testing.T) {
	within(t, openFake(t, "-DFAKE_OLD").thread(t), func(c *Context, s *Stream) error {
		v, err := newVecAdd(c, []byte("image"), 8)
		if err != nil {
			return err
		}
		if v.fn.known {
			t.Error("an old driver cannot know the parameters")
		}
		if err := errors.Join(v.fill(s, 0), v.fn.Launch(s, v.shape(), v.args())); err != nil {
			return err
		}
		if bad, err := v.wrong(s, 0); err != nil || bad != 0 {
			t.Errorf("%d of 8 are wrong, %v", bad, err)
		}
		clustered := v.shape()
		clustered.Cluster = Dim{X: 1}
		err = v.fn.Launch(s, clustered, v.args())
		if !errors.Is(err, notSupported) || !strings.Contains(err.Error(), "this driver has no cuLaunchKernelEx: upgrade the NVIDIA driver") {
			t.Errorf("clusters: %v", err)
		}
		_, err = c.EncodeTensorMap(TensorTile{Dims: []uint64{1}, Box: []uint32{1}})
		if !errors.Is(err, notSupported) {
			t.Errorf("a tensor map: %v", err)
		}
		e, err := c.NewEvent()
		if err != nil {
			return err
		}
		if got, err := e.Since(e); err != nil || got.Seconds() != 1 {
			t.Errorf("the first version of the elapsed time gives %v, %v", got, err)
		}
		return e.Close()
	})
}
