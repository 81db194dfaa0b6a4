package driver

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestMemory(t *testing.T) {
	f := openFake(t)
	within(t, f.thread(t), func(c *Context, s *Stream) error {
		if free, total, err := c.MemoryInfo(); err != nil || free != 11 || total != 141<<30 {
			t.Errorf("memory %d of %d, %v", free, total, err)
		}
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

		h, err := c.AllocHost(32)
		if err != nil {
			return err
		}
		copy(h.Bytes(), strings.Repeat("host", 8))
		if err := s.ToDeviceAsync(b, h.Slice(4, 16)); err != nil {
			return err
		}
		if err := s.ToHostAsync(h.Slice(16, 16), b.Slice(0, 16)); err != nil {
			return err
		}
		if err := s.Synchronize(); err != nil {
			return err
		}
		if got := string(h.Bytes()); got != strings.Repeat("host", 8) {
			t.Errorf("through page-locked memory: %q", got)
		}

		before := f.freed()
		if err := errors.Join(c.FreeHost(h), c.Free(b)); err != nil {
			return err
		}
		if got := f.freed() - before; got != 2 {
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
			"an unknown limit":  c.SetLimit(99, 1),
			"a limit to read":   func() error { _, err := c.Limit(99); return err }(),
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

func TestLimits(t *testing.T) {
	within(t, openFake(t).thread(t), func(c *Context, _ *Stream) error {
		if err := c.SetLimit(LimitPersistingL2, 5<<32); err != nil {
			return err
		}
		if got, err := c.Limit(LimitPersistingL2); err != nil || got != 5<<32 {
			t.Errorf("the limit reads %d, %v", got, err)
		}
		return c.ResetPersistingL2()
	})
}
