package driver

import "fmt"

// A deviceAttribute is a CUdevice_attribute.
type deviceAttribute int32

// Attributes of a device.
const (
	multiprocessorCount    deviceAttribute = 16
	kernelExecTimeout      deviceAttribute = 17
	l2CacheSize            deviceAttribute = 38
	computeCapabilityMajor deviceAttribute = 75
	computeCapabilityMinor deviceAttribute = 76
	maxSharedPerBlockOptin deviceAttribute = 97
)

// String is the name in cuda.h without its prefix.
func (a deviceAttribute) String() string {
	if name, ok := deviceAttributeNames[a]; ok {
		return name
	}
	return fmt.Sprintf("device attribute %d", int(a))
}

var deviceAttributeNames = map[deviceAttribute]string{
	multiprocessorCount:    "MULTIPROCESSOR_COUNT",
	kernelExecTimeout:      "KERNEL_EXEC_TIMEOUT",
	l2CacheSize:            "L2_CACHE_SIZE",
	computeCapabilityMajor: "COMPUTE_CAPABILITY_MAJOR",
	computeCapabilityMinor: "COMPUTE_CAPABILITY_MINOR",
	maxSharedPerBlockOptin: "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
}
