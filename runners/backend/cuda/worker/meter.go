package worker

import (
	"math"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/nvml"
)

const (
	// segmentTime is three steps of the counter of an H200, which advances every 100 ms: two of them are whole.
	segmentTime = 330 * time.Millisecond
	// launchTime is how long the launches of a segment take together: with all segments of a shape, more than a second.
	launchTime = 65 * time.Millisecond
	pollTime   = time.Millisecond
)

// sensors are the figures of a GPU that tell its energy; an nvml.Device has them.
type sensors interface {
	Energy() (float64, error)
	InstantPower() (float64, error)
	Power() (float64, error)
}

// A meter reads the sensors in the judge's process, while sides launch in theirs.
type meter struct{ counter, power func() (float64, error) }

// newMeter returns nil where there is no sensor.
func newMeter(gpu *nvml.Device) *meter {
	if gpu == nil {
		return nil
	}
	return meterOf(gpu)
}

func meterOf(gpu sensors) *meter {
	m := &meter{}
	if _, err := gpu.Energy(); err == nil {
		m.counter = gpu.Energy
	}
	// Without the instant power, the GPU is older than Ampere, and its power draw is instant.
	if _, err := gpu.InstantPower(); err == nil {
		m.power = gpu.InstantPower
	} else if _, err := gpu.Power(); err == nil {
		m.power = gpu.Power
	}
	if m.counter == nil && m.power == nil {
		return nil
	}
	return m
}

// Begin implements [interleave.Meter].
func (m *meter) Begin() func() gates.EnergySegment {
	stop, done := make(chan struct{}), make(chan gates.EnergySegment)
	start := time.Now()
	counter, power := newChanges(m.counter), newChanges(m.power)
	go func() {
		tick := time.NewTicker(pollTime)
		defer tick.Stop()
		for {
			counter.read(start)
			power.read(start)
			select {
			case <-stop:
				done <- gates.EnergySegment{Counter: counter.seen(), Power: power.seen()}
				return
			case <-tick.C:
			}
		}
	}()
	return func() gates.EnergySegment {
		close(stop)
		return <-done
	}
}

// changes collects the values of a sensor that differ from the one before.
type changes struct {
	ask  func() (float64, error)
	list gates.SensorChanges
}

func newChanges(ask func() (float64, error)) *changes { return &changes{ask: ask} }

// read asks the sensor. The moment of a value is the middle of the call. A sensor that fails once is asked again later.
func (c *changes) read(start time.Time) {
	if c.ask == nil {
		return
	}
	before := time.Since(start)
	value, err := c.ask()
	if n := len(c.list.Values); err != nil || n > 0 && c.list.Values[n-1] == value {
		return
	}
	at := (before + time.Since(start)).Seconds() / 2
	c.list.At, c.list.Values = append(c.list.At, math.Round(at*1e6)/1e6), append(c.list.Values, value)
}

func (c *changes) seen() *gates.SensorChanges {
	if len(c.list.At) == 0 {
		return nil
	}
	return &c.list
}
