package manifest

import (
	"slices"
	"strings"
	"testing"
)

func TestDTypes(t *testing.T) {
	sizes := map[DType]int{
		"e4m3": 1, "e5m2": 1, "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "u8": 1, "i32": 4, "i64": 8,
		"i16": 2, "u16": 2, "u32": 4, "u64": 8, "bool": 1,
	}
	for d, size := range sizes {
		if !slices.Contains(DTypes(), d) || d.Size() != size || d.Float() != strings.ContainsAny(string(d), "ef") {
			t.Errorf("%s: size %d, want %d; Float() = %v", d, d.Size(), size, d.Float())
		}
	}
	packed := 0
	for _, d := range DTypes() {
		if d.Packed() {
			packed++
			if d.Bytes(0) != 0 || d.Bytes(1) != 1 || d.Bytes(2) != 1 || d.Bytes(7) != 4 || d.Float() != (d == E2M1) {
				t.Errorf("%s: 7 elements are %d bytes", d, d.Bytes(7))
			}
		} else if d.Bytes(7) != 7*d.Size() {
			t.Errorf("%s: 7 elements are %d bytes", d, d.Bytes(7))
		}
	}
	if len(DTypes()) != len(sizes)+packed || packed != 2 {
		t.Errorf("there are %d formats, want %d and two that are packed", len(DTypes()), len(sizes))
	}
	for name, call := range map[string]func(){"Size": func() { DType("f8").Size() }, "Float": func() { DType("").Float() }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s of an unknown format does not panic", name)
				}
			}()
			call()
		}()
	}
}
