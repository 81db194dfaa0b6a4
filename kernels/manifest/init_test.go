package manifest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// gather is a kernel that reads by index, with an array for every kind of init.
const gather = `version: 1
name: gather
mode: cpu
entry: gather
source: gather.c
arguments:
  - {name: table, dtype: f32, access: in, shape: [V, D], init: {scale: 0.02}}
  - {name: index, dtype: i32, access: in, shape: [T], init: 0..V-1}
  - {name: rows, dtype: i64, access: in, shape: [B+1], init: {draw: offsets, total: T, lengths: 1..T}}
  - {name: pages, dtype: i32, access: in, shape: [B, P], init: {draw: permutation, range: 0..V-1}}
  - {name: keys, dtype: u32, access: in, shape: [T], init: {draw: sorted, range: 3..V}}
  - {name: mask, dtype: f16, access: in, shape: [T, T], init: {draw: mask, share: 1/4}}
  - {name: o, dtype: f32, access: out, shape: [T, D]}
reference: {source: reference.c, entry: gather_reference, dims: [V, T, D]}
tolerance: {abs: 0}
shapes: {small: {V: 10, D: 4, T: 6, B: 2, P: 3}, large: {V: 1000, D: 64, T: 100, B: 8, P: 16}}
secret: {T: 8..50}
`

func TestFillings(t *testing.T) {
	m, err := Parse("kernel.yaml", []byte(gather))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Filling{
		{Scale: 0.02, Share: 0.25},
		{Draw: "uniform", Bounded: true, Most: 999, Scale: 1, Share: 0.25},
		{Draw: "offsets", Total: 100, Lengths: [2]float64{1, 100}, Scale: 1, Share: 0.25},
		{Draw: "permutation", Bounded: true, Most: 999, Scale: 1, Share: 0.25},
		{Draw: "sorted", Bounded: true, Least: 3, Most: 1000, Scale: 1, Share: 0.25},
		{Draw: "mask", Scale: 1, Share: 0.25},
	} {
		got, err := m.FillingOf(&m.Arguments[i], m.Shapes[1].Dims, nil)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v (%v), want %+v", m.Arguments[i].Name, got, err, want)
		}
	}
	same(t, "reference", m.ReferencePrototype(m.Reference.Entry), "void gather_reference(const double *table, const double *index, const double *rows, const double *pages, "+
		"const double *keys, const double *mask, double *o, int64_t V, int64_t T, int64_t D);")
}

