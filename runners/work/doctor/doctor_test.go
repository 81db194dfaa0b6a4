package doctor

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/dynlib"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/nvml"
	"github.com/kernelgate/kernelgate/runners/build/inspect"
	"github.com/kernelgate/kernelgate/runners/build/pyref"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func has(version string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return version, nil }
}

func lacks(err error) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return "", err }
}

// fit is a GPU host that lacks nothing.
func fit() Host {
	return Host{
		Sandbox: func() sandbox.Support {
			return sandbox.Support{Landlock: 7, Checks: []sandbox.Check{
				{Name: "sandbox", OK: true, Needed: true, Detail: "built and ended in 12ms"},
				{Name: "landlock", OK: true, Detail: "version 7"},
				{Name: "system-call filter", OK: true, Needed: true, Detail: "amd64"},
			}}
		},
		CC:      has("gcc (Debian 12.2.0-14) 12.2.0"),
		Git:     has("2.39.5"),
		Temp:    func() (string, uint64, error) { return "/tmp", 41 << 30, nil },
		Counts:  func() (string, string) { return "", "" },
		Devices: func() []string { return []string{"/dev/nvidia0"} },
		GPU: func() (GPU, error) {
			return GPU{Count: 1, Name: "NVIDIA H200", Arch: "sm_90", Memory: 150_754_820_096, CUDA: "13.0", PCIBusID: "0000:17:00.0"}, nil
		},
		Health: func(GPU) (Health, error) {
			return Health{
				Driver: "580.159.04", SMClock: new(345), MaxSMClock: new(1980), MemoryClock: new(3201),
				Reasons: new(nvml.GPUIdle), Persistence: new(true), Processes: &[]nvml.Process{},
			}, nil
		},
		CUDA:         has("13.0.88, /usr/local/cuda/bin/nvcc"),
		Triton:       has("3.6.0 for Python 3.12.3, /opt/venv/lib/python3.12/site-packages/triton"),
		Python:       has("3.12.3, NumPy 2.4.6, PyTorch 2.15.0, /opt/venv/bin/python3"),
		NCU:          has("2025.3.1.0, /usr/local/cuda/bin/ncu"),
		Sanitizer:    has("2025.3.1.0"),
		DriverParams: func() (string, error) { return "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 0\n", nil },
		Admin:        func() bool { return false },
		Compilers: func(context.Context, toolchain.Installed) ([]toolchain.Compiler, error) {
			return []toolchain.Compiler{
				{Kind: "nvcc", Version: "13.0.88", Place: "/usr/local/cuda", Digest: "sha256:4b11be284dc8cf445e0fd6f90e347fe83e23c7ec2fd6344f1f00062b63697f78"},
				{Kind: "triton", Version: "3.6.0", Place: "/opt/triton-3.6.0/triton", Digest: "sha256:f41a6e82aa1bfaa3953d8df80a4083d9e867e5ca7fb568b31ea8455f2e542a41"},
			}, nil
		},
	}
}

