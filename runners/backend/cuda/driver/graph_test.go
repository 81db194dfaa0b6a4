package driver

import (
	"errors"
	"testing"
	"time"
)

// capture32 records the addition as 32 launches, each on one 32nd of the buffers.
func capture32(v *vecAdd, s *Stream) (*Graph, error) {
	return s.Capture(func() error {
		part := int64(v.out.Size / 32)
		for i := range int64(32) {
			args := new(Args).
				Pointer(v.out.Slice(i*part, part).Ptr).
				Pointer(v.a.Slice(i*part, part).Ptr).
				Pointer(v.b.Slice(i*part, part).Ptr).
				Int32(int32(part / 4))
			if err := v.fn.Launch(s, Launch{Grid: Dim{X: uint32(part/4+255) / 256}, Block: Dim{X: 256}}, args); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestGraph(t *testing.T) {
	f := openFake(t)
	within(t, f.thread(t), func(c *Context, s *Stream) error {
		v, err := newVecAdd(c, []byte("image"), 320)
		if err != nil {
			return err
		}
		if err := v.fill(s, 1); err != nil {
			return err
		}
		freed := f.freed()
		g, err := capture32(v, s)
		if err != nil {
			return err
		}
		if g.nodes != 32 {
			t.Errorf("the graph has %d nodes", g.nodes)
		}
		if got := f.captureMode(); got != 1 {
			t.Errorf("capture mode %d, want thread-local", got)
		}
		if got := f.freed() - freed; got != 1 {
			t.Errorf("the captured template was destroyed %d times", got)
		}
		if bad, err := v.wrong(s, 1); err != nil || bad != 320 {
			t.Errorf("capturing ran the kernels: %d of 320 wrong, %v", bad, err)
		}
		start, end, err := twoEvents(c)
		if err != nil {
			return err
		}
		for _, base := range []float32{1, 50} {
			if err := v.fill(s, base); err != nil {
				return err
			}
			if err := errors.Join(g.Upload(s), start.Record(s), g.Launch(s), end.Record(s), s.Synchronize()); err != nil {
				return err
			}
			if bad, err := v.wrong(s, base); err != nil || bad != 0 {
				t.Errorf("%d of 320 are wrong, %v", bad, err)
			}
			if got, err := end.Since(start); err != nil || got != 400*time.Microsecond {
				t.Errorf("32 launches of 12.5 µs took %v, %v", got, err)
			}
		}
		return g.Close()
	})
}

func TestCaptureFailure(t *testing.T) {
	f := openFake(t)
	within(t, f.thread(t), func(c *Context, s *Stream) error {
		boom := errors.New("no more inputs")
		freed := f.freed()
		if _, err := s.Capture(func() error { return boom }); !errors.Is(err, boom) {
			t.Errorf("a failing function: %v", err)
		}
		if got := f.freed() - freed; got != 1 {
			t.Errorf("the unused template was destroyed %d times", got)
		}
		_, err := s.Capture(s.Synchronize)
		if !errors.Is(err, streamCaptureUnsupported) || !errors.Is(err, streamCaptureInvalidated) {
			t.Errorf("waiting inside a capture: %v", err)
		}
		f.fail("cuGraphInstantiateWithFlags", int32(OutOfMemory), 0)
		if _, err := s.Capture(func() error { return nil }); !errors.Is(err, OutOfMemory) {
			t.Errorf("a graph that cannot be made: %v", err)
		}
		return s.Synchronize() // the stream is usable again
	})
}
