package driver

import (
	"fmt"
	"unsafe"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/dynlib"
)

// A Device is one GPU. Its methods need no context and may be called on any goroutine.
type Device struct {
	d       *Driver
	handle  int32
	Ordinal int // index in the driver's list, which CUDA_VISIBLE_DEVICES determines
}

// DeviceCount returns how many GPUs the process may use.
func (d *Driver) DeviceCount() (int, error) {
	var n int32
	err := d.check(d.sym.cuDeviceGetCount.call(uintptr(unsafe.Pointer(&n))), "counting the GPUs")
	return int(n), err
}

// Device returns the GPU at an index in the driver's list.
func (d *Driver) Device(ordinal int) (Device, error) {
	var h int32
	err := d.check(d.sym.cuDeviceGet.call(uintptr(unsafe.Pointer(&h)), uintptr(ordinal)), fmt.Sprintf("opening GPU %d", ordinal))
	return Device{d: d, handle: h, Ordinal: ordinal}, err
}

func (v Device) String() string { return fmt.Sprintf("GPU %d", v.Ordinal) }

// Name returns the product's name, such as NVIDIA H200.
func (v Device) Name() (string, error) {
	buf := make([]byte, 256)
	err := v.d.check(v.d.sym.cuDeviceGetName.call(uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), uintptr(v.handle)), "reading the name of "+v.String())
	return dynlib.CString(buf), err
}

// A UUID identifies one GPU (or one MIG slice) permanently.
type UUID [16]byte

// String returns the form that nvidia-smi and NVML use for a whole GPU.
func (u UUID) String() string {
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// uuid returns the device's UUID. For a MIG slice it is the UUID of the slice, which NVML writes
// with the prefix MIG- instead of GPU-.
func (v Device) uuid() (UUID, error) {
	var u UUID
	err := v.d.check(v.d.sym.cuDeviceGetUuid.call(uintptr(unsafe.Pointer(&u)), uintptr(v.handle)), "reading the UUID of "+v.String())
	return u, err
}

// pciBusID returns domain:bus:device.function in hexadecimal, as NVML also accepts it.
func (v Device) pciBusID() (string, error) {
	buf := make([]byte, 32)
	err := v.d.check(v.d.sym.cuDeviceGetPCIBusId.call(uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), uintptr(v.handle)), "reading the PCI address of "+v.String())
	return dynlib.CString(buf), err
}

// totalMemory returns the size of the device's memory in bytes.
func (v Device) totalMemory() (uint64, error) {
	var n uint64
	err := v.d.check(v.d.sym.cuDeviceTotalMem.call(uintptr(unsafe.Pointer(&n)), uintptr(v.handle)), "reading the memory size of "+v.String())
	return n, err
}

// attribute reads one attribute of the device.
func (v Device) attribute(a deviceAttribute) (int, error) {
	var n int32
	err := v.d.check(v.d.sym.cuDeviceGetAttribute.call(uintptr(unsafe.Pointer(&n)), uintptr(a), uintptr(v.handle)), fmt.Sprintf("reading %s of %s", a, v))
	return int(n), err
}

// Properties are the facts about a device that evidence records.
type Properties struct {
	Name                string
	UUID                UUID
	PCIBusID            string
	ComputeMajor        int
	ComputeMinor        int
	SMs                 int
	TotalMemory         uint64 // bytes
	L2Bytes             int
	SharedPerBlockOptin int  // bytes
	KernelTimeout       bool // the display's watchdog kills long kernels
}

// Arch returns the architecture's name for the compiler, such as sm_90.
func (p Properties) Arch() string { return fmt.Sprintf("sm_%d%d", p.ComputeMajor, p.ComputeMinor) }

// Properties reads all properties of the device.
func (v Device) Properties() (Properties, error) {
	var p Properties
	var err error
	if p.Name, err = v.Name(); err != nil {
		return Properties{}, err
	}
	if p.UUID, err = v.uuid(); err != nil {
		return Properties{}, err
	}
	if p.PCIBusID, err = v.pciBusID(); err != nil {
		return Properties{}, err
	}
	if p.TotalMemory, err = v.totalMemory(); err != nil {
		return Properties{}, err
	}
	var timeout int
	for _, f := range []struct {
		to *int
		a  deviceAttribute
	}{
		{&p.ComputeMajor, computeCapabilityMajor},
		{&p.ComputeMinor, computeCapabilityMinor},
		{&p.SMs, multiprocessorCount},
		{&p.L2Bytes, l2CacheSize},
		{&p.SharedPerBlockOptin, maxSharedPerBlockOptin},
		{&timeout, kernelExecTimeout},
	} {
		if *f.to, err = v.attribute(f.a); err != nil {
			return Properties{}, err
		}
	}
	p.KernelTimeout = timeout != 0
	return p, nil
}

// A deviceAttribute is a CUdevice_attribute.
type deviceAttribute int32

const (
	multiprocessorCount    deviceAttribute = 16
	kernelExecTimeout      deviceAttribute = 17
	l2CacheSize            deviceAttribute = 38
	computeCapabilityMajor deviceAttribute = 75
	computeCapabilityMinor deviceAttribute = 76
	maxSharedPerBlockOptin deviceAttribute = 97
)

// String returns the name in cuda.h without its prefix.
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
