package nvml

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

// nvmlHeaders finds the folder of nvml.h, or skips the test.
func nvmlHeaders(t *testing.T) string {
	t.Helper()
	for _, home := range []string{os.Getenv("CUDA_HOME"), os.Getenv("CUDA_PATH"), "/usr/local/cuda"} {
		dir := filepath.Join(home, "include")
		text, err := os.ReadFile(filepath.Join(dir, "nvml.h"))
		if home == "" || err != nil {
			continue
		}
		if !strings.Contains(string(text), "nvmlDeviceGetTemperatureV") {
			t.Skipf("%s/nvml.h is older than CUDA 12.8", dir)
		}
		return dir
	}
	t.Skip("no nvml.h: set CUDA_HOME to a CUDA toolkit")
	return ""
}

func TestFakeMatchesTheHeader(t *testing.T) {
	compileFake(t, "-DFAKE_USE_NVML_H", "-Wno-deprecated-declarations", "-I"+nvmlHeaders(t))
}

func TestNumbersMatchTheHeader(t *testing.T) {
	dir := nvmlHeaders(t)
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler (cc)")
	}
	var src strings.Builder
	src.WriteString("#include <nvml.h>\n#include <stddef.h>\n")
	same := func(c string, n uint64) { fmt.Fprintf(&src, "_Static_assert((%s) == %d, \"%[1]s\");\n", c, n) }
	for code, name := range codeNames {
		same(name, uint64(code))
	}
	for name, n := range map[string]uint64{
		"nvmlClocksEventReasonGpuIdle":                   uint64(GPUIdle),
		"nvmlClocksEventReasonApplicationsClocksSetting": uint64(ApplicationsClocksSetting),
		"nvmlClocksEventReasonSwPowerCap":                uint64(SwPowerCap),
		"nvmlClocksThrottleReasonHwSlowdown":             uint64(hwSlowdown),
		"nvmlClocksEventReasonSyncBoost":                 uint64(syncBoost),
		"nvmlClocksEventReasonSwThermalSlowdown":         uint64(swThermalSlowdown),
		"nvmlClocksThrottleReasonHwThermalSlowdown":      uint64(HwThermalSlowdown),
		"nvmlClocksThrottleReasonHwPowerBrakeSlowdown":   uint64(hwPowerBrakeSlowdown),
		"nvmlClocksEventReasonDisplayClockSetting":       uint64(displayClockSetting),

		"NVML_CLOCK_GRAPHICS":                uint64(graphicsClock),
		"NVML_CLOCK_SM":                      uint64(SMClock),
		"NVML_CLOCK_MEM":                     uint64(MemoryClock),
		"NVML_TEMPERATURE_GPU":               0,
		"NVML_MEMORY_ERROR_TYPE_UNCORRECTED": 1,
		"NVML_VOLATILE_ECC":                  0,

		"sizeof(nvmlProcessInfo_t)":                  uint64(unsafe.Sizeof(processInfo{})),
		"offsetof(nvmlProcessInfo_t, usedGpuMemory)": uint64(unsafe.Offsetof(processInfo{}.usedMemory)),
		"NVML_FI_DEV_POWER_INSTANT":                  powerInstant,
		"NVML_VALUE_TYPE_UNSIGNED_INT":               valueUint,
		"NVML_VALUE_TYPE_DOUBLE":                     valueDouble,
		"sizeof(nvmlFieldValue_t)":                   uint64(unsafe.Sizeof(fieldValue{})),
		"offsetof(nvmlFieldValue_t, nvmlReturn)":     uint64(unsafe.Offsetof(fieldValue{}.code)),
		"offsetof(nvmlFieldValue_t, value)":          uint64(unsafe.Offsetof(fieldValue{}.value)),
		"nvmlEventTypeXidCriticalError":              xidEvent,
		"sizeof(nvmlEventData_t)":                    uint64(unsafe.Sizeof(eventData{})),
		"offsetof(nvmlEventData_t, eventData)":       uint64(unsafe.Offsetof(eventData{}.data)),
		"sizeof(nvmlTemperature_t)":                  uint64(unsafe.Sizeof(temperature{})),
		"offsetof(nvmlTemperature_t, temperature)":   uint64(unsafe.Offsetof(temperature{}.celsius)),
		"nvmlTemperature_v1":                         uint64(unsafe.Sizeof(temperature{})) | 1<<24,
	} {
		same(name, n)
	}
	// Reasons that are newer than CUDA 13.0 are compared if the header has them.
	for name, n := range map[string]Reasons{"BoardLimit": boardLimit, "Reliability": reliability} {
		fmt.Fprintf(&src, "#ifdef nvmlClocksEventReason%s\n", name)
		same("nvmlClocksEventReason"+name, uint64(n))
		src.WriteString("#endif\n")
	}
	file := filepath.Join(t.TempDir(), "numbers.c")
	if err := os.WriteFile(file, []byte(src.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-std=c11", "-fsyntax-only", "-I"+dir, file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
