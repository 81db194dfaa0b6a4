package driver

import (
	"errors"
	"fmt"
	"testing"
)

func TestErrorText(t *testing.T) {
	f := openFake(t)
	for name, c := range map[string]struct {
		code Code
		op   string
		want string
	}{
		"a kernel's fault": {IllegalAddress, "launching sdpa",
			"launching sdpa: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered"},
		"with a remedy": {invalidContext, "creating a stream",
			"creating a stream: CUDA_ERROR_INVALID_CONTEXT (201): invalid device context; make the call inside Thread.Do"},
		"known here, not to the driver": {MisalignedAddress, "waiting for the stream",
			"waiting for the stream: CUDA_ERROR_MISALIGNED_ADDRESS (716): the driver gives no description"},
		"known to nobody": {12345, "waiting", "waiting: CUDA_ERROR_12345 (12345): the driver gives no description"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := f.newError(c.code, c.op).Error(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestKernelFault(t *testing.T) {
	for _, c := range []struct {
		code  Code
		fault bool
	}{
		{success, false},
		{invalidValue, false},
		{OutOfMemory, false},
		{invalidImage, false},
		{invalidContext, false},
		{noBinaryForGPU, false},
		{notReady, false},
		{launchOutOfResources, false},
		{invalidClusterSize, false},
		{eccUncorrectable, false},
		{nvLinkUncorrectable, false},
		{contained, false},
		{IllegalAddress, true},
		{launchTimeout, true},
		{assertFailed, true},
		{hardwareStackError, true},
		{illegalInstruction, true},
		{MisalignedAddress, true},
		{invalidAddressSpace, true},
		{invalidPC, true},
		{launchFailed, true},
		{tensorMemoryLeak, true},
	} {
		t.Run(c.code.String(), func(t *testing.T) {
			if got := (&Error{Code: c.code}).KernelFault(); got != c.fault {
				t.Errorf("kernel's fault %v", got)
			}
		})
	}
}

func TestErrorIs(t *testing.T) {
	err := fmt.Errorf("round 3: %w", &Error{Code: OutOfMemory})
	if !errors.Is(err, OutOfMemory) || errors.Is(err, IllegalAddress) {
		t.Error("errors.Is does not compare codes")
	}
	if got := CodeOf(err); got != OutOfMemory {
		t.Errorf("CodeOf = %v", got)
	}
	if got := CodeOf(errors.New("another")); got != success {
		t.Errorf("CodeOf of another error = %v", got)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		got  fmt.Stringer
		want string
	}{
		{multiprocessorCount, "MULTIPROCESSOR_COUNT"},
		{deviceAttribute(9999), "device attribute 9999"},
		{IllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"},
		{Version(13000), "13.0"},
		{Version(12040), "12.4"},
	} {
		if c.got.String() != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}
