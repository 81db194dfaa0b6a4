package cuda

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/nvml"
)

// limits of a GPU from its data sheet: dense FLOP/s by format, and bytes/s.
type limits struct {
	fp64, fp32, tf32, fp16, fp8, int8 float64
	bandwidth                         float64
}

// By the start of the name that the driver reports, the longest match counts.
var dataSheets = map[string]limits{
	"NVIDIA T4":        {0.25e12, 8.1e12, 0, 65e12, 0, 130e12, 320e9},
	"Tesla T4":         {0.25e12, 8.1e12, 0, 65e12, 0, 130e12, 320e9},
	"NVIDIA L4":        {0.5e12, 30.3e12, 60e12, 121e12, 242e12, 242e12, 300e9},
	"NVIDIA L40S":      {1.4e12, 91.6e12, 183e12, 362e12, 733e12, 733e12, 864e9},
	"NVIDIA A100":      {19.5e12, 19.5e12, 156e12, 312e12, 0, 624e12, 2039e9},
	"NVIDIA H100 80GB": {67e12, 67e12, 494e12, 989e12, 1979e12, 1979e12, 3350e9},
	"NVIDIA H200":      {67e12, 67e12, 494e12, 989e12, 1979e12, 1979e12, 4800e9},
}

func dataSheet(name string) (limits, bool) {
	best := ""
	for prefix := range dataSheets {
		if strings.HasPrefix(name, prefix) && len(prefix) > len(best) {
			best = prefix
		}
	}
	return dataSheets[best], best != ""
}

// ErrNoGPU says that this host has no GPU to measure on.
var ErrNoGPU = errors.New("no NVIDIA GPU was found")

// find reads the properties of the GPU with that UUID, or of the first one, without a context.
func find(uuid string) (driver.Properties, error) {
	d, err := driver.Open()
	if err != nil {
		return driver.Properties{}, fmt.Errorf("%w: %w", ErrNoGPU, err)
	}
	n, err := d.DeviceCount()
	if err != nil {
		return driver.Properties{}, fmt.Errorf("%w: %w", ErrNoGPU, err)
	}
	for i := range n {
		gpu, err := d.Device(i)
		if err != nil {
			return driver.Properties{}, err
		}
		p, err := gpu.Properties()
		if err != nil || uuid == "" || p.UUID.String() == uuid {
			return p, err
		}
	}
	if uuid != "" && n > 0 {
		return driver.Properties{}, fmt.Errorf("%w: CUDA does not show %s to this process (see kernelgate doctor, and dmesg for a GPU that has fallen off the bus)", ErrNoGPU, uuid)
	}
	return driver.Properties{}, ErrNoGPU
}

// probe returns what the evidence records about a GPU.
func probe(p driver.Properties) gates.Device {
	device := gates.Device{
		Kind: gates.DeviceGPU, Name: p.Name, Arch: p.Arch(), UUID: p.UUID.String(), Units: p.SMs, L2Bytes: int64(p.L2Bytes),
		PeakFrom: "not in the table of data sheets: no roofline",
	}
	if sheet, ok := dataSheet(p.Name); ok {
		device.Peak = map[string]float64{
			"fp64": sheet.fp64, "fp32": sheet.fp32, "tf32": sheet.tf32, "fp16": sheet.fp16, "bf16": sheet.fp16, "fp8": sheet.fp8, "int8": sheet.int8,
		}
		device.Bandwidth, device.PeakFrom = sheet.bandwidth, "data sheet, dense"
	}
	if library, err := nvml.Open(); err == nil {
		device.Driver, _ = library.DriverVersion()
		if g, err := library.DeviceByPCI(p.PCIBusID); err == nil {
			device.ClockMHz = map[string]int{}
			if mhz, err := g.MaxClock(nvml.SMClock); err == nil {
				device.ClockMHz["sm max"] = mhz
			}
			if mhz, err := g.MaxClock(nvml.MemoryClock); err == nil {
				device.ClockMHz["memory max"] = mhz
			}
		}
	}
	return device
}
