package driver

import "fmt"

// A DeviceAttribute is a CUdevice_attribute.
type DeviceAttribute int32

// Attributes of a device. Clock rates are in kHz.
const (
	clockRate              DeviceAttribute = 13
	multiprocessorCount    DeviceAttribute = 16
	kernelExecTimeout      DeviceAttribute = 17
	eccEnabled             DeviceAttribute = 32
	memoryClockRate        DeviceAttribute = 36
	globalMemoryBusWidth   DeviceAttribute = 37
	l2CacheSize            DeviceAttribute = 38
	computeCapabilityMajor DeviceAttribute = 75
	computeCapabilityMinor DeviceAttribute = 76
	maxSharedPerSM         DeviceAttribute = 81
	maxRegistersPerSM      DeviceAttribute = 82
	maxSharedPerBlockOptin DeviceAttribute = 97
	maxPersistingL2        DeviceAttribute = 108
	reservedSharedPerBlock DeviceAttribute = 111
)

// String is the name in cuda.h without its prefix.
func (a DeviceAttribute) String() string {
	if name, ok := deviceAttributeNames[a]; ok {
		return name
	}
	return fmt.Sprintf("device attribute %d", int(a))
}

var deviceAttributeNames = map[DeviceAttribute]string{
	clockRate:              "CLOCK_RATE",
	multiprocessorCount:    "MULTIPROCESSOR_COUNT",
	kernelExecTimeout:      "KERNEL_EXEC_TIMEOUT",
	eccEnabled:             "ECC_ENABLED",
	memoryClockRate:        "MEMORY_CLOCK_RATE",
	globalMemoryBusWidth:   "GLOBAL_MEMORY_BUS_WIDTH",
	l2CacheSize:            "L2_CACHE_SIZE",
	computeCapabilityMajor: "COMPUTE_CAPABILITY_MAJOR",
	computeCapabilityMinor: "COMPUTE_CAPABILITY_MINOR",
	maxSharedPerSM:         "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
	maxRegistersPerSM:      "MAX_REGISTERS_PER_MULTIPROCESSOR",
	maxSharedPerBlockOptin: "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
	maxPersistingL2:        "MAX_PERSISTING_L2_CACHE_SIZE",
	reservedSharedPerBlock: "RESERVED_SHARED_MEMORY_PER_BLOCK",
}
