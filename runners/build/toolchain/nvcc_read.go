package toolchain

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/entryname"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

// read makes a Cubin from the output of the tools.
func (o nvccOutput) read(b NVCCBuild) (*Cubin, error) {
	cubin := &Cubin{
		Image: o.Image, Log: o.Log,
		Diagnostics: diagnosticsIn(o.Log, b.Dir),
	}
	if b.isPTX() {
		ofSource(cubin.Diagnostics)
	}
	if o.Refusal != "" {
		return nil, cubin.refuse("%s", o.Refusal)
	}
	f, err := readCubin(o.Image)
	if errors.Is(err, errHostCode) {
		return nil, cubin.refuse("%s: %v", b.Source, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what nvcc made of %s: %w", b.Source, err)
	}
	if err := cubin.findEntries(b, f); errors.Is(err, errNotCubin) {
		return nil, fmt.Errorf("reading what nvcc made of %s: %w", b.Source, err)
	} else if err != nil {
		return nil, err
	}
	if foreign := f.foreign(); len(foreign) > 0 {
		return nil, cubin.refuse("%s calls %s, which it does not define: a kernel must not launch kernels or use the device runtime (dynamic parallelism); remove the call",
			b.Source, strings.Join(foreign, ", "))
	}
	if cubin.Code, err = f.machineCode(); err != nil {
		return nil, err
	}
	cubin.Globals = f.globals()
	return cubin, cubin.readUsage(o, b)
}

func (c *Cubin) refuse(format string, args ...any) *output.CompileError {
	return &output.CompileError{Summary: fmt.Sprintf(format, args...), Log: c.Log, Diagnostics: c.Diagnostics}
}

const garbled = "the source must print nothing that looks like it, such as by #pragma message"

// readUsage takes the higher figure of the two tools. The source can print lines that look like those of ptxas, which makes
// it look worse, or the report unreadable; neither is this machine's fault.
func (c *Cubin) readUsage(o nvccOutput, b NVCCBuild) error {
	report, err := readPTXAS(o.Log)
	if err != nil {
		return c.refuse("the compiler's resource report is garbled (%v): %s", err, garbled)
	}
	c.Warnings = report.Warnings
	var functions []FunctionUsage
	if o.Usage != "" {
		if functions, err = parseResourceUsage(o.Usage); err != nil {
			return fmt.Errorf("reading the resources of %s: %w", b.Source, err)
		}
	}
	for n := range c.Kernels {
		k := &c.Kernels[n]
		i := slices.IndexFunc(report.Entries, func(u FunctionUsage) bool { return u.Name == k.Symbol && u.Arch == b.Arch })
		if i < 0 {
			return c.refuse("the compiler's resource report is garbled (nothing about %s for %s): %s", entryname.Quote(k.Name), b.Arch, garbled)
		}
		k.Usage = report.Entries[i]
		if o.Usage == "" {
			continue
		}
		if i = slices.IndexFunc(functions, func(u FunctionUsage) bool { return u.Name == k.Symbol }); i < 0 {
			return fmt.Errorf("reading the resources of %s: cuobjdump does not name %s; install the cuobjdump of nvcc's own release", b.Source, entryname.Quote(k.Symbol))
		}
		dumped := functions[i]
		if n := dumped.StaticShared; n != nil && reservesShared(b.Arch) {
			static := max(0, *n-reservedShared)
			dumped.StaticShared = &static
		}
		k.Usage.raiseAll(dumped)
	}
	return nil
}

// reservedShared is what the driver reserves of every block's shared memory from sm_90 on.
// cuobjdump counts it if the kernel has shared memory; ptxas and the source do not.
const reservedShared = 1024

func reservesShared(arch string) bool {
	m := archName.FindStringSubmatch(arch)
	if m == nil {
		return false
	}
	n, err := strconv.Atoi(m[1])
	return err == nil && n >= 90
}
