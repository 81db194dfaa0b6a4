package toolchain

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// read makes a Cubin of what the tools left behind.
func (o nvccOutput) read(b NVCCBuild) (*Cubin, error) {
	cubin := &Cubin{
		Image: o.Image, Log: o.Log, Seconds: o.Seconds,
		Diagnostics: diagnosticsIn(o.Log, b.Dir), EntryLine: entryLine(b),
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
	cubin.Entries = f.entries()
	if err := cubin.checkEntry(b); err != nil {
		return nil, err
	}
	if foreign := f.foreign(); len(foreign) > 0 {
		return nil, cubin.refuse("%s calls %s, which it does not define: a kernel must not launch kernels or use the device runtime (dynamic parallelism); remove the call",
			b.Source, strings.Join(foreign, ", "))
	}
	if cubin.Code, err = f.machineCode(); err != nil {
		return nil, err
	}
	cubin.CodeSize, cubin.Globals = f.codeSize(b.Entry), f.globals()
	return cubin, cubin.readUsage(o, b)
}

func (c *Cubin) refuse(format string, args ...any) *CompileError {
	return &CompileError{Summary: fmt.Sprintf(format, args...), Log: c.Log, Diagnostics: c.Diagnostics}
}

func (c *Cubin) checkEntry(b NVCCBuild) error {
	if slices.Contains(c.Entries, b.Entry) {
		return nil
	}
	if len(c.Entries) == 0 {
		return c.refuse("%s defines no kernel: write extern \"C\" __global__ void %s(…)", b.Source, b.Entry)
	}
	var names []string
	for _, e := range c.Entries {
		if shortName(e) == b.Entry {
			return c.refuse("%s defines %s as a C++ function, %s: write extern \"C\" in front of it, so that it can be found by its name", b.Source, b.Entry, e)
		}
		names = append(names, shortName(e))
	}
	return c.refuse("%s has no kernel %s, but %s: write extern \"C\" __global__ void %s(…)", b.Source, b.Entry, strings.Join(names, ", "), b.Entry)
}

// readUsage takes the higher figure of the two tools. The source can print lines that look like those of ptxas, which makes
// it look worse, or the report unreadable; neither is this machine's fault.
func (c *Cubin) readUsage(o nvccOutput, b NVCCBuild) error {
	report, err := ParsePTXAS(o.Log)
	if err != nil {
		return c.refuse("the compiler's resource report is garbled (%v): the source must print nothing that looks like it, such as by #pragma message", err)
	}
	i := slices.IndexFunc(report.Entries, func(u FunctionUsage) bool { return u.Name == b.Entry && u.Arch == b.Arch })
	if i < 0 {
		return c.refuse("the compiler's resource report is garbled (nothing about %s for %s): the source must print nothing that looks like it, such as by #pragma message", b.Entry, b.Arch)
	}
	c.Usage, c.Warnings = report.Entries[i], report.Warnings
	if o.Usage == "" {
		return nil
	}
	functions, err := parseResourceUsage(o.Usage)
	if err != nil {
		return fmt.Errorf("reading the resources of %s: %w", b.Source, err)
	}
	if i = slices.IndexFunc(functions, func(u FunctionUsage) bool { return u.Name == b.Entry }); i < 0 {
		return fmt.Errorf("reading the resources of %s: %w", b.Source, errors.New("cuobjdump does not name "+b.Entry+"; install the cuobjdump of nvcc's own release"))
	}
	dumped := functions[i]
	if n := dumped.StaticShared; n != nil && reservesShared(b.Arch) {
		static := max(0, *n-reservedShared)
		dumped.StaticShared = &static
	}
	c.Usage.raiseAll(dumped)
	return nil
}

// reservedShared is what the driver takes of every block's shared memory from sm_90 on. cuobjdump counts it where the
// kernel has shared memory of its own; ptxas and the source do not.
const reservedShared = 1024

func reservesShared(arch string) bool {
	m := archName.FindStringSubmatch(arch)
	if m == nil {
		return false
	}
	n, err := strconv.Atoi(m[1])
	return err == nil && n >= 90
}
