package driver

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"unsafe"
)

func TestArgsPacking(t *testing.T) {
	var m TensorMap
	for i := range m {
		m[i] = byte(i)
	}
	for name, c := range map[string]struct {
		args  *Args
		bytes string // of all values, in order
		sizes []int
		align []uintptr
	}{
		"none":         {args: new(Args)},
		"a pointer":    {new(Args).Pointer(0x7F00_1122_3344_5566), "665544332211007f", []int{8}, []uintptr{8}},
		"int after i8": {new(Args).Bytes([]byte{1}, 1).Int32(-2), "01 feffffff", []int{1, 4}, []uintptr{1, 4}},
		"every number": {
			new(Args).Int32(-1).Uint64(4), "ffffffff 0400000000000000", []int{4, 8}, []uintptr{4, 8}},
		"a struct": {new(Args).Int32(7).Bytes([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, 16),
			"07000000 0102030405060708090a0b0c0d0e0f10", []int{4, 16}, []uintptr{4, 16}},
		"a tensor map": {new(Args).Int32(7).TensorMap(m).Int32(8),
			"07000000" + hex.EncodeToString(m[:]) + "08000000", []int{4, 128, 4}, []uintptr{4, 128, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			if len(c.args.params) != len(c.sizes) {
				t.Fatalf("%d parameters, want %d", len(c.args.params), len(c.sizes))
			}
			first := c.args.seal()
			if (first == nil) != (len(c.sizes) == 0) {
				t.Fatalf("array of pointers is %v for %d parameters", first, len(c.sizes))
			}
			var got []byte
			for i, p := range unsafe.Slice(first, len(c.sizes)) {
				if uintptr(p)%c.align[i] != 0 {
					t.Errorf("parameter %d lies at %p, not aligned to %d", i, p, c.align[i])
				}
				got = append(got, unsafe.Slice((*byte)(p), c.sizes[i])...)
			}
			want, err := hex.DecodeString(strings.ReplaceAll(c.bytes, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got  %x\nwant %x", got, want)
			}
		})
	}
}

func TestArgsGrowAfterSealing(t *testing.T) {
	a := new(Args).Int32(1)
	a.seal()
	a.Int32(2)
	values := unsafe.Slice(a.seal(), 2)
	if *(*int32)(values[0]) != 1 || *(*int32)(values[1]) != 2 {
		t.Error("a parameter appended after a launch is lost")
	}
}

func TestArgsCheck(t *testing.T) {
	kernel := []Param{{0, 8}, {8, 4}}
	for name, c := range map[string]struct {
		args *Args
		want string
	}{
		"right":     {new(Args).Pointer(1).Int32(2), ""},
		"too few":   {new(Args).Pointer(1), "the kernel takes 2 parameters and 1 were given"},
		"too many":  {new(Args).Pointer(1).Int32(2).Int32(3), "the kernel takes 2 parameters and 3 were given"},
		"too short": {new(Args).Int32(1).Int32(2), "parameter 0 is 4 bytes and the kernel declares 8"},
		"too long":  {new(Args).Pointer(1).Uint64(2), "parameter 1 is 8 bytes and the kernel declares 4"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.args.check(kernel)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestArgsRefuseBadAlignment(t *testing.T) {
	for name, f := range map[string]func(){
		"not a power of two": func() { new(Args).Bytes([]byte{1}, 3) },
		"zero":               func() { new(Args).Bytes([]byte{1}, 0) },
		"too strict":         func() { new(Args).Bytes([]byte{1}, 256) },
		"no bytes":           func() { new(Args).Bytes(nil, 8) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it did not panic")
				}
			}()
			f()
		})
	}
}
