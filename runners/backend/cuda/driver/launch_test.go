package driver

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func floats(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.NativeEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func floatAt(b []byte, i int) float32 {
	return math.Float32frombits(binary.NativeEndian.Uint32(b[4*i:]))
}

// vecAdd is the kernel out[i] = a[i] + b[i] with its buffers, of the fake or of the PTX in the GPU
// tests.
type vecAdd struct {
	fn        *Function
	out, a, b Buffer
	n         int
}

func newVecAdd(c *Context, image []byte, n int) (*vecAdd, error) {
	m, err := c.LoadModule(image)
	if err != nil {
		return nil, err
	}
	v := &vecAdd{n: n}
	if v.fn, err = m.Function("vec_add"); err != nil {
		return nil, err
	}
	for _, b := range []*Buffer{&v.out, &v.a, &v.b} {
		if *b, err = c.Alloc(int64(4 * n)); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (v *vecAdd) args() *Args {
	return new(Args).Pointer(v.out.Ptr).Pointer(v.a.Ptr).Pointer(v.b.Ptr).Int32(int32(v.n))
}

func (v *vecAdd) shape() Launch {
	return Launch{Grid: Dim{X: uint32(v.n+255) / 256}, Block: Dim{X: 256}}
}

// fill uploads a[i] = i + base and b[i] = 2i, and overwrites the output.
func (v *vecAdd) fill(s *Stream, base float32) error {
	a, b := make([]float32, v.n), make([]float32, v.n)
	for i := range a {
		a[i], b[i] = float32(i)+base, float32(2*i)
	}
	return errors.Join(s.ToDevice(v.a, floats(a...)), s.ToDevice(v.b, floats(b...)), s.Fill8(v.out, 0xFF))
}

// wrong counts the elements that are not 3i + base.
func (v *vecAdd) wrong(s *Stream, base float32) (int, error) {
	got := make([]byte, 4*v.n)
	if err := s.ToHost(got, v.out); err != nil {
		return 0, err
	}
	bad := 0
	for i := range v.n {
		if floatAt(got, i) != float32(3*i)+base {
			bad++
		}
	}
	return bad, nil
}

func twoEvents(c *Context) (start, end *Event, err error) {
	if start, err = c.NewEvent(); err != nil {
		return nil, nil, err
	}
	end, err = c.NewEvent()
	return start, end, err
}

func TestLaunchComputes(t *testing.T) {
	within(t, openFake(t).thread(t), func(c *Context, s *Stream) error {
		v, err := newVecAdd(c, []byte("image"), 1000)
		if err != nil {
			return err
		}
		if err := v.fill(s, 7); err != nil {
			return err
		}
		if bad, err := v.wrong(s, 7); err != nil || bad != 1000 {
			t.Errorf("before the launch %d of 1000 are wrong, %v", bad, err)
		}
		if err := v.fn.Launch(s, v.shape(), v.args()); err != nil {
			return err
		}
		if bad, err := v.wrong(s, 7); err != nil || bad != 0 {
			t.Errorf("%d of 1000 are wrong, %v", bad, err)
		}
		return nil
	})
}

func TestLaunchArguments(t *testing.T) {
	f := openFake(t)
	within(t, f.thread(t), func(c *Context, s *Stream) error {
		m, err := c.LoadModule([]byte("image"))
		if err != nil {
			return err
		}
		fn, err := m.Function("every_kind")
		if err != nil {
			return err
		}
		var tm TensorMap
		for i := range tm {
			tm[i] = byte(255 - i)
		}
		args := new(Args).Pointer(0x7FFF_0000_1234).Int32(-5).Int32(6).Uint64(^uint64(6)).Uint64(8).
			Int32(0x3f000000).Uint64(0x3fd0000000000000).Bytes([]byte{0x00, 0x3C}, 2).TensorMap(tm)
		params := "34120000ff7f0000 fbffffff 06000000 f9ffffffffffffff 0800000000000000" +
			"0000003f 000000000000d03f 003c" + hex.EncodeToString(tm[:])
		for name, l := range map[string]Launch{
			"three dimensions": {Grid: Dim{11, 12, 13}, Block: Dim{21, 22, 23}, Shared: 99 << 10},
			"one dimension":    {Grid: Dim{X: 4_000_000_000}, Block: Dim{X: 1024}},
			"clusters":         {Grid: Dim{8, 6, 4}, Block: Dim{32, 2, 3}, Shared: 200 << 10, Cluster: Dim{4, 3, 2}},
			"flat clusters":    {Grid: Dim{X: 8}, Block: Dim{X: 32}, Cluster: Dim{X: 2}},
			"cooperative":      {Grid: Dim{X: 8}, Block: Dim{X: 32}, Shared: 4, Cooperative: true},
			"programmatic":     {Grid: Dim{X: 8}, Block: Dim{X: 32}, Programmatic: true, Priority: -2, Carveout: new(100)},
			"both":             {Grid: Dim{X: 8}, Block: Dim{X: 32}, Cluster: Dim{X: 2}, Cooperative: true},
		} {
			if err := fn.Launch(s, l, args); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			want := launchRecord{
				Grid:     [3]uint32{l.Grid.X, max(l.Grid.Y, 1), max(l.Grid.Z, 1)},
				Block:    [3]uint32{l.Block.X, max(l.Block.Y, 1), max(l.Block.Z, 1)},
				Shared:   uint32(l.Shared),
				Function: uint64(fn.handle),
				Stream:   uint64(s.handle),
				Count:    9,
			}
			if l.Cooperative {
				want.Cooperative = 1
			}
			if l.Programmatic {
				want.Programmatic, want.Priority, want.Carveout = 1, 1<<32-2, 100
			}
			if l.Cluster.X > 0 {
				want.Cluster = [3]uint32{l.Cluster.X, max(l.Cluster.Y, 1), max(l.Cluster.Z, 1)}
			}
			raw, err := hex.DecodeString(strings.ReplaceAll(params, " ", ""))
			if err != nil {
				return err
			}
			want.Size = uint64(copy(want.Params[:], raw))
			var got launchRecord
			f.lastLaunch(&got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if n, err := fn.BlocksAtOnce(l); err != nil || n != 2048/int(want.Block[0]*want.Block[1]*want.Block[2])-l.Shared>>16 {
				t.Errorf("%s: %d blocks at once, %v", name, n, err)
			}
		}

		none, err := m.Function("no_params")
		if err != nil {
			return err
		}
		return none.Launch(s, Launch{Grid: Dim{X: 1}, Block: Dim{X: 1}}, new(Args))
	})
}

func TestLaunchRefuses(t *testing.T) {
	f := openFake(t)
	within(t, f.thread(t), func(c *Context, s *Stream) error {
		v, err := newVecAdd(c, []byte("image"), 8)
		if err != nil {
			return err
		}
		err = v.fn.Launch(s, v.shape(), new(Args).Pointer(1).Pointer(2).Int32(3).Int32(4))
		if err == nil || !strings.HasPrefix(err.Error(), "launching vec_add: parameter 2 is 4 bytes and the kernel declares 8") {
			t.Errorf("a wrong parameter: %v", err)
		}
		f.fail("cuLaunchKernel", 700, 0)
		err = v.fn.Launch(s, v.shape(), v.args())
		const want = "launching vec_add: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered"
		if err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
		return nil
	})
}

// TestLaunchUnderGarbageCollection runs the garbage collector all the time, and the stack grows
// between the launches. A parameter that moved or was freed would show as a wrong sum.
func TestLaunchUnderGarbageCollection(t *testing.T) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	within(t, openFake(t).thread(t), func(c *Context, s *Stream) error {
		v, err := newVecAdd(c, []byte("image"), 16)
		if err != nil {
			return err
		}
		for i := range 100 {
			base := float32(i)
			if err := v.fill(s, base); err != nil {
				return err
			}
			if err := v.fn.Launch(s, v.shape(), v.args()); err != nil {
				return err
			}
			if bad, err := v.wrong(s, base); err != nil || bad != 0 {
				return fmt.Errorf("launch %d: %d of 16 are wrong, %w", i, bad, err)
			}
		}
		return nil
	})
}

func TestEvents(t *testing.T) {
	f := openFake(t)
	within(t, f.thread(t), func(c *Context, s *Stream) error {
		v, err := newVecAdd(c, []byte("image"), 8)
		if err != nil {
			return err
		}
		start, end, err := twoEvents(c)
		if err != nil {
			return err
		}
		err = errors.Join(start.Record(s),
			v.fn.Launch(s, v.shape(), v.args()), v.fn.Launch(s, v.shape(), v.args()), v.fn.Launch(s, v.shape(), v.args()),
			end.Record(s), s.Synchronize())
		if err != nil {
			return err
		}
		if got, err := end.Since(start); err != nil || got != 37500*time.Nanosecond {
			t.Errorf("three launches of 12.5 µs took %v, %v", got, err)
		}
		if done, err := s.Done(); err != nil || !done {
			t.Errorf("done: %v, %v", done, err)
		}
		f.fail("cuStreamQuery", int32(notReady), 0)
		if done, err := s.Done(); err != nil || done {
			t.Errorf("not ready: %v, %v", done, err)
		}
		f.fail("cuStreamQuery", int32(IllegalAddress), 0)
		if _, err := s.Done(); !errors.Is(err, IllegalAddress) {
			t.Errorf("after a fault: %v", err)
		}
		return errors.Join(start.Close(), end.Close())
	})
}

// BenchmarkTimedLaunch measures the host's cost of event, launch, event: what a timed launch costs
// in addition to the driver's work.
func BenchmarkTimedLaunch(b *testing.B) {
	within(b, openFake(b).thread(b), func(c *Context, s *Stream) error {
		v, err := newVecAdd(c, []byte("image"), 1)
		if err != nil {
			return err
		}
		start, end, err := twoEvents(c)
		if err != nil {
			return err
		}
		args := v.args()
		b.ReportAllocs()
		for b.Loop() {
			if err := errors.Join(start.Record(s), v.fn.Launch(s, v.shape(), args), end.Record(s)); err != nil {
				return err
			}
		}
		return nil
	})
}
