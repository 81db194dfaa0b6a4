package manifest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
)

// A Special is what a specialising compiler knows about the launch of one kernel when it compiles.
// Launches with equal Specials have the same machine code.
type Special struct {
	Entry     string             `json:"entry,omitempty"`    // the function
	Constants map[string]float64 `json:"constants"`          // parameters that are no arguments
	Literals  map[string]Literal `json:"literals,omitempty"` // the same, of those that are no numbers
	Toggles   map[string]int     `json:"toggles,omitempty"`  // constants too, of the kernels that have such a parameter
	Spoken    []string           `json:"spoken,omitempty"`   // toggles that the manifest uses itself, which the kernel need not have
	Warps     int                `json:"warps"`
	Stages    int                `json:"stages"`
	CTAs      int                `json:"ctas"`
	Arguments []SpecialArgument  `json:"arguments"`
	Exact     bool               `json:"exact,omitempty"` // the arguments have their values and shapes
	// Configuration is values that one configuration of @triton.autotune must have; empty where the manifest chooses none.
	Configuration map[string]Literal `json:"configuration,omitempty"`
}

// A SpecialArgument is what is known about an argument. The type is Triton's: *fp32, i32, fp32, u1,
// tensordesc<fp16[64, 64]>, or none for a null pointer. The hint is "16" for multiples of 16, "1"
// for a one, and empty otherwise.
type SpecialArgument struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Hint  string `json:"hint,omitempty"`
	DType DType  `json:"dtype,omitempty"` // of a tensor descriptor's elements
	Block []int  `json:"block,omitempty"` // of a tensor descriptor: its block_shape

	// For functions of @triton.heuristics, which are called at every size: see Specials.
	Value *float64 `json:"value,omitempty"` // of a scalar
	Shape []int    `json:"shape,omitempty"` // of an array
}

// Key is a hash of all of it.
func (s Special) Key() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("kernels: writing a special: %v", err)) // numbers and names are finite
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Specializes reports whether the machine code depends on the problem size: the compiler makes
// different code for different values of constants, and for different classes of arguments.
func (m *Manifest) Specializes() bool { return m.Compiler == Triton }

// tritonTypes are Triton's names of elements.
var tritonTypes = map[DType]string{
	E4M3: "fp8e4nv", E5M2: "fp8e5", F16: "fp16", BF16: "bf16", F32: "fp32", F64: "fp64", I8: "i8", U8: "u8", I16: "i16", U16: "u16",
	I32: "i32", U32: "u32", I64: "i64", U64: "u64", Bool: "i1",
}

const (
	maxWarps  = 32
	maxStages = 16
)

// Specials returns what Triton's just-in-time compiler would know about the kernels of a launch at
// these dims, in order: arrays are at multiples of 16, integers are the narrowest of i32 and i64
// that hold them, with hints for ones and multiples of 16, and floats are fp32. If it is exact, the
// values of scalars and the shapes of arrays are known, too. For other compilers there is one empty
// Special.
func (m *Manifest) Specials(variant string, dims Dims, toggles map[string]int, exact bool) ([]Special, error) {
	if !m.Specializes() {
		return []Special{{}}, nil
	}
	v, err := m.Variant(variant)
	if err != nil {
		return nil, err
	}
	values := m.ToggleValues(variant)
	maps.Copy(values, toggles)
	env := m.Env(dims, values)
	spoken := m.spoken(variant)
	var configuration map[string]Literal
	if m.Autotune != nil {
		plain := m.plainEnv(dims, values)
		if configuration, err = m.Autotune.at(dims, plain); err != nil {
			return nil, err
		}
	}
	var all []Special
	for step, err := range unroll(m.stepsOf(v), env) {
		if err != nil {
			return nil, err
		}
		if !step.kernel() {
			continue
		}
		s := Special{Entry: step.Entry, Toggles: values, Spoken: spoken, Configuration: configuration, Exact: exact}
		if err := m.specialise(&s, *step.Step, step.env); err != nil {
			return nil, step.in(err)
		}
		own, err := step.scalars()
		if err != nil {
			return nil, err
		}
		for _, name := range step.Args {
			if i := slices.IndexFunc(own, func(s ScalarAt) bool { return s.Name == name }); i >= 0 {
				s.Arguments = append(s.Arguments, own[i].special(exact))
				continue
			}
			a, ok := m.passable(name)
			if !ok {
				return nil, fmt.Errorf("%q is neither an argument nor scratch", name)
			}
			known, err := m.specialArgument(a, step.env, dims, values, exact)
			if err != nil {
				return nil, err
			}
			s.Arguments = append(s.Arguments, known)
		}
		all = append(all, s)
	}
	return all, nil
}

