package driver

import (
	"bytes"
	"testing"
)

func TestMemory(t *testing.T) {
	f := openFake(t)
	within(t, f.thread(t), func(c *Context, s *Stream) error {
		b, err := c.Alloc(16)
		if err != nil {
			return err
		}
		src := []byte("sixteen bytes, 1")
		if err := s.ToDevice(b, src); err != nil {
			return err
		}
		if err := s.Fill8(b.Slice(8, 2), 0xFF); err != nil {
			return err
		}
		if err := s.Fill32(b.Slice(12, 4), 0x7E007E00); err != nil {
			return err
		}
		if err := s.CopyDevice(b.Slice(10, 2), b.Slice(0, 2)); err != nil {
			return err
		}
		got := make([]byte, 16)
		if err := s.ToHost(got, b); err != nil {
			return err
		}
		if want := []byte("sixteen \xff\xffsi\x00\x7e\x00\x7e"); !bytes.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}

		before := f.freed()
		if err := c.Free(b); err != nil {
			return err
		}
		if got := f.freed() - before; got != 1 {
			t.Errorf("%d allocations were given back", got)
		}
		return nil
	})
}

func TestMemoryRefuses(t *testing.T) {
	f := openFake(t)
	within(t, f.thread(t), func(c *Context, s *Stream) error {
		b, err := c.Alloc(6)
		if err != nil {
			return err
		}
		for name, err := range map[string]error{
			"a longer source":   s.ToDevice(b, make([]byte, 7)),
			"a longer target":   s.ToHost(make([]byte, 7), b),
			"a longer device":   s.CopyDevice(b.Slice(0, 5), b),
			"words and a rest":  s.Fill32(b, 1),
			"a failed transfer": func() error { f.fail("cuMemcpyHtoDAsync_v2", 700, 0); return s.ToDevice(b, []byte{1}) }(),
			"no memory":         func() error { f.fail("cuMemAlloc_v2", 2, 0); _, err := c.Alloc(1 << 40); return err }(),
		} {
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		defer func() {
			if recover() == nil {
				t.Error("a slice beyond the end did not panic")
			}
		}()
		b.Slice(4, 3)
		return nil
	})
}

func TestResetPersistingL2(t *testing.T) {
	within(t, openFake(t).thread(t), func(c *Context, _ *Stream) error { return c.ResetPersistingL2() })
}
