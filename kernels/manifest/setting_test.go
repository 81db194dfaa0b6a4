package manifest

import (
	"slices"
	"strings"
	"testing"
)

const settingText = `version: 1
name: split
mode: cuda
arguments:
  - {name: x, dtype: f32, access: in, shape: [R, C]}
  - {name: y, dtype: f32, access: out, shape: [R]}
  - {name: rows, dtype: i32, access: scalar, value: R}
  - {name: splits, dtype: i32, access: scalar, setting: SPLITS}
  - {name: params, access: struct, fields: [{name: x, pointer: x}, {name: tiles, dtype: i32, setting: "ceildiv(C, TILE)"}, {name: strides, dtype: i64, settings: [TILE, 1]}, {name: columns, dtype: i32, value: C}]}
reference: {source: reference.cu, entry: reference, dims: [C], launch: {grid: [R], block: [32]}}
tolerance: {abs: 0.001}
shapes: {small: {R: 4, C: 100}, large: {R: 64, C: 4096}}
secret: {C: 1..500}
source: split.cu
entry: split
arch: [sm_90]
toggles:
  SPLITS: {values: [1, 2, 4], default: 2, layer: structure}
  TILE: {values: [32, 64], default: 32, layer: structure}
launch: {grid: [R, SPLITS], block: [128]}
`

func parsedSetting(t *testing.T) *Manifest {
	t.Helper()
	m, err := Parse(FileName, []byte(settingText))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The reference sees no setting, and the kernel is passed each of them in its place.
func TestSettings(t *testing.T) {
	m := parsedSetting(t)
	if got, want := m.DeviceReferencePrototype(), "__global__ void reference(const float *x, float *y, int32_t rows, long long C);"; got != want {
		t.Errorf("the reference is %s\nwant %s", got, want)
	}
	for _, p := range m.ReferenceParameters() {
		if p.Name == "splits" || p.Name == "params" {
			t.Errorf("the reference is passed %s", p.Name)
		}
	}
	if got, want := m.PythonNames(), []string{"x", "rows", "R", "C", "y"}; !slices.Equal(got, want) {
		t.Errorf("a reference in Python knows %q, want %q", got, want)
	}
	params := m.Parameters(nil)
	if len(params) != 4 || params[2].Name != "splits" || params[2].Size != 4 || params[3].Size != 40 {
		t.Errorf("the kernel takes %+v", params)
	}
	splits, _ := m.argument("splits")
	if v, err := m.ScalarValue(splits, m.Shapes[0].Dims, map[string]int{"SPLITS": 4}); err != nil || v != 4 {
		t.Errorf("splits is %v (%v)", v, err)
	}
	structs, _ := m.argument("params")
	composite, _ := structs.Composite(m)
	var values []float64
	for _, p := range composite.Parts {
		if p.Value != nil {
			v, err := m.PartValue(p, m.Shapes[0].Dims, map[string]int{"TILE": 64})
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, v)
		}
	}
	if want := []float64{2, 64, 1, 100}; !slices.Equal(values, want) {
		t.Errorf("the struct holds %v, want %v", values, want)
	}
}

// A change edits settings as it edits a launch. The problem stays as it is, and the edit makes another kernel of equal machine code.
func TestChangedSettings(t *testing.T) {
	base := parsedSetting(t)
	for name, edit := range map[string][2]string{
		"a scalar":                {"setting: SPLITS", "setting: 2*SPLITS"},
		"its toggle":              {"default: 2, layer", "default: 4, layer"},
		"a field":                 {`setting: "ceildiv(C, TILE)"`, `setting: "ceildiv(C, 2*TILE)"`},
		"an element":              {"settings: [TILE, 1]", "settings: [TILE, 2]"},
		"by the size":             {"setting: SPLITS", `setting: "C > 1000 ? 4 : 1"`},
		"the toggle of a struct":  {"default: 32, layer", "default: 64, layer"},
		"its place in the fields": {"{name: tiles, dtype: i32, setting: \"ceildiv(C, TILE)\"}, {name: strides, dtype: i64, settings: [TILE, 1]}", "{name: strides, dtype: i64, settings: [2*TILE, 1]}, {name: tiles, dtype: i32, setting: \"ceildiv(C, TILE)\"}"},
	} {
		t.Run(name, func(t *testing.T) {
			head := strings.Replace(settingText, edit[0], edit[1], 1)
			if head == settingText {
				t.Fatal("the edit changes nothing")
			}
			m, err := Join(FileName, []byte(settingText), []byte(head))
			if err != nil {
				t.Fatal(err)
			}
			if m.Call(m.DefaultVariant) == base.Call(base.DefaultVariant) || m.Dispatch(m.DefaultVariant) == base.Dispatch(base.DefaultVariant) {
				t.Error("the change is the same kernel as the base's")
			}
			if m.Launches(m.DefaultVariant) == base.Launches(base.DefaultVariant) {
				t.Error("the launches are those of the base")
			}
			if differs := Compare(base, m); len(differs) > 0 {
				t.Errorf("the problem has changed: %v", differs)
			}
			if a, b := m.DeviceReferencePrototype(), base.DeviceReferencePrototype(); a != b {
				t.Errorf("the reference is %s, and was %s", a, b)
			}
		})
	}
}

