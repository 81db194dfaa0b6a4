package driver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/dynlib"
)

// cudaHeaders finds the folder of a cuda.h that is new enough to have every name used here, or
// skips the test.
func cudaHeaders(t *testing.T) string {
	t.Helper()
	for _, home := range []string{os.Getenv("CUDA_HOME"), os.Getenv("CUDA_PATH"), "/usr/local/cuda"} {
		dir := filepath.Join(home, "include")
		text, err := os.ReadFile(filepath.Join(dir, "cuda.h"))
		if home == "" || err != nil {
			continue
		}
		found := regexp.MustCompile(`#define CUDA_VERSION (\d+)`).FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s/cuda.h names no version", dir)
		}
		if v, err := strconv.Atoi(string(found[1])); err != nil || v < 13000 {
			t.Skipf("%s/cuda.h is of CUDA version %s, older than 13000", dir, found[1])
		}
		return dir
	}
	t.Skip("no cuda.h: set CUDA_HOME to a CUDA toolkit")
	return ""
}

// TestFakeMatchesTheHeader compares the fake's signatures with NVIDIA's, because the other tests
// rely on the fake.
func TestFakeMatchesTheHeader(t *testing.T) {
	dir := cudaHeaders(t)
	compileFake(t, "-DFAKE_USE_CUDA_H", "-I"+dir)
	compileFake(t, "-DFAKE_USE_CUDA_H", "-DFAKE_OLD", "-I"+dir)
}

