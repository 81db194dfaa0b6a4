package driver

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

func TestThreadHoldsTheContext(t *testing.T) {
	f := openFake(t)
	dev, err := f.Device(1)
	if err != nil {
		t.Fatal(err)
	}
	th, err := dev.NewThread()
	if err != nil {
		t.Fatal(err)
	}
	if got := f.flags(); got != scheduleSpin {
		t.Errorf("the context was created with flags %d", got)
	}
	var leaked *Context
	for range 50 {
		if err := th.Do(func(c *Context) error { leaked = c; return c.Synchronize() }); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.retained(); got != 1 {
		t.Errorf("the context is retained %d times", got)
	}
	if err := leaked.Synchronize(); !errors.Is(err, invalidContext) ||
		!strings.HasSuffix(err.Error(), "make the call inside Thread.Do") {
		t.Errorf("outside Do: %v", err)
	}

	if err := th.Close(); err != nil {
		t.Fatal(err)
	}
	if got := f.retained(); got != 0 {
		t.Errorf("after Close the context is still retained %d times", got)
	}
	if err := th.Do(func(*Context) error { return nil }); !errors.Is(err, errClosed) {
		t.Errorf("Do after Close: %v", err)
	}
	if err := th.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestThreadReportsFailure(t *testing.T) {
	f := openFake(t)
	dev, err := f.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cuDevicePrimaryCtxSetFlags_v2", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent"} {
		f.fail(name, int32(OutOfMemory), 0)
		if _, err := dev.NewThread(); !errors.Is(err, OutOfMemory) {
			t.Errorf("with %s failing: %v", name, err)
		}
		if got := f.retained(); got != 0 {
			t.Errorf("with %s failing the context stays retained %d times", name, got)
		}
	}
	th, err := dev.NewThread()
	if err != nil {
		t.Fatal(err)
	}
	f.fail("cuDevicePrimaryCtxRelease_v2", int32(IllegalAddress), 0)
	if err := th.Close(); !errors.Is(err, IllegalAddress) {
		t.Errorf("Close after a sticky error: %v", err)
	}
}

func TestThreadSurvivesAPanic(t *testing.T) {
	th := openFake(t).thread(t)
	func() {
		defer func() {
			if v, _ := recover().(string); !strings.Contains(v, "out of tiles") {
				t.Errorf("the caller recovered %q", v)
			}
		}()
		_ = th.Do(func(*Context) error { panic("out of tiles") })
	}()
	if err := th.Do(func(c *Context) error { return c.Synchronize() }); err != nil {
		t.Errorf("after the panic: %v", err)
	}
}

func TestThreadEndsWithItsGoroutine(t *testing.T) {
	f := openFake(t)
	th := f.thread(t)
	if err := th.Do(func(*Context) error { runtime.Goexit(); return nil }); err == nil {
		t.Error("a function that ends its goroutine gives no error")
	}
	if err := th.Do(func(*Context) error { return nil }); !errors.Is(err, errClosed) {
		t.Errorf("the next call: %v", err)
	}
	if got := f.retained(); got != 0 {
		t.Errorf("the context stays retained %d times", got)
	}
}
