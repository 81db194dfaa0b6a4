package driver

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/nvml"
)

// These tests need a GPU and are skipped without one. Built with
//
//	CGO_ENABLED=0 go test -c
//
// they run on a machine that has neither Go nor the source tree.

//go:embed testdata/kernels.ptx
var kernelsPTX []byte

//go:embed testdata/cluster.ptx
var clusterPTX []byte

// gpu opens the first GPU, or skips the test.
func gpu(t *testing.T) (Device, *Thread) {
	t.Helper()
	d, err := Open()
	if err != nil {
		t.Skipf("no GPU to test on: %v", err)
	}
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	th, err := dev.NewThread()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := th.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev, th
}

func TestGPUProperties(t *testing.T) {
	dev, _ := gpu(t)
	v, err := dev.d.Version()
	if err != nil {
		t.Fatal(err)
	}
	p, err := dev.Properties()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("CUDA %s, %s\n%+v", v, p.UUID, p)
	if p.ComputeMajor < 7 || p.SMs < 1 || p.L2Bytes < 1<<20 || p.TotalMemory < 1<<30 || p.SharedPerBlockOptin < 48<<10 {
		t.Error("these are not the figures of a GPU")
	}

	l, err := nvml.Open()
	if err != nil {
		t.Fatal(err)
	}
	same, err := l.DeviceByPCI(p.PCIBusID)
	if err != nil {
		t.Fatal(err)
	}
	if name, err := same.Name(); err != nil || name != p.Name {
		t.Errorf("NVML finds %q by %s, CUDA calls it %q, %v", name, same, p.Name, err)
	}
	sm, err1 := same.Clock(nvml.SMClock)
	mem, err2 := same.Clock(nvml.MemoryClock)
	reasons, err3 := same.Reasons()
	celsius, err4 := same.Temperature()
	watts, err5 := same.Power()
	users, err6 := same.Processes()
	t.Logf("NVML: SM %d MHz (%v), memory %d MHz (%v), %s (%v), %d °C (%v), %.1f W (%v), users %+v (%v)",
		sm, err1, mem, err2, reasons, err3, celsius, err4, watts, err5, users, err6)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestGPUVecAdd(t *testing.T) {
	_, th := gpu(t)
	within(t, th, func(c *Context, s *Stream) error {
		const n = 1<<20 + 7
		v, err := newVecAdd(c, kernelsPTX, n)
		if err != nil {
			return err
		}
		params, known := v.fn.params, v.fn.known
		t.Logf("the driver knows the parameters: %v %v", known, params)
		if known && !cmp.Equal(params, []Param{{0, 8}, {8, 8}, {16, 8}, {24, 4}}) {
			t.Errorf("parameters %v", params)
		}
		start, end, err := twoEvents(c)
		if err != nil {
			return err
		}
		for round := range 3 {
			base := float32(round)
			if err := v.fill(s, base); err != nil {
				return err
			}
			if bad, err := v.wrong(s, base); err != nil || bad != n {
				t.Errorf("before the launch %d of %d are wrong, %v", bad, n, err)
			}
			if err := errors.Join(c.ResetPersistingL2(), start.Record(s),
				v.fn.Launch(s, v.shape(), v.args()), end.Record(s), s.Synchronize()); err != nil {
				return err
			}
			took, err := end.Since(start)
			if err != nil || took <= 0 || took > time.Second {
				t.Errorf("the launch took %v, %v", took, err)
			}
			t.Logf("%d elements in %v", n, took)
			if bad, err := v.wrong(s, base); err != nil || bad != 0 {
				t.Errorf("%d of %d are wrong, %v", bad, n, err)
			}
		}
		if done, err := s.Done(); err != nil || !done {
			t.Errorf("the stream is done: %v, %v", done, err)
		}
		return nil
	})
}

// TestGPUHostCost measures what one call costs the host. This cost decides whether the GPU ever
// waits for the host.
func TestGPUHostCost(t *testing.T) {
	_, th := gpu(t)
	within(t, th, func(c *Context, s *Stream) error {
		v, err := newVecAdd(c, kernelsPTX, 256)
		if err != nil {
			return err
		}
		args := v.args()
		e, err := c.NewEvent()
		if err != nil {
			return err
		}
		for name, call := range map[string]func() error{
			"launch": func() error { return v.fn.Launch(s, v.shape(), args) },
			"record": func() error { return e.Record(s) },
		} {
			const n = 500
			began := time.Now()
			for range n {
				if err := call(); err != nil {
					return err
				}
			}
			t.Logf("%s: %v a call", name, time.Since(began)/n)
			if err := s.Synchronize(); err != nil {
				return err
			}
		}
		return e.Close()
	})
}

func TestGPUGraph(t *testing.T) {
	_, th := gpu(t)
	within(t, th, func(c *Context, s *Stream) error {
		const n = 32 * 4096
		v, err := newVecAdd(c, kernelsPTX, n)
		if err != nil {
			return err
		}
		g, err := capture32(v, s)
		if err != nil {
			return err
		}
		if g.nodes != 32 {
			t.Errorf("the graph has %d nodes", g.nodes)
		}
		if err := g.Upload(s); err != nil {
			return err
		}
		start, end, err := twoEvents(c)
		if err != nil {
			return err
		}
		for round := range 3 {
			base := float32(round)
			if err := v.fill(s, base); err != nil {
				return err
			}
			if err := errors.Join(start.Record(s), g.Launch(s), end.Record(s), s.Synchronize()); err != nil {
				return err
			}
			took, err := end.Since(start)
			t.Logf("32 launches in %v, %v", took, err)
			if bad, err := v.wrong(s, base); err != nil || bad != 0 {
				t.Errorf("%d of %d are wrong, %v", bad, n, err)
			}
		}
		// Waiting inside a capture must fail and leave the stream usable.
		if _, err := s.Capture(s.Synchronize); !errors.Is(err, streamCaptureUnsupported) {
			t.Errorf("waiting inside a capture: %v", err)
		}
		return errors.Join(g.Close(), s.Synchronize())
	})
}

func TestGPUMemory(t *testing.T) {
	_, th := gpu(t)
	within(t, th, func(c *Context, s *Stream) error {
		b, err := c.Alloc(64)
		if err != nil {
			return err
		}
		h := bytes.Repeat([]byte("host"), 16)
		err = errors.Join(s.ToDevice(b, h), s.Fill8(b.Slice(0, 16), 0xFF), s.Fill32(b.Slice(16, 16), 0x7E007E00),
			s.CopyDevice(b.Slice(48, 16), b.Slice(0, 16)), s.ToHost(h, b))
		if err != nil {
			return err
		}
		ff := bytes.Repeat([]byte{0xFF}, 16)
		want := bytes.Join([][]byte{ff, bytes.Repeat([]byte{0x00, 0x7E}, 8), bytes.Repeat([]byte("host"), 4), ff}, nil)
		if !bytes.Equal(h, want) {
			t.Errorf("got  %q\nwant %q", h, want)
		}
		if _, err := c.Alloc(1 << 50); !errors.Is(err, OutOfMemory) {
			t.Errorf("a petabyte: %v", err)
		}
		return c.Free(b)
	})
}

func TestGPUParameters(t *testing.T) {
	_, th := gpu(t)
	within(t, th, func(c *Context, s *Stream) error {
		m, err := c.LoadModule(kernelsPTX)
		if err != nil {
			return err
		}
		dump, err := m.Function("dump")
		if err != nil {
			return err
		}
		var block TensorMap
		for i := range block {
			block[i] = byte(7 * i)
		}
		want := binary.NativeEndian.AppendUint32(nil, 0xFFFFFFFB)
		want = binary.NativeEndian.AppendUint32(want, math.Float32bits(1.25))
		want = binary.NativeEndian.AppendUint64(want, math.Float64bits(-0.1))
		want = append(want, block[:]...)
		out, err := c.Alloc(int64(len(want)))
		if err != nil {
			return err
		}
		one := Launch{Grid: Dim{X: 1}, Block: Dim{X: 1}}
		args := new(Args).Pointer(out.Ptr).Int32(-5).Int32(int32(math.Float32bits(1.25))).Uint64(math.Float64bits(-0.1)).TensorMap(block)
		got := make([]byte, len(want))
		if err := errors.Join(dump.Launch(s, one, args), s.ToHost(got, out)); err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			t.Errorf("got  %x\nwant %x", got, want)
		}
		if dump.known {
			err := dump.Launch(s, one, new(Args).Pointer(out.Ptr))
			if err == nil || !strings.Contains(err.Error(), "the kernel takes 5 parameters and 1 were given") {
				t.Errorf("too few parameters: %v", err)
			}
		}
		nothing, err := m.Function("nothing")
		if err != nil {
			return err
		}
		return errors.Join(nothing.Launch(s, one, new(Args)), s.Synchronize(), m.Close())
	})
}

// runChild runs one test of this binary in a separate process.
func runChild(t *testing.T, test, env string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), env+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+test) {
		t.Errorf("%s in a process of its own: %v\n%s", test, err, out)
	}
	return string(out)
}
