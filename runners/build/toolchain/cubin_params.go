package toolchain

import "encoding/binary"

// A Param is one parameter of a kernel in the parameter table of the machine code.
type Param struct {
	Offset int // from the first parameter
	Size   int
}

// Attributes of .nv.info.<kernel> that describe parameters.
const (
	attributeParameter   = 0x17
	attributeParameterV2 = 0x45
	attributeParamSize   = 0x19
)

// maxParams is far more than fit into the 32,764 bytes that parameters may have.
const maxParams = 8192

// An attribute is one record of .nv.info. A value of two bytes is in data as well.
type attribute struct {
	kind  byte
	sized bool
	head  []byte
	data  []byte
}

// attributes reads a list of records: each has a format, a kind, and either a value of two bytes or a size of two bytes and
// so many bytes.
func attributes(data []byte) ([]attribute, error) {
	const sized = 4
	var list []attribute
	for len(data) > 0 {
		if len(data) < 4 {
			return nil, malformed("half an attribute")
		}
		a := attribute{kind: data[1], sized: data[0] == sized, head: data[:4], data: data[2:4]}
		size := int(binary.LittleEndian.Uint16(data[2:]))
		data = data[4:]
		if a.sized {
			if size > len(data) {
				return nil, malformed("an attribute of %d bytes, of which %d are there", size, len(data))
			}
			a.data, data = data[:size], data[size:]
		}
		list = append(list, a)
	}
	return list, nil
}

// params returns the table of a kernel's parameters, in the order of its declaration. The table
// must be consistent: every ordinal once, no overlap, and no parameter beyond the total size.
func (f *cubinFile) params(symbol string) ([]Param, error) {
	list, err := f.kernelAttributes(symbol)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	byOrdinal := map[int]Param{}
	total := -1
	for _, a := range list {
		var p Param
		ordinal := 0
		switch a.kind {
		case attributeParamSize:
			if len(a.data) != 2 || total >= 0 && total != int(le.Uint16(a.data)) {
				return nil, malformed("two sizes of all parameters")
			}
			total = int(le.Uint16(a.data))
			continue
		case attributeParameter, attributeParameterV2:
			if len(a.data) != 12 {
				return nil, malformed("a parameter in %d bytes", len(a.data))
			}
			ordinal, p = int(le.Uint16(a.data[4:])), Param{Offset: int(le.Uint16(a.data[6:])), Size: int(le.Uint16(a.data[8:]))}
			if a.kind == attributeParameter {
				p.Size = int(le.Uint32(a.data[8:]) >> 18)
			}
		default:
			continue
		}
		if _, twice := byOrdinal[ordinal]; twice || ordinal >= maxParams || p.Size == 0 {
			return nil, malformed("parameter %d is there twice, or has no size", ordinal)
		}
		byOrdinal[ordinal] = p
	}
	params := make([]Param, len(byOrdinal))
	end := 0
	for n := range params {
		p, ok := byOrdinal[n]
		if !ok || p.Offset < end {
			return nil, malformed("parameter %d of %d is missing, or lies over the one before", n, len(params))
		}
		params[n], end = p, p.Offset+p.Size
	}
	if len(params) > 0 && end > total {
		return nil, malformed("parameters end at byte %d of %d", end, total)
	}
	return params, nil
}
