package manifest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// byValue is a manifest with every kind of parameter by value.
const byValue = `
version: 1
name: forward
mode: cpu
source: k.c
entry: forward
arguments:
  - {name: q, dtype: f16, access: in, shape: [S, D]}
  - {name: out, dtype: f32, access: out, shape: [S, D]}
  - {name: flag, dtype: bool, access: scalar, value: causal}
  - {name: little, dtype: i16, access: scalar, value: -S}
  - {name: grid, dtype: u32, access: scalar, vector: [S, D, 1]}
  - {name: bias4, dtype: f32, access: scalar, vector: [1, 2, 3, 4.5]}
  - {name: none, access: absent}
  - name: p
    access: struct
    fields:
      - {name: q, pointer: q}
      - {name: heads, dtype: u8, value: 7}
      - {name: scale, dtype: f32, value: 1/sqrt(D)}
      - {name: on, dtype: bool, value: 1}
      - {name: strides, dtype: i64, array: [S*D, D, 1]}
      - {name: bias, pointer: none}
      - {name: grid, dtype: u32, vector: [S, D, 1]}
      - {name: pair, dtype: f16, vector: [1, 2]}
      - {name: quad, dtype: f32, vector: [1, 2, 3, 4]}
      - {name: tail, dtype: i16, value: -2}
  - {name: n, dtype: u64, access: scalar, value: S}
reference: {source: r.c, entry: r}
tolerance: {abs: 1}
shapes: {one: {S: 16, D: 64, causal: 1}}
`

func TestByValue(t *testing.T) {
	m, err := Parse("kernel.yaml", []byte(byValue))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range m.Parameters(nil) {
		got = append(got, fmt.Sprintf("%s %s %d+%d", p.Name, p.Type, p.Offset, p.Size))
	}
	want := []string{
		"out pointer to f32 0+8", "flag bool 8+1", "little i16 10+2", "grid vector of 3 u32 12+12", "bias4 vector of 4 f32 32+16",
		"none null pointer 48+8", "p struct 64+112", "n u64 176+8",
	}
	same(t, "parameters", strings.Join(got, "\n"), strings.Join(want, "\n"))
	if r := m.ReferencePrototype("r"); r != "void r(const double *q, double *out, bool flag, int16_t little, uint64_t n);" {
		t.Errorf("reference %s", r)
	}
}

// The layout is the one that the system's C compiler makes of the generated declaration.
func TestLayoutIsTheCompilers(t *testing.T) {
	m, err := Parse("kernel.yaml", []byte(byValue))
	if err != nil {
		t.Fatal(err)
	}
	if checked := checkLayout(t, m); checked != 3+4+1+3+1+2+3+2+4+1+1 {
		t.Errorf("%d parts", checked)
	}
}

// checkLayout asks the compiler about every part of every composite, and counts them.
func checkLayout(t *testing.T, m *Manifest) int {
	t.Helper()
	var source strings.Builder
	source.WriteString(m.CPrototype("forward") + "\n")
	checked := 0
	for i := range m.Arguments {
		a := &m.Arguments[i]
		c, ok := a.Composite(m)
		if !ok || m.Inside(a.Name) {
			continue
		}
		fmt.Fprintf(&source, "_Static_assert(sizeof(%s) == %d && _Alignof(%s) == %d, \"%s\");\n", a.cStruct(), c.Size, a.cStruct(), c.Align, a.Name)
		for _, p := range c.Parts {
			path := strings.TrimPrefix(p.Name, a.Name+".")
			if a.Access == Scalar {
				path = p.Name
			}
			fmt.Fprintf(&source, "_Static_assert(offsetof(%s, %s) == %d, \"%s\");\n", a.cStruct(), path, p.Offset, p.Name)
			checked++
		}
	}
	compiles(t, source.String())
	return checked
}

// compiles wants the system's C compiler to take a source.
func compiles(t *testing.T, source string) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err)
	}
	source = "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n" + source
	file := filepath.Join(t.TempDir(), "layout.c")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-fsyntax-only", "-Wall", "-Werror", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, source)
	}
}

