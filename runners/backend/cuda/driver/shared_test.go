package driver

import (
	"testing"
)

// TestSharedMemory checks that one mapping reads what another mapping of the same memory wrote, at
// a different address.
func TestSharedMemory(t *testing.T) {
	f := openFake(t)
	within(t, f.thread(t), func(c *Context, s *Stream) error {
		mine, err := c.NewShared(100)
		if err != nil {
			return err
		}
		if mine.size != 2<<20 {
			t.Errorf("100 bytes became %d, not one granule", mine.size)
		}
		file, err := c.Export(mine)
		if err != nil {
			return err
		}
		defer file.Close()
		theirs, err := c.Import(file, mine.size)
		if err != nil {
			return err
		}
		a, err := c.Map(mine, 0)
		if err != nil {
			return err
		}
		const hint = 0x123400000000
		b, err := c.Map(theirs, hint)
		if err != nil {
			return err
		}
		if a.Ptr == b.Ptr || b.Ptr != hint {
			t.Errorf("mapped at %#x and %#x, asked for %#x", a.Ptr, b.Ptr, hint)
		}
		if err := s.ToDevice(a, []byte("handed over")); err != nil {
			return err
		}
		got := make([]byte, 11)
		if err := s.ToHost(got, b); err != nil {
			return err
		}
		if string(got) != "handed over" {
			t.Errorf("the other mapping reads %q", got)
		}
		return nil
	})
}

func TestSharedMemoryRefused(t *testing.T) {
	for _, name := range []string{"cuMemGetAllocationGranularity", "cuMemCreate", "cuMemExportToShareableHandle",
		"cuMemImportFromShareableHandle", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess"} {
		t.Run(name, func(t *testing.T) {
			f := openFake(t)
			within(t, f.thread(t), func(c *Context, s *Stream) error {
				f.fail(name, int32(OutOfMemory), 0)
				err := func() error {
					mine, err := c.NewShared(1)
					if err != nil {
						return err
					}
					file, err := c.Export(mine)
					if err != nil {
						return err
					}
					defer file.Close()
					theirs, err := c.Import(file, mine.size)
					if err != nil {
						return err
					}
					_, err = c.Map(theirs, 0)
					return err
				}()
				if CodeOf(err) != OutOfMemory {
					t.Errorf("got %v", err)
				}
				return nil
			})
		})
	}
}

func TestGlobal(t *testing.T) {
	f := openFake(t)
	within(t, f.thread(t), func(c *Context, s *Stream) error {
		m, err := c.LoadModule([]byte("code"))
		if err != nil {
			return err
		}
		b, err := m.Global("counter")
		if err != nil {
			return err
		}
		got := make([]byte, 4)
		if err := s.ToHost(got, b); err != nil {
			return err
		}
		if string(got) != "\x0d\x60\x00\x00" {
			t.Errorf("the variable holds %x", got)
		}
		if _, err := m.Global("nothing"); CodeOf(err) != NotFound {
			t.Errorf("a variable that is not there: %v", err)
		}
		return nil
	})
}