// Whoever forgets the bounds is told what to write, and where.
func TestMistakesOfInputs(t *testing.T) {
	const index = "dtype: i32, access: in, shape: [T], init: 0..V-1"
	for _, test := range []struct{ old, new, want string }{
		{", init: 0..V-1", "", "kernel.yaml:8:5: arguments[1].init: is required for i32, which the kernel may index with (write the bounds it relies on, such as init: 0..V-1; init: any for every value of i32; or init: distribution for the policy's)"},
		{", init: 0..V-1", ", init: any", ""},
		{", init: 0..V-1", ", init: distribution", ""},
		{", init: 0..V-1", ", init: {range: 0..V-1}", ""},
		{index, "dtype: bool, access: in, shape: [T]", ""},
		{index, "dtype: int4, access: in, shape: [T]", ""},
		{index, "dtype: i8, access: in, shape: [T], quantize: {scale: s}}\n  - {name: s, dtype: f32, access: in, shape: [1]", ""},
		{"init: 0..V-1", "init: 1..V-10", `init: "V-10" is 0, less than 1 at shape small`},
		{"dtype: i32, access: in, shape: [T], init: 0..V-1", "dtype: u8, access: in, shape: [T], init: 0..V-1", `init: "V-1" is 999 at shape large`},
		{"init: 0..V-1", "init: 0..V/7", "is not a whole number but"},
		{"init: 0..V-1", "init: 0..W", `"W" in "W" is not known here`},
		{"init: 0..V-1", "init: 0..", "is not an expression"},
		{"init: 0..V-1", "init: [0, 9]", "arguments[1].init"},
		{"init: 0..V-1", "init: below", `"below" is not one of distribution, normal`},
		{"init: 0..V-1", "init: {draw: uniform, total: T}", "init.total: uniform does not read it (delete it, or write draw: offsets)"},
		{"init: 0..V-1", "init: {range: 0..V, scale: 2}", "init.scale: uniform does not read it"},
		{"init: 0..V-1", "init: {draw: sorted}", "init.range: is required for sorted integers"},
		{"init: 0..V-1", "init: {draw: offsets}", "init.total: is required for offsets"},
		{"init: 0..V-1", "init: {draw: offsets, total: V, lengths: 200..300}", "and 5 lengths from 200 to 300 do not add up to it at shape small"},
		{"init: 0..V-1", "init: {draw: permutation, range: 0..4}", `"4" leaves 5 values for 6 elements that all differ at shape small`},
		{"init: {draw: permutation, range: 0..V-1}", "init: {draw: permutation, range: 0..15, each: row}", ""},
		{"dtype: i32, access: in, shape: [T], init: 0..V-1", "dtype: u8, access: in, shape: [V], init: permutation", "has 1000 elements, more than u8 has values"},
		{"init: 0..V-1", "init: {draw: causal}", "a causal mask has rows and columns"},
		{"share: 1/4", "share: 1.5", `"1.5" is 1.5 at shape small`},
		{"dtype: f16, access: in, shape: [T, T]", "dtype: e4m3, access: in, shape: [T, T]", "e4m3 keeps no infinities"},
		{"init: {scale: 0.02}", "init: {scale: 0}", `"0" is 0 at shape small`},
		{"init: {scale: 0.02}", "init: any", "any is of integers"},
		{"init: {scale: 0.02}", "init: permutation", "permutation are whole numbers, and f32 is none"},
		{"dtype: f32, access: out, shape: [T, D]", "dtype: int4, access: out, shape: [T, D]", ""},
		{"dims: [V, T, D]", "dims: [V, N]", `reference.dims[1]: "N" is no dim of the shapes`},
		{"dims: [V, T, D]", "dims: [V, V]", `reference.dims[1]: "V" is passed already`},
		{"{name: o,", "{name: V, dtype: i32, access: scalar, value: V}\n  - {name: o,", `reference.dims[0]: "V" is an argument, which the reference sees already`},
		{"shape: [V, D], init: {scale: 0.02}", "shape: [V], fields: [{name: d, dtype: f32}]", "arguments[0].dtype: an array of structs has none"},
		{"dtype: f32, access: in, shape: [V, D], init: {scale: 0.02}", "access: in, shape: [V], fields: [{name: d, dtype: f32}, {name: q, dtype: u8, count: 16}]", "fields[1].init: is required for u8"},
		{"dtype: f32, access: in, shape: [V, D], init: {scale: 0.02}", "access: in, shape: [V], fields: [{name: d, dtype: f32}, {name: d, dtype: e2m1, count: 4}]", `fields[1].name: "d" is the name of an earlier field too`},
		{"dtype: f32, access: in, shape: [V, D], init: {scale: 0.02}", "access: in, shape: [V], fields: [{name: q, dtype: int4, count: 3}]", `"3" is an odd count at shape small`},
		{"dtype: f32, access: in, shape: [V, D], init: {scale: 0.02}", "access: inout, shape: [V], fields: [{name: q, dtype: f32}], tolerance: {abs: 1}", "arguments[0].tolerance: an array of structs has none (write it for a field, or delete it)"},
		{"dtype: f32, access: in, shape: [V, D], init: {scale: 0.02}", "access: out, shape: [V], fields: [{name: q, dtype: f32, init: ones}]", "fields[0].init: an output is poisoned before every launch"},
		{"dtype: f32, access: in, shape: [V, D], init: {scale: 0.02}", "access: in, shape: [V], fields: [{name: q, dtype: f32, tolerance: {abs: 1}}]", "fields[0].tolerance: an input is not compared"},
		{"name: table, dtype: f32, access: in, shape: [V, D], init: {scale: 0.02}", "name: table, access: in, shape: [V], fields: [{name: index, dtype: f32}]}\n  - {name: table_index, dtype: f32, access: in, shape: [V]", "fields[0].name: the reference gets the member as table_index, which is an argument too"},
		{"dtype: f32, access: in, shape: [V, D], init: {scale: 0.02}", "access: in, shape: [V], fields: [{name: q, dtype: f32, value: 3}]", "an element of an array is filled by its init"},
	} {
		text := strings.Replace(gather, test.old, test.new, 1)
		if text == gather {
			t.Fatalf("no %q", test.old)
		}
		_, err := Parse("kernel.yaml", []byte(text))
		if test.want == "" {
			if err != nil {
				t.Errorf("%s: %v", test.new, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one that says %q", test.new, err, test.want)
		}
	}
}

func TestThreads(t *testing.T) {
	for threads, want := range map[string]int{"": 1, "threads: 1\n": 1, "threads: 64\n": 64, "threads: 0\n": 0, "threads: 65\n": 0, "threads: many\n": 0} {
		m, err := Parse("kernel.yaml", []byte(threads+gather))
		if err == nil != (want > 0) || err == nil && m.Threads != want || err != nil && !strings.Contains(err.Error(), "kernel.yaml:1:10: threads: ") {
			t.Errorf("%q: %v", threads, err)
		}
	}
	for _, text := range []string{goodCUDA, goodCommand} {
		if _, err := Parse("kernel.yaml", []byte("threads: 2\n"+text)); err == nil || !strings.Contains(err.Error(), "threads: is not read in ") {
			t.Errorf("another mode has threads: %v", err)
		}
	}
}

// Structs within structs lie as the compiler lays them, whatever is deep in them, and none holds itself.
func TestNestedStructs(t *testing.T) {
	nested := func(tile string) string {
		return strings.NewReplacer("reference: {source: r.c", "  - {name: tile, access: struct, fields: "+tile+"}\n  - {name: corner, access: struct, fields: [{name: at, dtype: u32, vector: [1, 2]}, {name: end, dtype: u8, value: 3}]}\nreference: {source: r.c",
			"{name: heads, dtype: u8, value: 7}", "{name: heads, dtype: u8, value: 7}\n      - {name: tile, struct: tile}\n      - {name: second, struct: corner}").Replace(byValue)
	}
	good := nested("[{name: x, dtype: i8, value: 1}, {name: corner, struct: corner}, {name: y, dtype: i16, array: [1, 2, 3]}]")
	m, err := Parse("kernel.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	checkLayout(t, m)
	for _, p := range m.Parameters(nil) {
		if p.Name == "tile" || p.Name == "corner" {
			t.Errorf("%s is a parameter of its own", p.Name)
		}
	}
	for tile, want := range map[string]string{
		"[{name: x, struct: tile}]":                    "p holds structs more than 8 deep, or itself (take one out)",
		"[{name: x, struct: p}]":                       "holds structs more than 8 deep, or itself",
		"[{name: x, struct: q}]":                       "q is no struct (name an argument with access: struct)",
		"[{name: x, struct: none}]":                    "none is no struct",
		"[{name: x, struct: nobody}]":                  `"nobody" is no argument (declare the struct among the arguments)`,
		"[{name: x, struct: corner, dtype: f32}]":      "a struct has none (delete it)",
		"[{name: x, dtype: f32, value: 1, init: any}]": "a struct by value has none",
	} {
		if _, err := Parse("kernel.yaml", []byte(nested(tile))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one that says %q", tile, err, want)
		}
	}
}

// An array of structs has the layout that C gives it.
func TestElementLayout(t *testing.T) {
	text := strings.Replace(gather, "dtype: f32, access: in, shape: [V, D], init: {scale: 0.02}",
		"access: in, shape: [V], fields: [{name: id, dtype: u8, init: any}, {name: d, dtype: f16, count: 2}, {name: at, dtype: f64}, {name: qs, dtype: int4, count: D}, {name: tail, dtype: i16, init: any}]", 1)
	m, err := Parse("kernel.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	e, err := m.ElementOf(&m.Arguments[0], m.Shapes[1].Dims, nil)
	if err != nil {
		t.Fatal(err)
	}
	source := "struct s { uint8_t id; uint16_t d[2]; double at; uint8_t qs[32]; int16_t tail; };\n" +
		fmt.Sprintf("_Static_assert(sizeof(struct s) == %d && _Alignof(struct s) == %d, \"all\");\n", e.Size, e.Align)
	for _, f := range e.Members {
		name := strings.TrimPrefix(f.Name, "table_")
		source += fmt.Sprintf("_Static_assert(offsetof(struct s, %s) == %d, \"%[1]s\");\n", name, f.Offset)
	}
	compiles(t, source)
	same(t, "reference", m.ReferencePrototype(m.Reference.Entry), "void gather_reference(const double *table_id, const double *table_d, const double *table_at, const double *table_qs, const double *table_tail, "+
		"const double *index, const double *rows, const double *pages, const double *keys, const double *mask, double *o, int64_t V, int64_t T, int64_t D);")
}