func TestMistakesByValue(t *testing.T) {
	for _, test := range []struct{ old, new, want string }{
		{"value: causal}", "value: 2*causal}", "is 2"},
		{"dtype: i16, access: scalar, value: -S", "dtype: u16, access: scalar, value: -S", "arguments[3].value"},
		{"{name: heads, dtype: u8, value: 7}", "{name: heads, dtype: u8, value: 256}", "is 256"},
		{"{name: heads, dtype: u8, value: 7}", "{name: heads, dtype: u8}", "arguments[7].fields[1]: has 0 of value, vector, array, setting, settings, pointer, tensor_map, struct (write one)"},
		{"{name: heads, dtype: u8, value: 7}", "{name: heads, dtype: u8, value: 7, pointer: q}", "has 2 of value, vector, array, setting, settings, pointer, tensor_map, struct (write one)"},
		{"{name: heads, dtype: u8, value: 7}", "{name: heads, value: 7}", "fields[1].dtype: is required (write e.g. dtype: f32)"},
		{"{name: heads, dtype: u8, value: 7}", "{name: scale, dtype: u8, value: 7}", `fields[2].name: "scale" is the name of an earlier field too (choose another)`},
		{"{name: heads, dtype: u8, value: 7}", "{name: heads, dtype: u8, value: HEADS}", `"HEADS" in "HEADS" is not known here`},
		{"{name: q, pointer: q}", "{name: q, pointer: k}", `fields[0].pointer: "k" is no argument (declare the array among the arguments or the scratch, or write none for a null pointer)`},
		{"{name: q, pointer: q}", "{name: q, pointer: flag}", "fields[0].pointer: flag is no array (name an argument with a shape)"},
		{"{name: q, pointer: q}", "{name: q, pointer: q, dtype: f32}", "fields[0].dtype: a pointer has that of its argument (delete it)"},
		{"vector: [1, 2]}", "vector: [1]}", "has 1 lanes (write 2 to 4)"},
		{"{name: none, access: absent}", "{name: none, access: absent, dtype: f32}", "dtype: absent has none (delete it, or write another access)"},
		{"access: struct", "access: in", "arguments[7].shape: is required for an array"},
	} {
		text := strings.Replace(byValue, test.old, test.new, 1)
		if text == byValue {
			t.Fatalf("no %q", test.old)
		}
		if _, err := Parse("kernel.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one that says %q", test.new, err, test.want)
		}
	}
}

// Structs in structs in structs multiply: a page of text must not take a day to read.
func TestStructsWithoutEnd(t *testing.T) {
	holding := func(levels, fields int, last string) string {
		var b strings.Builder
		for i := range levels {
			fmt.Fprintf(&b, "  - name: s%d\n    access: struct\n    fields:\n", i)
			for j := range fields {
				if i < levels-1 {
					fmt.Fprintf(&b, "      - {name: f%d, struct: s%d}\n", j, i+1)
				} else {
					fmt.Fprintf(&b, "      - {name: f%d, %s}\n", j, last)
				}
			}
		}
		return strings.Replace(goodCUDA, "arguments:\n", "arguments:\n"+b.String(), 1)
	}
	const scalar = "dtype: f32, value: 1"
	for name, c := range map[string]struct{ text, want string }{
		"many of many":       {holding(8, 64, scalar), "arguments[0].fields: has more than 4096 members with those of the structs in it (take some out)"},
		"itself, many times": {holding(1, 64, "struct: s0"), "arguments[0].fields[0].struct: s0 holds structs more than 8 deep, or itself (take one out)"},
		"each other":         {holding(3, 64, "struct: s0"), "holds structs more than 8 deep, or itself (take one out)"},
		"too deep":           {holding(11, 1, scalar), "arguments[0].fields[0].struct: s0 holds structs more than 8 deep, or itself (take one out)"},
	} {
		if _, err := Parse("kernel.yaml", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if _, err := Parse("kernel.yaml", []byte(holding(8, 2, scalar))); err != nil {
		t.Errorf("256 numbers, 8 deep: %v", err)
	}
}
