package nvml

import (
	_ "embed"
	"testing"

	"github.com/ebitengine/purego"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/dynlib/fakelib"
)

//go:embed testdata/fakenvml.c
var fakeSource []byte

// Only TestMain writes to fakes.
var fakes = fakelib.Builder{Source: fakeSource}

func TestMain(m *testing.M) { fakes.Main(m) }

func compileFake(t *testing.T, flags ...string) string {
	t.Helper()
	return fakes.Compile(t, flags...)
}

// A fake is the opened fake library, with extra functions that only tests use.
type fake struct {
	*Library
	path    string
	fail    func(name string, code int32)
	running func(n int32)
	opened  func() int32
	xid     func(x uint64)
	sets    func() int32
}

func openFake(t *testing.T, flags ...string) *fake {
	t.Helper()
	f := &fake{path: compileFake(t, flags...)}
	l, err := openPath(f.path)
	if err != nil {
		t.Fatal(err)
	}
	f.Library = l
	purego.RegisterLibFunc(&f.fail, l.handle, "fake_fail")
	purego.RegisterLibFunc(&f.running, l.handle, "fake_running")
	purego.RegisterLibFunc(&f.opened, l.handle, "fake_opened")
	purego.RegisterLibFunc(&f.xid, l.handle, "fake_xid")
	purego.RegisterLibFunc(&f.sets, l.handle, "fake_event_sets")
	return f
}