// No setting reaches the problem: not what the reference sees, not the sizes, not what tells one launch of a size from another.
func TestSettingsStayOutOfTheProblem(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"a value made a setting":        {"scalar, value: R}", "scalar, setting: R}", "arguments[2].setting: is set beside value or vector, which the reference sees (delete one)"},
		"a field's value":               {"dtype: i32, value: C}", "dtype: i32, setting: C}", "arguments[4].fields[3]: has 2 of value, vector, array, setting"},
		"a setting made a value":        {"scalar, setting: SPLITS}", "scalar, value: SPLITS}", "arguments[3].value: is required for a scalar"},
		"a setting of an array":         {"access: in, shape: [R, C]}", "access: in, shape: [R, C], setting: 3}", "arguments[0].setting: an array has none"},
		"more elements":                 {"settings: [TILE, 1]", "settings: [TILE, 1, 1]", "arguments[4].fields[2].settings: has 3 elements, and 2 in the base: how many the struct has is part of the problem"},
		"the seed":                      {"setting: SPLITS", "setting: seed", `"seed" in "seed" is not known here (known: R, C, SPLITS, TILE, SMS)`},
		"an input":                      {"setting: SPLITS", "setting: x", `"x" in "x" is not known here`},
		"another argument":              {"setting: SPLITS", "setting: rows", `"rows" in "rows" is not known here`},
		"itself":                        {"setting: SPLITS", "setting: splits", `"splits" in "splits" is not known here`},
		"the name of the shape":         {"setting: SPLITS", "setting: small", `"small" in "small" is not known here`},
		"a value that does not fit":     {"setting: SPLITS", "setting: 5000000000", "is 5000000000"},
		"a toggle of a problem's value": {"scalar, value: R}", "scalar, value: R*SPLITS}", ""}, // the base's value counts
	} {
		t.Run(name, func(t *testing.T) {
			head := strings.Replace(settingText, c.old, c.new, 1)
			if head == settingText {
				t.Fatal("the edit changes nothing")
			}
			m, err := Join(FileName, []byte(settingText), []byte(head))
			if c.want == "" {
				if rows, _ := m.argument("rows"); err != nil || written(rows.Value) != "R" {
					t.Errorf("%v: rows is %v", err, rows)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant …%s…", err, c.want)
			}
		})
	}
	// What the base has as a value stays one: a toggle in it keeps its number, whatever the settings do with it.
	base := strings.Replace(settingText, "scalar, value: R}", "scalar, value: R*SPLITS}", 1)
	_, err := Join(FileName, []byte(base), []byte(strings.Replace(base, "default: 2, layer", "default: 4, layer", 1)))
	if err == nil || !strings.Contains(err.Error(), "4 changes the argument rows, which is of the problem: it is 2 in the base") {
		t.Errorf("a toggle of a value changes with that of a setting: %v", err)
	}
	// Names that only the head has are no parameters.
	extra := strings.Replace(settingText, "reference: {", "  - {name: more, dtype: i32, access: scalar, setting: 1}\nreference: {", 1)
	if m, err := Join(FileName, []byte(settingText), []byte(extra)); err != nil || len(m.Arguments) != 5 {
		t.Errorf("%v: %d arguments", err, len(m.Arguments))
	}
	// Making a setting of a value is a change of the problem, which is told.
	m, err := Parse(FileName, []byte(strings.Replace(settingText, "scalar, value: R}", "scalar, setting: R}", 1)))
	if err != nil || len(Compare(parsedSetting(t), m)) == 0 {
		t.Errorf("%v: nobody is told that the reference does not see rows any more", err)
	}
}

// The CPU calls both sides from one program, with the same scalars.
func TestSettingsOfCPU(t *testing.T) {
	text := "version: 1\nname: a\nmode: cpu\nentry: f\nsource: a.c\nreference: {source: r.c, entry: r}\ntolerance: {abs: 1}\nshapes: {one: {S: 8}}\narguments:\n  - {name: o, dtype: f32, access: out, shape: [S]}\n"
	for _, c := range [][2]string{
		{"  - {name: x, dtype: i32, access: scalar, setting: 1}\n", "arguments[1].setting: is for kernels of cuda mode (write value)"},
		{"  - {name: x, access: struct, fields: [{name: a, dtype: i32, setting: 1}, {name: b, dtype: i32, settings: [1]}]}\n", "arguments[1].fields[1].settings: is for kernels of cuda mode (write array)"},
	} {
		if _, err := Parse(FileName, []byte(text+c[0])); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%v\nwant %s", err, c[1])
		}
	}
}
