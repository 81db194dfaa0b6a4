package driver

import (
	_ "embed"
	"testing"

	"github.com/ebitengine/purego"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/dynlib/fakelib"
)

//go:embed testdata/fakecuda.c
var fakeSource []byte

// Only TestMain writes to fakes.
var fakes = fakelib.Builder{Source: fakeSource}

func TestMain(m *testing.M) { fakes.Main(m) }

func compileFake(t testing.TB, flags ...string) string {
	t.Helper()
	return fakes.Compile(t, flags...)
}

// A fake is the opened fake driver, with extra functions that only tests use.
type fake struct {
	*Driver
	fail        func(name string, code, after int32)
	lastLaunch  func(*launchRecord)
	lastArgs    func(*[12]uint64)
	flags       func() int32
	retained    func() int32
	freed       func() int32
	captureMode func() int32
}

// launchRecord mirrors launch_record in the fake's source.
type launchRecord struct {
	Grid, Block, Cluster          [3]uint32
	Shared, Cooperative           uint32
	Programmatic, Priority        uint32
	Carveout, Unused              uint32
	Function, Stream, Count, Size uint64
	Params                        [512]byte
}

func openFake(t testing.TB, flags ...string) *fake {
	t.Helper()
	return openFakeAt(t, compileFake(t, flags...))
}

func openFakeAt(t testing.TB, lib string) *fake {
	t.Helper()
	d, err := openPath(lib)
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{Driver: d}
	purego.RegisterLibFunc(&f.fail, d.handle, "fake_fail")
	purego.RegisterLibFunc(&f.lastLaunch, d.handle, "fake_last_launch")
	purego.RegisterLibFunc(&f.lastArgs, d.handle, "fake_last_args")
	purego.RegisterLibFunc(&f.flags, d.handle, "fake_flags")
	purego.RegisterLibFunc(&f.retained, d.handle, "fake_retained")
	purego.RegisterLibFunc(&f.freed, d.handle, "fake_freed")
	purego.RegisterLibFunc(&f.captureMode, d.handle, "fake_capture_mode")
	return f
}

func (f *fake) thread(t testing.TB) *Thread {
	t.Helper()
	dev, err := f.Device(0)
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
	return th
}

// within runs fn with a context and a stream of the fake, or of a real GPU.
func within(t testing.TB, th *Thread, fn func(c *Context, s *Stream) error) {
	t.Helper()
	err := th.Do(func(c *Context) error {
		s, err := c.NewStream()
		if err != nil {
			return err
		}
		if err := fn(c, s); err != nil {
			return err
		}
		return s.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}
