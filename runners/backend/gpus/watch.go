package gpus

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/nvml"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// A device is an nvml.Device.
type device interface {
	Clock(nvml.Clock) (int, error)
	MaxClock(nvml.Clock) (int, error)
	Reasons() (nvml.Reasons, error)
	Temperature() (int, error)
	Power() (float64, error)
	UncorrectedErrors() (uint64, error)
}

// An xidSource returns Xids one by one; it is an nvml.XidWatch.
type xidSource interface {
	Next(patience time.Duration) (nvml.Xid, bool, error)
}

// A Watch observes one GPU for as long as a runner uses it. Only one goroutine may use it at a
// time.
type Watch struct {
	gpu    GPU
	driver string
	device device
	xids   xidSource // nil if the driver does not report Xids
	heard  []protocol.Xid
	ecc    *uint64 // at the last look
	slow   int     // consecutive looks at which the hardware was slowed down
}

// WatchGPU starts to observe a GPU.
func WatchGPU(g GPU) (*Watch, error) {
	library, err := nvml.Open() // for the life of the process
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", g, err)
	}
	d, err := library.DeviceByIndex(g.Index)
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", g, err)
	}
	w := &Watch{gpu: g, device: d}
	w.driver, _ = library.DriverVersion()
	if xids, err := d.WatchXids(); err == nil { // the doctor says why not
		w.xids = xids
	}
	return w, nil
}

// slowLooks is how many consecutive looks must find the GPU slowed down. The worker leaves out
// samples of a short moment of heat.
const slowLooks = 2

// Look returns the GPU's current state, and why it should not be measured on, usually "". A kernel
// can also make the driver report faults, so only hardware faults count.
func (w *Watch) Look(now time.Time) (seen protocol.GPU, unfit string) {
	seen = protocol.GPU{Index: w.gpu.Index, UUID: w.gpu.UUID, Name: w.gpu.Name, Driver: w.driver}
	var lost error
	keep := func(err error) {
		if errors.Is(err, nvml.GPUIsLost) || errors.Is(err, nvml.ResetRequired) {
			lost = err
		}
	}
	figure(&seen.SMClock, keep)(w.device.Clock(nvml.SMClock))
	figure(&seen.MaxSMClock, keep)(w.device.MaxClock(nvml.SMClock))
	figure(&seen.MemoryClock, keep)(w.device.Clock(nvml.MemoryClock))
	figure(&seen.Celsius, keep)(w.device.Temperature())
	figure(&seen.Watts, keep)(w.device.Power())
	var reasons nvml.Reasons
	figure(&reasons, keep)(w.device.Reasons())
	if slow := reasons.Throttling(); slow != 0 {
		seen.Throttled = slow.Names()
	}
	faulty := w.hear(now)
	more := w.countErrors(&seen, keep)
	seen.Xids = slices.Clone(w.heard)
	w.slow++
	if reasons.Slowdown() == 0 {
		w.slow = 0
	}
	switch {
	case lost != nil:
		return seen, fmt.Sprintf("%s does not answer: %v", w.gpu, lost)
	case faulty != "":
		return seen, fmt.Sprintf("%s reported %s", w.gpu, faulty)
	case more > 0:
		return seen, fmt.Sprintf("%s has %d new memory errors that ECC could not repair", w.gpu, more)
	case w.slow >= slowLooks:
		return seen, fmt.Sprintf("%s is slowed down: %s (look at its cooling and its power supply)", w.gpu, reasons.Slowdown())
	}
	return seen, ""
}

func figure[T any](to *T, failed func(error)) func(T, error) {
	return func(value T, err error) {
		if err == nil {
			*to = value
		}
		failed(err)
	}
}

// hear reads the Xids since the last look, and returns the last hardware fault among them.
func (w *Watch) hear(now time.Time) (faulty string) {
	if w.xids == nil {
		return ""
	}
	const most = 100 // the rest of an endless stream is read at the next look
	for range most {
		x, ok, err := w.xids.Next(0)
		if err != nil || !ok {
			break
		}
		w.heard = append(w.heard, protocol.Xid{At: now, Text: x.String()})
		w.heard = w.heard[max(0, len(w.heard)-protocol.MaxXids):]
		if x.Hardware() {
			faulty = x.String()
		}
	}
	return faulty
}

// countErrors returns how many errors were added since the last look.
func (w *Watch) countErrors(seen *protocol.GPU, failed func(error)) (more uint64) {
	n, err := w.device.UncorrectedErrors()
	if failed(err); err != nil {
		return 0
	}
	if w.ecc != nil && n > *w.ecc {
		more = n - *w.ecc
	}
	seen.ECCErrors, w.ecc = &n, &n
	return more
}
