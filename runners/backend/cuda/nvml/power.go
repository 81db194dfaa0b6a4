package nvml

import (
	"fmt"
	"math"
	"unsafe"
)

// Energy returns how much energy the GPU has taken since the driver was loaded, in joules. The counter advances in steps, some
// tens of milliseconds apart.
func (d Device) Energy() (float64, error) {
	var mj uint64
	err := d.check(d.l.sym.nvmlDeviceGetTotalEnergyConsumption.call(d.handle, uintptr(unsafe.Pointer(&mj))), "energy counter")
	return float64(mj) / 1000, err
}

// Power returns the power draw in watts. GPUs since Ampere report the mean over the last second.
func (d Device) Power() (float64, error) {
	mw, err := d.number(d.l.sym.nvmlDeviceGetPowerUsage, "power draw")
	return float64(mw) / 1000, err
}

// fieldValue is nvmlFieldValue_t.
type fieldValue struct {
	field     uint32
	scope     uint32
	timestamp int64
	latency   int64
	kind      int32
	code      int32
	value     [8]byte
}

const (
	powerInstant = 186 // NVML_FI_DEV_POWER_INSTANT
	valueUint    = 1   // NVML_VALUE_TYPE_UNSIGNED_INT
	valueDouble  = 0   // NVML_VALUE_TYPE_DOUBLE
)

// InstantPower returns the power draw of this moment in watts, which Power does not on a GPU since Ampere.
func (d Device) InstantPower() (float64, error) {
	f := fieldValue{field: powerInstant}
	err := d.check(d.l.sym.nvmlDeviceGetFieldValues.call(d.handle, 1, uintptr(unsafe.Pointer(&f))), "instant power draw")
	if err == nil {
		err = d.check(Code(f.code), "instant power draw")
	}
	if err != nil {
		return 0, err
	}
	switch f.kind {
	case valueUint:
		return float64(*(*uint32)(unsafe.Pointer(&f.value))) / 1000, nil
	case valueDouble:
		return *(*float64)(unsafe.Pointer(&f.value)) / 1000, nil
	}
	return math.NaN(), fmt.Errorf("reading the instant power draw of %s: a value of type %d", d.label, f.kind)
}
