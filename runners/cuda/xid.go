package cuda

import (
	"fmt"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/cuda/nvml"
)

// An xidSource tells of Xids one by one; it is an nvml.XidWatch.
type xidSource interface {
	Next(patience time.Duration) (nvml.Xid, bool, error)
}

// watchXids listens to the GPU. Where NVML does not allow it there is nil:
// evidence then names no Xid, and the doctor says why.
func watchXids(p driver.Properties) xidSource {
	library, err := nvml.Open()
	if err != nil {
		return nil
	}
	device, err := library.DeviceByPCI(p.PCIBusID)
	if err != nil {
		return nil
	}
	watch, err := device.WatchXids()
	if err != nil {
		return nil
	}
	return watch
}

// xidPatience is how long the driver may take to report what ended a worker.
const xidPatience = 500 * time.Millisecond

// xids is what the GPU has reported since it was asked last, in words: "Xid 31
// (GPU memory page fault)". The first one is waited for.
func xids(from xidSource, patience time.Duration) string {
	if from == nil {
		return ""
	}
	var all []string
	for {
		x, ok, err := from.Next(patience)
		if err != nil || !ok || len(all) == 8 {
			return strings.Join(all, ", ")
		}
		if len(all) == 0 || all[len(all)-1] != x.String() {
			all = append(all, x.String())
		}
		patience = 0
	}
}

// nameXids adds them to a failure that may have one: what the kernel did wrong
// without the GPU's notice has none.
func nameXids(f *gates.Failure, from xidSource) {
	switch f.Kind {
	case gates.FailureCrash, gates.FailureIllegalAddress, gates.FailureLaunch, gates.FailureTimeout:
		if said := xids(from, xidPatience); said != "" {
			f.Detail += fmt.Sprintf("; the GPU reported %s", said)
		}
	}
}
