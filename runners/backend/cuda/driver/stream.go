package driver

import (
	"math"
	"time"
	"unsafe"
)

// A Stream is a queue of work that runs in order.
type Stream struct {
	d      *Driver
	handle uintptr
}

// NewStream creates a stream that does not wait for the default stream, which this package never
// uses.
func (c *Context) NewStream() (*Stream, error) {
	const nonBlocking = 1
	s := &Stream{d: c.d}
	if code := c.d.sym.cuStreamCreate.call(uintptr(unsafe.Pointer(&s.handle)), nonBlocking); code != success {
		return nil, c.d.newError(code, "creating a stream on "+c.dev.String())
	}
	return s, nil
}

// Synchronize waits until the stream is empty and reports faults of its work.
func (s *Stream) Synchronize() error {
	return s.d.check(s.d.sym.cuStreamSynchronize.call(s.handle), "waiting for the stream")
}

// Done reports whether the stream is empty, without waiting.
func (s *Stream) Done() (bool, error) {
	switch code := s.d.sym.cuStreamQuery.call(s.handle); code {
	case success:
		return true, nil
	case notReady:
		return false, nil
	default:
		return false, s.d.newError(code, "asking the stream")
	}
}

// Close destroys the stream. Work that is still queued finishes.
func (s *Stream) Close() error {
	return s.d.check(s.d.sym.cuStreamDestroy.call(s.handle), "destroying the stream")
}

// An Event is a point in a stream, with the time at which the GPU passed it.
type Event struct {
	d      *Driver
	handle uintptr
}

// NewEvent creates an event that records time.
func (c *Context) NewEvent() (*Event, error) {
	const keepTime = 0
	e := &Event{d: c.d}
	if code := c.d.sym.cuEventCreate.call(uintptr(unsafe.Pointer(&e.handle)), keepTime); code != success {
		return nil, c.d.newError(code, "creating an event on "+c.dev.String())
	}
	return e, nil
}

// Record queues the event at the end of the stream.
func (e *Event) Record(s *Stream) error {
	return e.d.check(e.d.sym.cuEventRecord.call(e.handle, s.handle), "recording an event")
}

// Since returns the time from start to e, to the nearest nanosecond. The GPU's clock tick is about
// half a microsecond. If the GPU has not passed both events, the error's code is notReady.
func (e *Event) Since(start *Event) (time.Duration, error) {
	var ms float32
	err := e.d.check(e.d.sym.cuEventElapsedTime.call(uintptr(unsafe.Pointer(&ms)), start.handle, e.handle), "reading the time between two events")
	return time.Duration(math.Round(float64(ms) * float64(time.Millisecond))), err
}

// Close destroys the event.
func (e *Event) Close() error {
	return e.d.check(e.d.sym.cuEventDestroy.call(e.handle), "destroying an event")
}
