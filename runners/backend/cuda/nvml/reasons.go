package nvml

import (
	"fmt"
	"strings"
)

// Reasons is a set of causes why the clocks are below their maximum.
type Reasons uint64

const (
	GPUIdle                   Reasons = 1 << iota
	ApplicationsClocksSetting         // someone fixed the clocks
	SwPowerCap                        // the power limit is reached
	hwSlowdown                        // the hardware halves the clocks: heat, power brake or supply
	syncBoost                         // tied to the clocks of another GPU
	swThermalSlowdown                 // the driver keeps the temperature down
	HwThermalSlowdown                 // the hardware keeps the temperature down
	hwPowerBrakeSlowdown              // the power supply asked for less
	displayClockSetting
	boardLimit
	reliability
)

var reasonNames = []string{
	"gpu-idle",
	"applications-clocks-setting",
	"sw-power-cap",
	"hw-slowdown",
	"sync-boost",
	"sw-thermal-slowdown",
	"hw-thermal-slowdown",
	"hw-power-brake-slowdown",
	"display-clock-setting",
	"board-limit",
	"reliability",
}

// Throttling returns the reasons that slow a running kernel down. An idle GPU, and clocks that
// someone fixed on purpose, are not among them.
func (r Reasons) Throttling() Reasons {
	return r &^ (GPUIdle | ApplicationsClocksSetting | displayClockSetting)
}

// Slowdown returns the reasons that indicate a problem with the GPU, its cooling or its power
// supply. Reaching the power limit is not one: many GPUs run there.
func (r Reasons) Slowdown() Reasons {
	return r & (hwSlowdown | swThermalSlowdown | HwThermalSlowdown | hwPowerBrakeSlowdown)
}

// Names lists the reasons in a fixed order. Bits that are newer than this
// package appear as one hexadecimal number.
func (r Reasons) Names() []string {
	var names []string
	for i, name := range reasonNames {
		if r&(1<<i) != 0 {
			names = append(names, name)
			r &^= 1 << i
		}
	}
	if r != 0 {
		names = append(names, fmt.Sprintf("%#x", uint64(r)))
	}
	return names
}

// String returns the names, or "none".
func (r Reasons) String() string {
	if r == 0 {
		return "none"
	}
	return strings.Join(r.Names(), ", ")
}
