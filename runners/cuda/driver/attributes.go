package driver

import "fmt"

// A DeviceAttribute is a CUdevice_attribute.
type DeviceAttribute int32

// Attributes of a device. Clock rates are in kHz.
const (
	MaxThreadsPerBlock        DeviceAttribute = 1
	MaxSharedPerBlock         DeviceAttribute = 8
	WarpSize                  DeviceAttribute = 10
	MaxRegistersPerBlock      DeviceAttribute = 12
	ClockRate                 DeviceAttribute = 13
	MultiprocessorCount       DeviceAttribute = 16
	KernelExecTimeout         DeviceAttribute = 17
	ComputeMode               DeviceAttribute = 20
	ECCEnabled                DeviceAttribute = 32
	PCIBusID                  DeviceAttribute = 33
	PCIDeviceID               DeviceAttribute = 34
	MemoryClockRate           DeviceAttribute = 36
	GlobalMemoryBusWidth      DeviceAttribute = 37
	L2CacheSize               DeviceAttribute = 38
	MaxThreadsPerSM           DeviceAttribute = 39
	PCIDomainID               DeviceAttribute = 50
	ComputeCapabilityMajor    DeviceAttribute = 75
	ComputeCapabilityMinor    DeviceAttribute = 76
	MaxSharedPerSM            DeviceAttribute = 81
	MaxRegistersPerSM         DeviceAttribute = 82
	MaxSharedPerBlockOptin    DeviceAttribute = 97
	MaxBlocksPerSM            DeviceAttribute = 106
	MaxPersistingL2           DeviceAttribute = 108
	ReservedSharedPerBlock    DeviceAttribute = 111
	ClusterLaunch             DeviceAttribute = 120
	TensorMapAccessSupported  DeviceAttribute = 127
	MultiProcessServerEnabled DeviceAttribute = 133
)

// String is the name in cuda.h without its prefix.
func (a DeviceAttribute) String() string {
	if name, ok := deviceAttributeNames[a]; ok {
		return name
	}
	return fmt.Sprintf("device attribute %d", int(a))
}

var deviceAttributeNames = map[DeviceAttribute]string{
	MaxThreadsPerBlock:        "MAX_THREADS_PER_BLOCK",
	MaxSharedPerBlock:         "MAX_SHARED_MEMORY_PER_BLOCK",
	WarpSize:                  "WARP_SIZE",
	MaxRegistersPerBlock:      "MAX_REGISTERS_PER_BLOCK",
	ClockRate:                 "CLOCK_RATE",
	MultiprocessorCount:       "MULTIPROCESSOR_COUNT",
	KernelExecTimeout:         "KERNEL_EXEC_TIMEOUT",
	ComputeMode:               "COMPUTE_MODE",
	ECCEnabled:                "ECC_ENABLED",
	PCIBusID:                  "PCI_BUS_ID",
	PCIDeviceID:               "PCI_DEVICE_ID",
	MemoryClockRate:           "MEMORY_CLOCK_RATE",
	GlobalMemoryBusWidth:      "GLOBAL_MEMORY_BUS_WIDTH",
	L2CacheSize:               "L2_CACHE_SIZE",
	MaxThreadsPerSM:           "MAX_THREADS_PER_MULTIPROCESSOR",
	PCIDomainID:               "PCI_DOMAIN_ID",
	ComputeCapabilityMajor:    "COMPUTE_CAPABILITY_MAJOR",
	ComputeCapabilityMinor:    "COMPUTE_CAPABILITY_MINOR",
	MaxSharedPerSM:            "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
	MaxRegistersPerSM:         "MAX_REGISTERS_PER_MULTIPROCESSOR",
	MaxSharedPerBlockOptin:    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
	MaxBlocksPerSM:            "MAX_BLOCKS_PER_MULTIPROCESSOR",
	MaxPersistingL2:           "MAX_PERSISTING_L2_CACHE_SIZE",
	ReservedSharedPerBlock:    "RESERVED_SHARED_MEMORY_PER_BLOCK",
	ClusterLaunch:             "CLUSTER_LAUNCH",
	TensorMapAccessSupported:  "TENSOR_MAP_ACCESS_SUPPORTED",
	MultiProcessServerEnabled: "MPS_ENABLED",
}

// A FunctionAttribute is a CUfunction_attribute.
type FunctionAttribute int32

// Attributes of a function. The last three can be set.
const (
	FuncMaxThreadsPerBlock FunctionAttribute = 0
	FuncSharedBytes        FunctionAttribute = 1
	FuncConstBytes         FunctionAttribute = 2
	FuncLocalBytes         FunctionAttribute = 3
	FuncRegisters          FunctionAttribute = 4
	FuncPTXVersion         FunctionAttribute = 5
	FuncBinaryVersion      FunctionAttribute = 6
	FuncMaxDynamicShared   FunctionAttribute = 8
	FuncSharedCarveout     FunctionAttribute = 9
	FuncNonPortableCluster FunctionAttribute = 14
)

// String is the name in cuda.h without its prefix.
func (a FunctionAttribute) String() string {
	if name, ok := functionAttributeNames[a]; ok {
		return name
	}
	return fmt.Sprintf("function attribute %d", int(a))
}

var functionAttributeNames = map[FunctionAttribute]string{
	FuncMaxThreadsPerBlock: "MAX_THREADS_PER_BLOCK",
	FuncSharedBytes:        "SHARED_SIZE_BYTES",
	FuncConstBytes:         "CONST_SIZE_BYTES",
	FuncLocalBytes:         "LOCAL_SIZE_BYTES",
	FuncRegisters:          "NUM_REGS",
	FuncPTXVersion:         "PTX_VERSION",
	FuncBinaryVersion:      "BINARY_VERSION",
	FuncMaxDynamicShared:   "MAX_DYNAMIC_SHARED_SIZE_BYTES",
	FuncSharedCarveout:     "PREFERRED_SHARED_MEMORY_CARVEOUT",
	FuncNonPortableCluster: "NON_PORTABLE_CLUSTER_SIZE_ALLOWED",
}
