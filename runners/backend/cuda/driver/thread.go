package driver

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"unsafe"
)

// scheduleSpin is CU_CTX_SCHED_SPIN: a waiting thread keeps a core busy and learns of the end as
// early as possible.
const scheduleSpin = 1

// errClosed reports that a Thread was used after Close.
var errClosed = errors.New("the CUDA thread is closed: start a new one")

var errExited = errors.New("the function given to Thread.Do ended its goroutine; the CUDA thread is closed")

// A Thread is one operating-system thread that holds a device's context. It is the only way to get
// a [Context].
type Thread struct {
	jobs  chan job
	stop  chan struct{}
	done  chan struct{}
	close func()
	end   error // why releasing the context failed; set before done is closed
}

type job struct {
	do    func(*Context) error
	reply chan<- outcome
}

type outcome struct {
	err      error
	panicked string // the value and its stack; empty if fn did not panic
}

// NewThread starts a locked thread and makes the device's primary context current on it. The first
// call in a process creates the context, which takes tenths of a second.
func (v Device) NewThread() (*Thread, error) {
	stop := make(chan struct{})
	t := &Thread{
		jobs:  make(chan job),
		stop:  stop,
		done:  make(chan struct{}),
		close: sync.OnceFunc(func() { close(stop) }),
	}
	started := make(chan error, 1)
	go t.run(&Context{d: v.d, dev: v}, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return t, nil
}

// Do runs fn on the thread and returns its error. Calls from several goroutines take turns. A panic
// in fn continues in the caller. fn must not call Do on the same thread: pass the Context on
// instead.
func (t *Thread) Do(fn func(*Context) error) error {
	reply := make(chan outcome, 1)
	select {
	case t.jobs <- job{fn, reply}:
	case <-t.done:
		return errClosed
	}
	out := <-reply
	if out.panicked != "" {
		panic(out.panicked)
	}
	return out.err
}

// Close waits for the call in progress, releases the context and ends the thread. After a sticky
// error it returns that error. Closing twice is harmless.
func (t *Thread) Close() error {
	t.close()
	<-t.done
	return t.end
}

func (t *Thread) run(c *Context, started chan<- error) {
	// The thread is unlocked, and so reused, only after an orderly end. If a job ends this
	// goroutine, the runtime discards the thread with it.
	runtime.LockOSThread()
	defer close(t.done)
	if err := c.attach(); err != nil {
		runtime.UnlockOSThread()
		started <- err
		return
	}
	asked := false
	defer func() {
		t.end = c.detach()
		if asked {
			runtime.UnlockOSThread()
		}
	}()
	started <- nil
	for {
		select {
		case j := <-t.jobs:
			j.run(c)
		case <-t.stop:
			asked = true
			return
		}
	}
}

func (j job) run(c *Context) {
	out := outcome{err: errExited}
	returned := false
	defer func() {
		if !returned {
			if v := recover(); v != nil {
				out = outcome{panicked: fmt.Sprintf("panic inside Thread.Do: %v\n\n%s", v, debug.Stack())}
			}
		}
		j.reply <- out
	}()
	out.err = j.do(c)
	returned = true
}

// attach makes the device's primary context current on this thread. The primary context is good
// enough because a process measures one kernel on one GPU and then ends: nothing else in the
// process can disturb the context.
func (c *Context) attach() error {
	sym := &c.d.sym
	dev := uintptr(c.dev.handle)
	if code := sym.cuDevicePrimaryCtxSetFlags.call(dev, scheduleSpin); code != success {
		return c.d.newError(code, "setting how to wait for "+c.dev.String())
	}
	var ctx uintptr
	if code := sym.cuDevicePrimaryCtxRetain.call(uintptr(unsafe.Pointer(&ctx)), dev); code != success {
		return c.d.newError(code, "creating a context on "+c.dev.String())
	}
	if code := sym.cuCtxSetCurrent.call(ctx); code != success {
		sym.cuDevicePrimaryCtxRelease.call(dev)
		return c.d.newError(code, "making the context of "+c.dev.String()+" current")
	}
	return nil
}

func (c *Context) detach() error {
	sym := &c.d.sym
	first := sym.cuCtxSetCurrent.call(0)
	if code := sym.cuDevicePrimaryCtxRelease.call(uintptr(c.dev.handle)); first == success {
		first = code
	}
	return c.d.check(first, "releasing the context of "+c.dev.String())
}

// A Context is a device's context, current on the thread of the [Thread.Do] that passed it. It is
// usable only there.
type Context struct {
	d   *Driver
	dev Device
}

// Device returns the GPU that the context belongs to.
func (c *Context) Device() Device { return c.dev }

// Synchronize waits for all work in the context and reports its faults.
func (c *Context) Synchronize() error {
	if code := c.d.sym.cuCtxSynchronize.call(); code != success {
		return c.d.newError(code, "waiting for "+c.dev.String())
	}
	return nil
}

// ResetPersistingL2 turns all persisting lines of the L2 cache into normal lines. GPUs before
// Ampere have none; there the error's code is notSupported.
func (c *Context) ResetPersistingL2() error {
	if code := c.d.sym.cuCtxResetPersistingL2Cache.call(); code != success {
		return c.d.newError(code, "resetting the persisting L2 lines of "+c.dev.String())
	}
	return nil
}