// hosts are the machines whose reports are in testdata.
var hosts = []struct {
	name   string
	exit   int
	change func(*Host)
}{
	{"fit", 0, func(*Host) {}},
	{"no_gpu", 0, func(h *Host) {
		h.Devices = func() []string { return nil }
		h.GPU = func() (GPU, error) {
			return GPU{}, fmt.Errorf("%s not found: %w", driver.LibraryName, dynlib.ErrMissing)
		}
		h.CUDA = lacks(toolchain.ErrNoCUDA)
		h.Triton = lacks(fmt.Errorf("%w (asked was /usr/bin/python3.11, Python 3.11.2)", toolchain.ErrNoTriton))
		h.NCU = lacks(fmt.Errorf("ncu was not found: %w", inspect.ErrNoNCU))
		h.Sanitizer = lacks(errors.New("not found"))
	}},
	{"no_driver", 1, func(h *Host) {
		h.GPU = func() (GPU, error) {
			return GPU{}, fmt.Errorf("%s not found: %w", driver.LibraryName, dynlib.ErrMissing)
		}
	}},
	{"broken_driver", 1, func(h *Host) {
		h.GPU = func() (GPU, error) {
			return GPU{}, &driver.Error{Code: driver.SystemDriverMismatch, Name: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", Text: "system has unsupported display driver / cuda driver combination", Op: "initialising CUDA"}
		}
		h.CUDA = lacks(toolchain.ErrNoCUDA)
	}},
	{"unfit_gpu", 0, func(h *Host) {
		h.GPU = func() (GPU, error) {
			return GPU{Count: 2, Name: "NVIDIA L4", Arch: "sm_89", Memory: 23_580_639_232, CUDA: "12.4", KernelTimeout: true}, nil
		}
		h.Health = func(GPU) (Health, error) {
			return Health{
				Driver: "550.54.15", SMClock: new(1200), MaxSMClock: new(2040), MemoryClock: new(6250),
				Reasons:     new(nvml.ApplicationsClocksSetting | nvml.SwPowerCap | nvml.HwThermalSlowdown),
				Persistence: new(false),
				Processes:   &[]nvml.Process{{PID: 812, MemoryBytes: 5 << 30, MemoryKnown: true}, {PID: 977}},
				NoXids:      &nvml.Error{Code: nvml.NotSupported, Text: "Not Supported", Op: "listening for Xids of 0000:17:00.0"},
			}, nil
		}
		h.DriverParams = func() (string, error) { return "RmProfilingAdminOnly: 1\n", nil }
		h.Sanitizer = lacks(errors.New("not found"))
	}},
	{"bare", 1, func(h *Host) {
		h.Sandbox = func() sandbox.Support {
			return sandbox.Support{Checks: []sandbox.Check{
				{Name: "sandbox", Needed: true, Detail: "operation not permitted", Remedy: "allow user namespaces: sysctl -w user.max_user_namespaces=10000"},
				{Name: "landlock", Detail: "not in this kernel", Remedy: "run Linux 5.13 or later"},
			}}
		}
		h.CC = lacks(toolchain.ErrNoCompiler)
		h.Git = lacks(errors.New("not found"))
		h.Counts = func() (string, string) {
			return "Linux lets this user count no events: kernel.perf_event_paranoid is 3", "sysctl -w kernel.perf_event_paranoid=1; without them kernels on a CPU are explained by their builds"
		}
		h.Temp = func() (string, uint64, error) { return "/tmp", 100 << 20, nil }
		h.Devices = func() []string { return nil }
		h.GPU = func() (GPU, error) { return GPU{}, dynlib.ErrMissing }
		h.CUDA = lacks(toolchain.ErrNoCUDA)
		h.Triton = lacks(errors.New("asking /usr/bin/python3 for its packages: exit status 1 (is it Python 3?)"))
		h.Python = lacks(fmt.Errorf("%w (asked was /usr/bin/python3, Python 3.11.2)", pyref.ErrNoArrays))
		h.Compilers = func(context.Context, toolchain.Installed) ([]toolchain.Compiler, error) {
			return []toolchain.Compiler{{Kind: "triton", Version: "3.6.0", Place: "/opt/triton", Err: errors.New("open /opt/triton/_C/libtriton.so: permission denied")}}, errors.New("the toolchain /opt/cuda: it holds neither bin/nvcc nor the package triton, and is no Python")
		}
		h.NCU = lacks(errors.New("no ncu that works was found:\n  /usr/bin/ncu is not Nsight Compute"))
		h.Sanitizer = lacks(errors.New("not found"))
	}},
}

func TestGolden(t *testing.T) {
	for _, tt := range hosts {
		t.Run(tt.name, func(t *testing.T) {
			h := fit()
			tt.change(&h)
			findings := Run(t.Context(), h, nil)
			if got := Exit(findings); got != tt.exit {
				t.Errorf("exit %d, want %d", got, tt.exit)
			}
			complete(t, findings)

			got, file := Text(findings, Form{Width: 80}), filepath.Join("testdata", tt.name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v (run the test with -update)", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// complete checks what every report promises: unique names, a detail, and a remedy for every
// finding that is not OK.
func complete(t *testing.T, findings []Finding) {
	t.Helper()
	seen := map[string]bool{}
	for _, f := range findings {
		if f.Name == "" || seen[f.Name] || f.Detail == "" || marks[f.Status].glyph == "" || (f.Status != OK) != (f.Remedy != "") {
			t.Errorf("incomplete: %+v", f)
		}
		seen[f.Name] = true
	}
}

// find returns the finding with a name on a fit host after a change.
func find(t *testing.T, name string, change func(*Host)) Finding {
	t.Helper()
	h := fit()
	change(&h)
	findings := Run(t.Context(), h, nil)
	complete(t, findings)
	for _, f := range findings {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no finding %q in %+v", name, findings)
	return Finding{}
}

func TestFindings(t *testing.T) {
	params := func(text string) func(*Host) {
		return func(h *Host) { h.DriverParams = func() (string, error) { return text, nil } }
	}
	free := func(n uint64) func(*Host) {
		return func(h *Host) { h.Temp = func() (string, uint64, error) { return "/tmp", n, nil } }
	}
	tests := []struct {
		title, name string
		change      func(*Host)
		status      Status
		detail      string
	}{
		{"old git", "git", func(h *Host) { h.Git = has("2.29.9") }, Missing, "2.29.9"},
		{"old git of another age", "git", func(h *Host) { h.Git = has("1.99.0") }, Missing, "1.99.0"},
		{"oldest git that will do", "git", func(h *Host) { h.Git = has("2.30.0") }, OK, "2.30.0"},
		{"new git", "git", func(h *Host) { h.Git = has("3.0.1") }, OK, "3.0.1"},
		{"git of no version", "git", func(h *Host) { h.Git = has("next") }, Warn, `has an unknown version: "next"`},
		{"little disk", "temporary folder", free(1 << 30), Warn, "/tmp, 1.0 GiB free"},
		{"hardly any disk", "temporary folder", free(255 << 20), Missing, "/tmp, 255 MiB free"},
		{"no disk", "temporary folder", free(0), Missing, "/tmp, 0 bytes free"},
		{"enough disk", "temporary folder", free(2 << 30), OK, "/tmp, 2.0 GiB free"},
		{"folder not writable", "temporary folder", func(h *Host) {
			h.Temp = func() (string, uint64, error) { return "/tmp", 0, errors.New("permission denied") }
		}, Missing, "permission denied"},
		{"compiler that does not run", "C compiler", func(h *Host) { h.CC = lacks(errors.New("asking /bin/cc: exit status 1")) }, Missing, "asking /bin/cc: exit status 1"},
		{"GPU without nvcc", "CUDA compiler", func(h *Host) { h.CUDA = lacks(toolchain.ErrNoCUDA) }, Missing, "not found"},
		{"nvcc that does not run", "CUDA compiler", func(h *Host) { h.CUDA = lacks(fmt.Errorf("%w (one was there)", toolchain.ErrNoCUDA)) }, Missing,
			toolchain.ErrNoCUDA.Error() + " (one was there)"},
		{"GPU without device file", "CUDA compiler", func(h *Host) {
			h.Devices = func() []string { return nil }
			h.CUDA = lacks(toolchain.ErrNoCUDA)
		}, Missing, "not found"},
		{"GPU without ncu", "ncu", func(h *Host) { h.NCU = lacks(fmt.Errorf("ncu was not found: %w", inspect.ErrNoNCU)) }, Warn, "not found"},
		{"counters for everyone", "ncu permission", params("RmProfilingAdminOnly: 0\n"), OK, "every user may read the GPU's counters"},
		{"older name", "ncu permission", params("RestrictProfilingToAdminUsers: 1\n"), Warn, "only administrators may read the GPU's counters"},
		{"administrator", "ncu permission", func(h *Host) {
			params("RmProfilingAdminOnly: 1\n")(h)
			h.Admin = func() bool { return true }
		}, OK, "administrators may read the GPU's counters, and this process is one"},
		{"parameters without it", "ncu permission", params("Mobile: 4294967295\nno colon\n"), Warn, "unknown: the driver does not report who may read the GPU's counters"},
		{"no parameters", "ncu permission", func(h *Host) { h.DriverParams = func() (string, error) { return "", os.ErrNotExist } }, Warn, "not known: file does not exist"},
		{"no NVML", "GPU health", func(h *Host) { h.Health = func(GPU) (Health, error) { return Health{}, dynlib.ErrMissing } }, Warn, dynlib.ErrMissing.Error()},
		{"silent NVML", "GPU clocks", func(h *Host) { h.Health = func(GPU) (Health, error) { return Health{}, nil } }, OK, "the driver does not tell"},
		{"clock without its limit", "GPU clocks", func(h *Host) { h.Health = func(GPU) (Health, error) { return Health{SMClock: new(900)}, nil } }, OK, "SM 900 MHz"},
	}
	for _, tt := range tests {
		t.Run(tt.title, func(t *testing.T) {
			f := find(t, tt.name, tt.change)
			if f.Status != tt.status || f.Detail != tt.detail {
				t.Errorf("got %s %q, want %s %q", f.Status, f.Detail, tt.status, tt.detail)
			}
		})
	}
}

func TestExit(t *testing.T) {
	for _, tt := range []struct {
		name     string
		statuses []Status
		want     int
	}{
		{"nothing looked at", nil, 0},
		{"all well", []Status{OK, OK}, 0},
		{"warnings", []Status{OK, Warn}, 0},
		{"something missing", []Status{Missing, OK}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var findings []Finding
			for _, s := range tt.statuses {
				findings = append(findings, Finding{Status: s})
			}
			if got := Exit(findings); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// TestIncludeSets checks that sets of headers are listed with their content, or with what is wrong
// with them.
func TestIncludeSets(t *testing.T) {
	lib := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(lib, "a.h"), []byte("// a\n"), 0o644), os.WriteFile(filepath.Join(lib, "VERSION"), []byte("4.2\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	sets := measure.IncludeSets{"lib": lib, "none": "/nowhere/at/all"}
	if f := includeFinding("lib", sets); f.Status != OK || !strings.HasPrefix(f.Detail, "4.2, "+lib+", 2 files, sha256 ") {
		t.Errorf("%+v", f)
	}
	if f := includeFinding("none", sets); f.Status != Missing || !strings.Contains(f.Detail, "there is no folder /nowhere/at/all") || !strings.Contains(f.Remedy, "--include none=FOLDER") {
		t.Errorf("%+v", f)
	}
}
