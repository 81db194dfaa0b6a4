package driver

import "fmt"

// A DeviceAttribute is a CUdevice_attribute.
type DeviceAttribute int32

// Attributes of a device. Clock rates are in kHz.
const (
	maxThreadsPerBlock        DeviceAttribute = 1
	maxSharedPerBlock         DeviceAttribute = 8
	warpSize                  DeviceAttribute = 10
	maxRegistersPerBlock      DeviceAttribute = 12
	clockRate                 DeviceAttribute = 13
	multiprocessorCount       DeviceAttribute = 16
	kernelExecTimeout         DeviceAttribute = 17
	computeMode               DeviceAttribute = 20
	eccEnabled                DeviceAttribute = 32
	pciBusID                  DeviceAttribute = 33
	pciDeviceID               DeviceAttribute = 34
	memoryClockRate           DeviceAttribute = 36
	globalMemoryBusWidth      DeviceAttribute = 37
	l2CacheSize               DeviceAttribute = 38
	maxThreadsPerSM           DeviceAttribute = 39
	pciDomainID               DeviceAttribute = 50
	computeCapabilityMajor    DeviceAttribute = 75
	computeCapabilityMinor    DeviceAttribute = 76
	maxSharedPerSM            DeviceAttribute = 81
	maxRegistersPerSM         DeviceAttribute = 82
	maxSharedPerBlockOptin    DeviceAttribute = 97
	maxBlocksPerSM            DeviceAttribute = 106
	maxPersistingL2           DeviceAttribute = 108
	reservedSharedPerBlock    DeviceAttribute = 111
	clusterLaunch             DeviceAttribute = 120
	tensorMapAccessSupported  DeviceAttribute = 127
	multiProcessServerEnabled DeviceAttribute = 133
)

// String is the name in cuda.h without its prefix.
func (a DeviceAttribute) String() string {
	if name, ok := deviceAttributeNames[a]; ok {
		return name
	}
	return fmt.Sprintf("device attribute %d", int(a))
}

var deviceAttributeNames = map[DeviceAttribute]string{
	maxThreadsPerBlock:        "MAX_THREADS_PER_BLOCK",
	maxSharedPerBlock:         "MAX_SHARED_MEMORY_PER_BLOCK",
	warpSize:                  "WARP_SIZE",
	maxRegistersPerBlock:      "MAX_REGISTERS_PER_BLOCK",
	clockRate:                 "CLOCK_RATE",
	multiprocessorCount:       "MULTIPROCESSOR_COUNT",
	kernelExecTimeout:         "KERNEL_EXEC_TIMEOUT",
	computeMode:               "COMPUTE_MODE",
	eccEnabled:                "ECC_ENABLED",
	pciBusID:                  "PCI_BUS_ID",
	pciDeviceID:               "PCI_DEVICE_ID",
	memoryClockRate:           "MEMORY_CLOCK_RATE",
	globalMemoryBusWidth:      "GLOBAL_MEMORY_BUS_WIDTH",
	l2CacheSize:               "L2_CACHE_SIZE",
	maxThreadsPerSM:           "MAX_THREADS_PER_MULTIPROCESSOR",
	pciDomainID:               "PCI_DOMAIN_ID",
	computeCapabilityMajor:    "COMPUTE_CAPABILITY_MAJOR",
	computeCapabilityMinor:    "COMPUTE_CAPABILITY_MINOR",
	maxSharedPerSM:            "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
	maxRegistersPerSM:         "MAX_REGISTERS_PER_MULTIPROCESSOR",
	maxSharedPerBlockOptin:    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
	maxBlocksPerSM:            "MAX_BLOCKS_PER_MULTIPROCESSOR",
	maxPersistingL2:           "MAX_PERSISTING_L2_CACHE_SIZE",
	reservedSharedPerBlock:    "RESERVED_SHARED_MEMORY_PER_BLOCK",
	clusterLaunch:             "CLUSTER_LAUNCH",
	tensorMapAccessSupported:  "TENSOR_MAP_ACCESS_SUPPORTED",
	multiProcessServerEnabled: "MPS_ENABLED",
}

// A FunctionAttribute is a CUfunction_attribute.
type FunctionAttribute int32

// Attributes of a function. The last three can be set.
const (
	funcMaxThreadsPerBlock FunctionAttribute = 0
	funcSharedBytes        FunctionAttribute = 1
	funcConstBytes         FunctionAttribute = 2
	funcLocalBytes         FunctionAttribute = 3
	funcRegisters          FunctionAttribute = 4
	funcPTXVersion         FunctionAttribute = 5
	funcBinaryVersion      FunctionAttribute = 6
	FuncMaxDynamicShared   FunctionAttribute = 8
	funcSharedCarveout     FunctionAttribute = 9
	funcNonPortableCluster FunctionAttribute = 14
)

// String is the name in cuda.h without its prefix.
func (a FunctionAttribute) String() string {
	if name, ok := functionAttributeNames[a]; ok {
		return name
	}
	return fmt.Sprintf("function attribute %d", int(a))
}

var functionAttributeNames = map[FunctionAttribute]string{
	funcMaxThreadsPerBlock: "MAX_THREADS_PER_BLOCK",
	funcSharedBytes:        "SHARED_SIZE_BYTES",
	funcConstBytes:         "CONST_SIZE_BYTES",
	funcLocalBytes:         "LOCAL_SIZE_BYTES",
	funcRegisters:          "NUM_REGS",
	funcPTXVersion:         "PTX_VERSION",
	funcBinaryVersion:      "BINARY_VERSION",
	FuncMaxDynamicShared:   "MAX_DYNAMIC_SHARED_SIZE_BYTES",
	funcSharedCarveout:     "PREFERRED_SHARED_MEMORY_CARVEOUT",
	funcNonPortableCluster: "NON_PORTABLE_CLUSTER_SIZE_ALLOWED",
}
