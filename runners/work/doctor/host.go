package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kernelgate/kernelgate/runners/backend/cpu"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/nvml"
	"github.com/kernelgate/kernelgate/runners/build/inspect"
	"github.com/kernelgate/kernelgate/runners/build/pyref"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// DefaultHost returns this machine.
func DefaultHost() Host {
	installed := toolchain.Installed{Getenv: os.Getenv}
	if cache, err := toolchain.DefaultCache(os.Getenv); err == nil {
		installed.Cache = cache
	}
	return Host{
		Toolchains: installed,
		Compilers:  func(ctx context.Context, i toolchain.Installed) ([]toolchain.Compiler, error) { return i.List(ctx) },
		Sandbox:    sandbox.Probe,
		Includes:   measure.IncludeSets{},
		FoundSets:  func(ctx context.Context) measure.IncludeSets { return measure.FoundSets(ctx, os.Getenv) },
		CC: func(ctx context.Context) (string, error) {
			cc, err := toolchain.FindCC(ctx, os.Getenv, false)
			if err == nil {
				err = cc.Try(ctx)
			}
			return cc.Version, err
		},
		Git: func(ctx context.Context) (string, error) {
			return version(ctx, regexp.MustCompile(`git version (\S+)`), "git")
		},
		Temp:    temp,
		Devices: func() []string { return devices("/dev") },
		GPU:     firstGPU,
		Health:  health,
		CUDA: func(ctx context.Context) (string, error) {
			cuda, err := toolchain.FindCUDA(ctx, os.Getenv)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%s, %s", cuda.Version, cuda.NVCC), nil
		},
		Triton: func(ctx context.Context) (string, error) {
			triton, err := toolchain.FindTriton(ctx, os.Getenv)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%s for Python %s, %s", triton.Version, triton.PythonVersion, triton.Folder), nil
		},
		Python: func(ctx context.Context) (string, error) {
			python, err := pyref.Find(ctx, os.Getenv)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%s, %s", python, python.Program), nil
		},
		Counts: cpu.Counts,
		NCU: func(ctx context.Context) (string, error) {
			ncu, err := inspect.FindNCU(ctx, os.Getenv)
			return fmt.Sprintf("%s, %s", ncu.Version, ncu.Path), err
		},
		Sanitizer: func(ctx context.Context) (string, error) {
			found, err := inspect.FindSanitizer(ctx, os.Getenv)
			return fmt.Sprintf("%s, %s", found.Version, found.Path), err
		},
		DriverParams: func() (string, error) {
			text, err := os.ReadFile("/proc/driver/nvidia/params")
			return string(text), err
		},
		Admin: func() bool {
			status, err := os.ReadFile("/proc/self/status")
			return err == nil && sysAdmin(string(status))
		},
	}
}

// version returns the version that a program reports.
func version(ctx context.Context, pattern *regexp.Regexp, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	path, err := exec.LookPath(program)
	if err != nil {
		return "", errors.New("not found")
	}
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", path, err)
	}
	m := pattern.FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("%s --version names no version", path)
	}
	return string(m[1]), nil
}

// temp checks whether the folder is writable by writing to it, because permissions alone do not
// show that.
func temp() (string, uint64, error) {
	dir := os.TempDir()
	probe, err := os.CreateTemp(dir, "kernelgate-doctor-")
	if err != nil {
		return dir, 0, fmt.Errorf("trying to write to the temporary folder: %w", err)
	}
	defer os.Remove(probe.Name())
	defer probe.Close()
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return dir, 0, fmt.Errorf("asking for the free space of %s: %w", dir, err)
	}
	return dir, stat.Bavail * uint64(stat.Bsize), nil
}

// devices returns the GPUs' device files. A container may have any of them, not only the first.
func devices(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var paths []string
	for _, e := range entries {
		number, found := strings.CutPrefix(e.Name(), "nvidia")
		if _, err := strconv.ParseUint(number, 10, 16); found && err == nil && e.Type()&fs.ModeDir == 0 {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

func firstGPU() (GPU, error) {
	d, err := driver.Open()
	if err != nil {
		return GPU{}, err
	}
	count, err := d.DeviceCount()
	if err != nil {
		return GPU{}, err
	}
	if count == 0 {
		return GPU{}, errors.New("the driver lists no GPU")
	}
	device, err := d.Device(0)
	if err != nil {
		return GPU{}, err
	}
	p, err := device.Properties()
	if err != nil {
		return GPU{}, err
	}
	v, err := d.Version()
	if err != nil {
		return GPU{}, err
	}
	return GPU{
		Count: count, Name: p.Name, Arch: p.Arch(), Memory: p.TotalMemory, CUDA: v.String(), PCIBusID: p.PCIBusID,
		KernelTimeout: p.KernelTimeout,
	}, nil
}

func health(g GPU) (Health, error) {
	library, err := nvml.Open()
	if err != nil {
		return Health{}, err
	}
	defer library.Close()
	var h Health
	if h.Driver, err = library.DriverVersion(); err != nil {
		return h, err
	}
	device, err := library.DeviceByPCI(g.PCIBusID)
	if err != nil {
		return h, err
	}
	clock := func(ask func(nvml.Clock) (int, error), which nvml.Clock) func() (int, error) {
		return func() (int, error) { return ask(which) }
	}
	err = errors.Join(
		answer(&h.SMClock, clock(device.Clock, nvml.SMClock)),
		answer(&h.MaxSMClock, clock(device.MaxClock, nvml.SMClock)),
		answer(&h.MemoryClock, clock(device.Clock, nvml.MemoryClock)),
		answer(&h.Reasons, device.Reasons),
		answer(&h.Persistence, device.Persistence),
		answer(&h.Processes, func() ([]nvml.Process, error) { return others(device.Processes()) }),
	)
	watch, unheard := device.WatchXids()
	if unheard == nil {
		unheard = watch.Close()
	}
	h.NoXids = unheard
	return h, err
}

// answer stores a value unless this GPU does not provide it.
func answer[T any](to **T, ask func() (T, error)) error {
	value, err := ask()
	if nvml.Unsupported(err) {
		return nil
	}
	if err == nil {
		*to = &value
	}
	return err
}

func others(list []nvml.Process, err error) ([]nvml.Process, error) {
	return slices.DeleteFunc(list, func(p nvml.Process) bool { return p.PID == os.Getpid() }), err
}

// sysAdmin looks for CAP_SYS_ADMIN, number 21, in the text of /proc/self/status.
func sysAdmin(status string) bool {
	for line := range strings.Lines(status) {
		if text, found := strings.CutPrefix(line, "CapEff:"); found {
			bits, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
			return err == nil && bits&(1<<21) != 0
		}
	}
	return false
}
