package toolchain

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	cuobjdumpArch     = regexp.MustCompile(`^arch = (\S+)$`)
	cuobjdumpFunction = regexp.MustCompile(`^ ?Function (\S+):$`)
	cuobjdumpField    = regexp.MustCompile(`^([A-Z]+):(\S*)$`)
)

// parseResourceUsage reads the output of cuobjdump --dump-resource-usage. It knows registers, stack and shared
// memory; spills are ptxas's to tell. Relocatable code lists plain device functions as well.
//
// SHARED is kept as printed. From sm_90 on, a function that uses shared memory at all counts 1024 bytes more than
// ptxas says: those the driver reserves. A stack that the tool calls UNKNOWN stays nil.
//
// Unknown lines and fields are ignored; a known field whose number does not parse is an error that names the line,
// and so is an output without any function.
func parseResourceUsage(out string) ([]FunctionUsage, error) {
	var functions []FunctionUsage
	arch, number := "", 0
	inFunction := false
	for line := range strings.Lines(out) {
		number++
		line = strings.TrimRight(line, " \r\n")
		if m := cuobjdumpArch.FindStringSubmatch(line); m != nil {
			arch, inFunction = m[1], false
			continue
		}
		if m := cuobjdumpFunction.FindStringSubmatch(line); m != nil {
			functions = append(functions, FunctionUsage{Name: m[1], Arch: arch})
			inFunction = true
			continue
		}
		if !inFunction || !strings.HasPrefix(line, "  ") {
			inFunction = false
			continue
		}
		for field := range strings.FieldsSeq(line) {
			if err := resourceField(&functions[len(functions)-1], field); err != nil {
				return nil, fmt.Errorf("cuobjdump output line %d: %w", number, err)
			}
		}
	}
	if len(functions) == 0 {
		return nil, fmt.Errorf("cuobjdump output: no function in %d lines, but --dump-resource-usage output was expected; "+
			"check that the file is a cubin with a __global__ function", number)
	}
	return functions, nil
}

func resourceField(u *FunctionUsage, field string) error {
	m := cuobjdumpField.FindStringSubmatch(field)
	if m == nil {
		return nil
	}
	key, value := m[1], m[2]
	var to **int
	switch {
	case key == "REG":
		to = &u.Registers
	case key == "STACK" && value != "UNKNOWN":
		to = &u.Stack
	case key == "SHARED":
		to = &u.StaticShared
	default:
		return nil
	}
	n, err := strconv.ParseUint(value, 10, 48)
	if err != nil {
		return fmt.Errorf("%q: %w", field, err)
	}
	raise(to, int(n))
	return nil
}
