// Package safetensors reads files in the safetensors format, which anybody may have written: every size and offset is
// checked, and no tensor overlaps another. It does not interpret values.
//
// A file is the length of its header (8 bytes, little endian), the header (a JSON object with an entry for each tensor),
// and the tensors' bytes without gaps.
package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"
)

// Limits of a file, so that a header cannot make its reader spend memory that its tensors do not have.
const (
	MaxHeader  = 1 << 20
	maxTensors = 1024
	maxAxes    = 16
	maxName    = 256
)

// A DType is the format of a tensor's elements, by its name in the file.
type DType string

// sizes are the bytes of an element. Formats of less than a byte are not read.
var sizes = map[DType]int{
	"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1,
	"I16": 2, "U16": 2, "F16": 2, "BF16": 2,
	"I32": 4, "U32": 4, "F32": 4,
	"I64": 8, "U64": 8, "F64": 8,
}

// Size returns the bytes of an element; 0 for a format that is not read.
func (d DType) Size() int { return sizes[d] }

// A Tensor is one array of a file.
type Tensor struct {
	Name  string
	DType DType
	Shape []int  // none for a scalar
	Data  []byte // part of the file
}

// A File is the content of a file: its tensors in the order of their bytes, and free text about them.
type File struct {
	Tensors  []Tensor
	Metadata map[string]string
}

// Tensor finds a tensor by its name.
func (f *File) Tensor(name string) (Tensor, bool) {
	i := slices.IndexFunc(f.Tensors, func(t Tensor) bool { return t.Name == name })
	if i < 0 {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// entry is how a header describes a tensor.
type entry struct {
	DType   DType    `json:"dtype"`
	Shape   []uint64 `json:"shape"`
	Offsets []uint64 `json:"data_offsets"`
}

// Parse reads a file. The tensors share its memory.
func Parse(data []byte) (*File, error) {
	if len(data) < 8 {
		return nil, fmt.Errorf("%d bytes are no safetensors file: it begins with the length of its header in 8 bytes", len(data))
	}
	length := binary.LittleEndian.Uint64(data)
	if length > MaxHeader || length > uint64(len(data)-8) {
		return nil, fmt.Errorf("the header has %d bytes: the file has %d after it, and at most %d are read", length, len(data)-8, MaxHeader)
	}
	header, body := data[8:8+length], data[8+length:]
	if len(header) == 0 || header[0] != '{' {
		return nil, errors.New("the header is no JSON object: this is no safetensors file")
	}
	f := &File{}
	places := map[string][2]uint64{}
	err := eachKey(header, func(name string, value json.RawMessage) error {
		if name == "__metadata__" {
			return decode(value, &f.Metadata)
		}
		t, from, to, err := parseEntry(name, value, uint64(len(body)))
		if err != nil {
			return fmt.Errorf("tensor %q: %w", shown(name), err)
		}
		t.Data = body[from:to:to]
		places[name] = [2]uint64{from, to}
		f.Tensors = append(f.Tensors, t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(f.Tensors) > maxTensors {
		return nil, fmt.Errorf("there are %d tensors, and at most %d are read", len(f.Tensors), maxTensors)
	}
	return f, f.checkOrder(places, uint64(len(body)))
}

// parseEntry checks what the header says about one tensor.
func parseEntry(name string, value json.RawMessage, body uint64) (t Tensor, from, to uint64, err error) {
	var e entry
	switch err := decode(value, &e); {
	case err != nil:
		return t, 0, 0, err
	case name == "" || len(name) > maxName || strings.ContainsFunc(name, unicode.IsControl):
		return t, 0, 0, fmt.Errorf("a name has 1 to %d characters, without control characters", maxName)
	case e.DType.Size() == 0:
		return t, 0, 0, fmt.Errorf("the format %q is not read", shown(string(e.DType)))
	case e.Shape == nil || len(e.Shape) > maxAxes:
		return t, 0, 0, fmt.Errorf("a shape is a list of up to %d axes", maxAxes)
	case len(e.Offsets) != 2:
		return t, 0, 0, fmt.Errorf("data_offsets has %d numbers, and not 2", len(e.Offsets))
	}
	t = Tensor{Name: name, DType: e.DType, Shape: make([]int, len(e.Shape))}
	size, empty := uint64(e.DType.Size()), false
	for i, n := range e.Shape {
		switch {
		case n > math.MaxInt32:
			return t, 0, 0, fmt.Errorf("axis %d has %d entries, which no file holds", i, n)
		case n == 0:
			empty = true
		case size > body/n+1 && !empty:
			size = math.MaxUint64 >> 8 // more than the file has, whatever follows
		default:
			size *= n
		}
		t.Shape[i] = int(n)
	}
	if empty {
		size = 0
	}
	from, to = e.Offsets[0], e.Offsets[1]
	if from > to || to > body || to-from != size {
		return t, 0, 0, fmt.Errorf("bytes %d to %d of %d are not those of %s%v", from, to, body, e.DType, t.Shape)
	}
	return t, from, to, nil
}

// checkOrder sorts the tensors by their bytes, which must cover the file exactly: bytes that belong to no tensor, or to
// two, are how a file would mean different things to different readers.
func (f *File) checkOrder(places map[string][2]uint64, body uint64) error {
	slices.SortFunc(f.Tensors, func(a, b Tensor) int {
		p, q := places[a.Name], places[b.Name]
		if c := slices.Compare(p[:], q[:]); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	at := uint64(0)
	for _, t := range f.Tensors {
		switch from := places[t.Name][0]; {
		case from < at:
			return fmt.Errorf("tensor %q begins at byte %d, within the tensor before it", shown(t.Name), from)
		case from > at:
			return fmt.Errorf("bytes %d to %d belong to no tensor", at, from)
		}
		at = places[t.Name][1]
	}
	if at != body {
		return fmt.Errorf("bytes %d to %d belong to no tensor", at, body)
	}
	return nil
}

// eachKey walks a JSON object. A key that occurs twice is refused: readers differ in which value they take.
func eachKey(text []byte, do func(key string, value json.RawMessage) error) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return headerError(err)
	}
	seen := map[string]bool{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return headerError(err)
		}
		name := key.(string) // the decoder accepts no other key
		if seen[name] {
			return fmt.Errorf("the header has %q twice", shown(name))
		}
		seen[name] = true
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return headerError(err)
		}
		if err := do(name, value); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return headerError(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("the header goes on after its end")
	}
	return nil
}

// decode reads one value of the header. Its keys may not occur twice either.
func decode(value json.RawMessage, into any) error {
	if len(value) == 0 || value[0] != '{' {
		return errors.New("the header has no JSON object for it")
	}
	if err := eachKey(value, func(string, json.RawMessage) error { return nil }); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return headerError(err)
	}
	return nil
}

// headerError does not quote the file: it may be anything, such as somebody's data.
func headerError(err error) error {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("the header is no JSON from byte %d on", e.Offset)
	}
	return errors.New("the header is no JSON of a safetensors file")
}

// shown shortens a name for a message.
func shown(name string) string {
	if r := []rune(name); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return name
}
