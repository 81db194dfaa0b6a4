package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/dynlib"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/nvml"
)

// A GPU is what CUDA reports about the first GPU.
type GPU struct {
	Count    int // number of GPUs that this process may use
	Name     string
	Arch     string // such as sm_90
	Memory   uint64
	CUDA     string // the newest version that the driver supports
	PCIBusID string

	// KernelTimeout means that the display's watchdog kills long kernels.
	KernelTimeout bool
}

// Health is what NVML reports about a GPU. A nil field is a value that this GPU or driver does not
// provide.
type Health struct {
	Driver      string
	SMClock     *int // MHz, like MaxSMClock and MemoryClock
	MaxSMClock  *int
	MemoryClock *int
	Reasons     *nvml.Reasons // why the clocks are not higher
	Persistence *bool
	Processes   *[]nvml.Process // other processes with work on the GPU
	NoXids      error           // why NVML does not report Xids; nil if it does
}

func noGPUFinding(devices []string, err error) Finding {
	f := Finding{Name: gpuName}
	if len(devices) == 0 {
		f.Status, f.Detail = Warn, "none on this host; the CPU runner needs none"
		f.Remedy = "to gate CUDA kernels, use a host with an NVIDIA GPU and its driver"
		return f
	}
	f.Status = Missing
	f.Detail = fmt.Sprintf("%s is there, but CUDA does not work: %s", devices[0], oneLine(err))
	f.Remedy = "check whether nvidia-smi works: if it does not, reinstall the NVIDIA driver and reboot; if it does, check the library path and CUDA_VISIBLE_DEVICES"
	if errors.Is(err, dynlib.ErrMissing) {
		f.Detail = fmt.Sprintf("%s is there, but not %s", devices[0], driver.LibraryName)
		f.Remedy = "install the NVIDIA driver's CUDA library (Debian: apt-get install libcuda1), or start the container with --gpus all"
	}
	return f
}

func gpuFindings(g GPU, h Host) []Finding {
	health, err := h.Health(g)
	parts := []string{g.Name, g.Arch, size(g.Memory), "CUDA " + g.CUDA}
	if health.Driver != "" {
		parts = append(parts, "driver "+health.Driver)
	}
	if g.Count > 1 {
		parts = append(parts, fmt.Sprintf("the first of %d", g.Count))
	}
	findings := []Finding{{Name: gpuName, Status: OK, Detail: strings.Join(parts, ", ")}}
	if g.KernelTimeout {
		findings = append(findings, Finding{Name: "display watchdog", Status: Warn, Detail: "a display stops kernels that run for seconds",
			Remedy: "measure on a GPU without a display"})
	}
	if err != nil {
		return append(findings, Finding{Name: "GPU health", Status: Warn, Detail: oneLine(err),
			Remedy: "check whether nvidia-smi works: it uses the same library; without the library, the runner cannot check that the GPU is fit to measure on"})
	}
	findings = append(findings, clocksFinding(health))
	if health.Persistence != nil {
		findings = append(findings, persistenceFinding(*health.Persistence))
	}
	if health.Processes != nil {
		findings = append(findings, processesFinding(*health.Processes))
	}
	return append(findings, xidFinding(health.NoXids))
}

func xidFinding(err error) Finding {
	if err == nil {
		return Finding{Name: "Xid events", Status: OK, Detail: "reported by NVML"}
	}
	return Finding{Name: "Xid events", Status: Warn, Detail: "not reported: " + oneLine(err),
		Remedy: "errors of kernels are still reported; for their Xid, see dmesg on the host, outside of any container"}
}

func clocksFinding(h Health) Finding {
	f := Finding{Name: "GPU clocks", Status: OK}
	var parts []string
	switch {
	case h.SMClock != nil && h.MaxSMClock != nil:
		parts = append(parts, fmt.Sprintf("SM %d of %d MHz", *h.SMClock, *h.MaxSMClock))
	case h.SMClock != nil:
		parts = append(parts, fmt.Sprintf("SM %d MHz", *h.SMClock))
	}
	if h.MemoryClock != nil {
		parts = append(parts, fmt.Sprintf("memory %d MHz", *h.MemoryClock))
	}
	if h.Reasons != nil {
		if *h.Reasons&nvml.GPUIdle != 0 {
			parts = append(parts, "idle")
		}
		// NVML has no query for locked clocks. A lock shows as a reason if it keeps the clocks
		// down.
		if *h.Reasons&nvml.ApplicationsClocksSetting != 0 {
			parts = append(parts, "locked")
		} else {
			parts = append(parts, "not seen to be locked")
		}
		if slow := h.Reasons.Throttling(); slow != 0 {
			parts = append(parts, "slowed by "+slow.String())
			f.Status, f.Remedy = Warn, "let the GPU cool, and check its power limit and air flow: samples taken while the GPU is throttled are left out"
		}
	}
	f.Detail = cmp.Or(strings.Join(parts, ", "), "the driver does not tell")
	return f
}

func persistenceFinding(on bool) Finding {
	if on {
		return Finding{Name: "persistence mode", Status: OK, Detail: "on"}
	}
	return Finding{Name: "persistence mode", Status: Warn, Detail: "off: the GPU must wake up for every process, and its clocks drop in between",
		Remedy: "turn it on with nvidia-smi -pm 1, or run nvidia-persistenced"}
}

func processesFinding(list []nvml.Process) Finding {
	if len(list) == 0 {
		return Finding{Name: "foreign processes", Status: OK, Detail: "none on the GPU"}
	}
	var parts []string
	for _, p := range list {
		text := fmt.Sprintf("process %d", p.PID)
		if p.MemoryKnown {
			text += " with " + size(p.MemoryBytes)
		}
		parts = append(parts, text)
	}
	return Finding{Name: "foreign processes", Status: Warn, Detail: "on the GPU: " + strings.Join(parts, ", "),
		Remedy: "stop them, or give kernelgate a separate GPU: while they run, every measurement ends as ERROR"}
}