// specialise adds the constants and options of one kernel.
func (m *Manifest) specialise(s *Special, step Step, env Env) error {
	constants := maps.Clone(m.Constants)
	if constants == nil {
		constants = Constants{}
	}
	maps.Copy(constants, step.Constants)
	given, err := constants.values(env)
	if err != nil {
		return err
	}
	s.Constants = map[string]float64{}
	for name, value := range given {
		if value.Kind == LiteralNumber {
			s.Constants[name] = value.Number
			continue
		}
		if s.Literals == nil {
			s.Literals = map[string]Literal{}
		}
		s.Literals[name] = value
	}
	s.Warps, s.Stages, s.CTAs = 4, 3, 1
	warps := cmp.Or(step.NumWarps, m.NumWarps)
	for _, option := range []struct {
		expr *Expr
		into *int
		most int64
	}{{warps, &s.Warps, maxWarps}, {cmp.Or(step.NumStages, m.NumStages), &s.Stages, maxStages}, {m.NumCTAs, &s.CTAs, maxCluster}} {
		if option.expr == nil {
			continue
		}
		if err := axis(option.into, option.expr, env, option.most); err != nil {
			return err
		}
	}
	if s.Warps&(s.Warps-1) != 0 {
		return &fault{warps, fmt.Sprintf("is %d", s.Warps), "make it a power of two"}
	}
	return nil
}

// specialArgument returns what is known about one argument.
func (m *Manifest) specialArgument(a *Argument, env Env, dims Dims, toggles map[string]int, exact bool) (known SpecialArgument, err error) {
	known.Name = a.Name
	switch {
	case a.Access == Absent:
		known.Type = "none"
		return known, nil
	case a.Access == Scalar:
		value, err := m.ScalarValue(a, dims, toggles)
		known.Type, known.Hint = scalarSpecial(a.DType, value)
		if exact {
			known.Value = &value
		}
		return known, err
	case a.TensorMap != nil:
		if known.Block, err = m.boxOf(a, env); err != nil {
			return known, err
		}
		known.Type, known.DType = descriptorType(a.DType, known.Block), a.DType
	default:
		known.Type, known.Hint = "*"+tritonTypes[a.DType], "16"
	}
	if exact {
		known.Shape, err = m.ShapeOf(a, dims, toggles)
	}
	return known, err
}

// special returns what is known about a step's own scalar.
func (s ScalarAt) special(exact bool) SpecialArgument {
	known := SpecialArgument{Name: s.Name}
	known.Type, known.Hint = scalarSpecial(s.DType, s.Value)
	if exact {
		known.Value = &s.Value
	}
	return known
}

func scalarSpecial(d DType, value float64) (kind, hint string) {
	switch {
	case d == Bool:
		return "u1", ""
	case d.Float():
		return "fp32", ""
	}
	kind = "i32"
	if value < math.MinInt32 || value > math.MaxInt32 {
		kind = "i64"
	}
	switch {
	case value == 1:
		return kind, "1"
	case math.Mod(value, 16) == 0:
		return kind, "16"
	}
	return kind, ""
}

// spoken returns the toggles that expressions of the implementation use.
func (m *Manifest) spoken(variant string) []string {
	v, _ := m.Variant(variant)
	used := exprsOf(m.Constants, m.Autotune, m.NumWarps, m.NumStages, m.NumCTAs, m.launchOf(v))
	for i := range m.Arguments {
		used = append(used, exprsOf(m.Arguments[i].TensorMap)...)
	}
	var names []string
	for _, t := range m.Toggles {
		if slices.ContainsFunc(used, func(e *Expr) bool { return slices.Contains(e.names, t.Name) }) {
			names = append(names, t.Name)
		}
	}
	return names
}

// Sizes returns every known size at which a variant is launched: the manifest's shapes, and a fixed
// sample of the secret ones.
func (m *Manifest) Sizes(variant string) []Dims {
	return mapped(m.trials(variant, ""), func(t trial) Dims { return t.dims })
}