func TestNumbersMatchTheHeader(t *testing.T) {
	dir := cudaHeaders(t)
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler (cc)")
	}
	var src strings.Builder
	src.WriteString("#include <cuda.h>\n#include <stddef.h>\n")
	same := func(c string, n uint64) { fmt.Fprintf(&src, "_Static_assert((%s) == %d, \"%[1]s\");\n", c, n) }
	for code, name := range codeNames {
		same(name, uint64(code))
	}
	for a, name := range deviceAttributeNames {
		same("CU_DEVICE_ATTRIBUTE_"+name, uint64(a))
	}
	for name, n := range map[string]uint64{
		"CU_CTX_SCHED_SPIN": scheduleSpin,
		"CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES":       maxDynamicShared,
		"CU_STREAM_NON_BLOCKING":                                1,
		"CU_EVENT_DEFAULT":                                      0,
		"CU_STREAM_CAPTURE_MODE_THREAD_LOCAL":                   1,
		"CU_JIT_ERROR_LOG_BUFFER":                               5,
		"CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES":                    6,
		"CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION":                 attrClusterDimension,
		"CU_LAUNCH_ATTRIBUTE_COOPERATIVE":                       attrCooperative,
		"CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION": attrProgrammatic,
		"CU_LAUNCH_ATTRIBUTE_PRIORITY":                          attrPriority,
		"CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT":  attrCarveout,
		"CU_TENSOR_MAP_DATA_TYPE_UINT8":                         uint64(TensorUint8),
		"CU_TENSOR_MAP_DATA_TYPE_UINT16":                        uint64(TensorUint16),
		"CU_TENSOR_MAP_DATA_TYPE_UINT32":                        uint64(TensorUint32),
		"CU_TENSOR_MAP_DATA_TYPE_UINT64":                        uint64(TensorUint64),
		"CU_TENSOR_MAP_DATA_TYPE_INT32":                         uint64(TensorInt32),
		"CU_TENSOR_MAP_DATA_TYPE_INT64":                         uint64(TensorInt64),
		"CU_TENSOR_MAP_DATA_TYPE_FLOAT16":                       uint64(TensorFloat16),
		"CU_TENSOR_MAP_DATA_TYPE_FLOAT32":                       uint64(TensorFloat32),
		"CU_TENSOR_MAP_DATA_TYPE_FLOAT64":                       uint64(TensorFloat64),
		"CU_TENSOR_MAP_DATA_TYPE_BFLOAT16":                      uint64(TensorBFloat16),
		"CU_TENSOR_MAP_INTERLEAVE_NONE":                         0,
		"CU_TENSOR_MAP_SWIZZLE_NONE":                            uint64(SwizzleNone),
		"CU_TENSOR_MAP_SWIZZLE_32B":                             uint64(Swizzle32B),
		"CU_TENSOR_MAP_SWIZZLE_64B":                             uint64(Swizzle64B),
		"CU_TENSOR_MAP_SWIZZLE_128B":                            uint64(Swizzle128B),
		"CU_TENSOR_MAP_L2_PROMOTION_NONE":                       uint64(PromoteNone),
		"CU_TENSOR_MAP_L2_PROMOTION_L2_64B":                     uint64(Promote64B),
		"CU_TENSOR_MAP_L2_PROMOTION_L2_128B":                    uint64(Promote128B),
		"CU_TENSOR_MAP_L2_PROMOTION_L2_256B":                    uint64(Promote256B),

		"CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA": 1,

		"sizeof(CUdevice)":                               unsafeSize[int32](),
		"sizeof(CUdeviceptr)":                            unsafeSize[DevicePtr](),
		"sizeof(CUuuid)":                                 unsafeSize[UUID](),
		"sizeof(CUtensorMap)":                            unsafeSize[TensorMap](),
		"sizeof(CUlaunchConfig)":                         unsafeSize[launchConfig](),
		"offsetof(CUlaunchConfig, gridDimX)":             uint64(unsafe.Offsetof(launchConfig{}.grid)),
		"offsetof(CUlaunchConfig, blockDimX)":            uint64(unsafe.Offsetof(launchConfig{}.block)),
		"offsetof(CUlaunchConfig, sharedMemBytes)":       uint64(unsafe.Offsetof(launchConfig{}.shared)),
		"offsetof(CUlaunchConfig, hStream)":              uint64(unsafe.Offsetof(launchConfig{}.stream)),
		"offsetof(CUlaunchConfig, attrs)":                uint64(unsafe.Offsetof(launchConfig{}.attrs)),
		"offsetof(CUlaunchConfig, numAttrs)":             uint64(unsafe.Offsetof(launchConfig{}.count)),
		"sizeof(CUlaunchAttribute)":                      unsafeSize[launchAttribute](),
		"offsetof(CUlaunchAttribute, value.clusterDim)":  uint64(unsafe.Offsetof(launchAttribute{}.value)),
		"offsetof(CUlaunchAttribute, value.cooperative)": uint64(unsafe.Offsetof(launchAttribute{}.value)),
		"offsetof(CUlaunchAttribute, value.programmaticStreamSerializationAllowed)": uint64(unsafe.Offsetof(launchAttribute{}.value)),
		"offsetof(CUlaunchAttribute, value.priority)":                               uint64(unsafe.Offsetof(launchAttribute{}.value)),
		"offsetof(CUlaunchAttribute, value.sharedMemCarveout)":                      uint64(unsafe.Offsetof(launchAttribute{}.value)),
	} {
		same(name, n)
	}
	fmt.Fprintf(&src, "_Static_assert(%d %% _Alignof(CUtensorMap) == 0, \"alignment of CUtensorMap\");\n", blockAlign)

	file := filepath.Join(t.TempDir(), "numbers.c")
	if err := os.WriteFile(file, []byte(src.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-std=c11", "-fsyntax-only", "-I"+dir, file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func unsafeSize[T any]() uint64 {
	var v T
	return uint64(unsafe.Sizeof(v))
}

// TestSymbolsMatchTheHeader checks that every entry point is resolved under the name that cuda.h
// gives it today, except those that need a fallback.
func TestSymbolsMatchTheHeader(t *testing.T) {
	dir := cudaHeaders(t)
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler (cc)")
	}
	file := filepath.Join(t.TempDir(), "all.c")
	if err := os.WriteFile(file, []byte("#include <cuda.h>\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(cc, "-E", "-P", "-I"+dir, file).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, sym := range dynlib.Symbols(new(symbols)) {
		if !strings.Contains(string(out), " "+sym.Names[0]+"(") {
			t.Errorf("cuda.h declares no %s", sym.Names[0])
		}
	}
}
