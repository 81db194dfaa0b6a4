package toolchain

import (
	"encoding/binary"
	"slices"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/elf"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/entryname"
)

// kernelAttributes are the records of .nv.info about one kernel.
func (f *cubinFile) kernelAttributes(symbol string) ([]attribute, error) {
	i := slices.IndexFunc(f.sections, func(s elf.Section) bool { return s.Kind == sectionInfo && s.Name == ".nv.info."+symbol })
	if i < 0 {
		return nil, malformed("nothing describes the parameters of %s", entryname.Quote(symbol))
	}
	return attributes(f.sections[i].Data)
}

// usage returns what the code says about a kernel's resources: registers, stack and static shared
// memory. It does not record spills.
func (f *cubinFile) usage(symbol, arch string) FunctionUsage {
	u := FunctionUsage{Name: symbol, Arch: arch}
	symbols := f.symtab()
	for _, s := range f.sections {
		if s.Name == ".nv.shared."+symbol {
			static := int(min(s.Size, maxSharedData))
			if reservesShared(arch) {
				static = max(0, static-reservedShared)
			}
			u.StaticShared = &static
		}
		if s.Kind != sectionInfo || s.Name != ".nv.info" {
			continue
		}
		list, err := attributes(s.Data)
		if err != nil {
			continue // machineCode reports the error
		}
		for _, a := range list {
			into := map[byte]**int{attributeRegisters: &u.Registers, attributeFrameSize: &u.Stack, attributeMinStackSize: &u.Stack}[a.kind]
			if into == nil || len(a.data) != 8 {
				continue
			}
			number, value := binary.LittleEndian.Uint32(a.data), binary.LittleEndian.Uint32(a.data[4:])
			if int64(number) < int64(len(symbols)) && symbols[number].Name == symbol {
				raise(into, int(value))
			}
		}
	}
	return u
}
