package cpu

import (
	"runtime"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// A single thread of no CPU that exists computes more than this: 64 FLOP a
// cycle in single precision (two 512-bit FMA units) and 2,048 in a matrix unit,
// at 6 GHz. Bandwidth is left open, for caches know no bound that is worth
// stating.
const clock = 6e9

var peak = map[string]float64{
	"fp64": 32 * clock, "fp32": 64 * clock, "tf32": 64 * clock,
	"fp16": 2048 * clock, "bf16": 2048 * clock, "fp8": 2048 * clock, "int8": 4096 * clock,
}

// Device is this machine's CPU.
func (w *Worker) Device() gates.Device {
	return gates.Device{
		Kind: "cpu", Name: runners.CPUName(), Arch: runtime.GOARCH, Units: runtime.NumCPU(), Peak: peak,
		PeakFrom: "an upper bound for one thread: 64 FLOP a cycle in fp32 at 6 GHz",
	}
}
