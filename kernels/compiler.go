package kernels

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// A Compiler is what turns a cuda kernel's source into machine code. All of them end in a cubin, which is launched and judged in
// the same way.
type Compiler string

const (
	NVCC    Compiler = "nvcc"
	Triton  Compiler = "triton"  // a Python function, compiled ahead of time
	PTX     Compiler = "ptx"     // ptxas alone
	Program Compiler = "command" // a program of the repository, which writes a cubin and says how to launch it
)

var compilers = []Compiler{NVCC, Triton, PTX, Program}

func (c *Compiler) UnmarshalStrict(n *strict.Node) { strict.Word(n, c, compilers) }
func (c *Compiler) JSONSchema() map[string]any     { return strict.WordSchema(compilers) }

// A compilerRule is what a compiler's manifests have.
type compilerRule struct {
	suffix  string   // of sources
	sources []string // see defaultSources
	refused []string // fields that it does not read
	flags   flagList // none where it is empty
	// launches tells that the compiler says how many threads a block has and what shared memory it needs.
	launches bool
}

var compilerRules = map[Compiler]compilerRule{
	NVCC:    {suffix: ".cu", sources: defaultSources[ModeCUDA], refused: append(slices.Clone(tritonFields), "build"), flags: flagLists[ModeCUDA]},
	PTX:     {suffix: ".ptx", sources: []string{"*.ptx"}, refused: append(slices.Clone(tritonFields), "build", "include", "toggles"), flags: flagList{ptxasFlags, ptxasFlagsPrompt}},
	Triton:  {suffix: ".py", sources: []string{"*.py"}, refused: []string{"build", "include", "flags"}, launches: true},
	Program: {sources: []string{"**"}, refused: append(slices.Clone(tritonFields), "include", "flags"), launches: true},
}

var tritonFields = []string{"constants", "num_warps", "num_stages", "num_ctas"}

// CompilerLaunches tells whether the kernel's compiler says how large a block is, and not the manifest.
func (m *Manifest) CompilerLaunches() bool { return compilerRules[m.Compiler].launches }

// checkCompiler reports what a compiler does not read, and what it needs.
func (c *checker) checkCompiler() {
	m, n := c.m, c.n
	if m.Mode != ModeCUDA {
		for _, field := range append([]string{"compiler", "build"}, tritonFields...) {
			if given(n, field) && m.Mode != "" {
				c.errorf(n.Child(field), "is not read in %s mode (delete it)", m.Mode)
			}
		}
		return
	}
	if m.Compiler == "" {
		if n.Has("compiler") {
			return // refused already
		}
		m.Compiler = NVCC
	}
	rule := compilerRules[m.Compiler]
	for _, field := range rule.refused {
		if given(n, field) {
			c.errorf(n.Child(field), "is not read with compiler: %s (delete it)", m.Compiler)
		}
	}
	for _, v := range m.Variants {
		own := n.Child("variants", v.Name)
		if slices.Contains(rule.refused, "flags") && given(own, "flags") {
			c.errorf(own.Child("flags"), "is not read with compiler: %s (delete it)", m.Compiler)
		}
		at := own.Child("source")
		if !n.Has("variants") {
			at = n.Child("source")
		}
		if v.Source != "" && rule.suffix != "" && path.Ext(v.Source) != rule.suffix {
			c.errorf(at, "%q is no source for compiler: %s (its name must end in %s%s)", v.Source, m.Compiler, rule.suffix, otherCompiler(v.Source))
		}
		c.checkBlock(v.Launch, own.Child("launch"))
	}
	c.checkBlock(m.Launch, n.Child("launch"))
	switch m.Compiler {
	case Triton:
		c.checkTriton()
	case Program:
		if !given(n, "build") {
			c.errorf(n.Child("build"), "is required with compiler: command (write e.g. build: [python3, build.py])")
		}
		checkArgv(n, "build", m.Build)
	}
}

// otherCompiler is a hint for sources whose name tells the compiler.
func otherCompiler(source string) string {
	for _, other := range compilers {
		if s := compilerRules[other].suffix; s != "" && path.Ext(source) == s {
			return fmt.Sprintf("; write compiler: %s for this one", other)
		}
	}
	return ""
}

// checkBlock holds the launch against who decides on the block.
func (c *checker) checkBlock(l *Launch, at *strict.Node) {
	switch {
	case l == nil:
	case !c.m.CompilerLaunches() && !at.Has("block"):
		c.errorf(at.Child("block"), "is required (write e.g. block: [128])")
	case c.m.CompilerLaunches():
		for _, field := range []string{"block", "shared_memory", "cluster", "max_threads"} {
			if at.Has(field) {
				c.errorf(at.Child(field), "is what compiler: %s says itself (delete it)", c.m.Compiler)
			}
		}
	}
}

var pythonName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

func (c *checker) checkTriton() {
	m, n := c.m, c.n
	if m.Entry != "" && !pythonName.MatchString(m.Entry) {
		c.errorf(n.Child("entry"), "%q is no name of a Python function (write e.g. softmax_kernel)", m.Entry)
	}
	if len(m.Constants) > maxNamed {
		c.errorf(n.Child("constants"), "has %d entries (write at most %d)", len(m.Constants), maxNamed)
	}
	for _, p := range n.Child("constants").Pairs() {
		switch {
		case !pythonName.MatchString(p.Key):
			c.errorf(p, "%q is no name of a parameter (write letters, digits and _)", p.Key)
		case slices.ContainsFunc(m.Toggles, func(t Toggle) bool { return t.Name == p.Key }):
			c.errorf(p, "%q is a toggle, which is a constant already (delete it here)", p.Key)
		}
	}
	for i := range m.Arguments {
		a := &m.Arguments[i]
		if a.Access == Struct || len(a.Vector) > 0 || a.TensorMap != nil {
			c.errorf(itemOf(n.Child("arguments"), i), "%s cannot be passed to a Triton kernel yet: structs, vectors and tensor maps are for CUDA (pass arrays and scalars)", a.Name)
		}
	}
}

// sourcesByDefault is what a change may touch where the manifest does not say.
func (m *Manifest) sourcesByDefault() []string {
	if m.Mode == ModeCUDA && m.Compiler != "" {
		return compilerRules[m.Compiler].sources
	}
	return defaultSources[m.Mode]
}

// flagList is the flags that the kernel's compiler may be given; false where it takes none.
func (m *Manifest) flagList() (flagList, bool) {
	if m.Mode == ModeCUDA && m.Compiler != "" {
		list := compilerRules[m.Compiler].flags
		return list, list.allowed != nil
	}
	list, known := flagLists[m.Mode]
	return list, known
}

// compilerExprs is every expression that a compiler is told the value of.
func (m *Manifest) compilerExprs() []*Expr {
	var all []*Expr
	for _, name := range sortedKeys(m.Constants) {
		all = append(all, m.Constants[name])
	}
	for _, e := range []*Expr{m.NumWarps, m.NumStages, m.NumCTAs} {
		if e != nil {
			all = append(all, e)
		}
	}
	return all
}

// A Special is what a specialising compiler knows of a launch when it compiles. Launches of which it knows the same have the
// same machine code.
type Special struct {
	Constants map[string]float64 `json:"constants"`         // parameters that are no arguments
	Toggles   map[string]int     `json:"toggles,omitempty"` // constants too, of the kernels that have such a parameter
	Spoken    []string           `json:"spoken,omitempty"`  // toggles that the manifest uses itself, which the kernel need not have
	Warps     int                `json:"warps"`
	Stages    int                `json:"stages"`
	CTAs      int                `json:"ctas"`
	Arguments []SpecialArgument  `json:"arguments"`
}

// A SpecialArgument is what is known of an argument. The type is Triton's: *fp32, i32, fp32, u1, or none for a null pointer.
// The hint is "16" for what 16 divides, "1" for a one, and empty otherwise.
type SpecialArgument struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Hint string `json:"hint,omitempty"`
}

// Key is equal where all of it is: a hash.
func (s Special) Key() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("kernels: writing a special: %v", err)) // numbers and names are finite
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// tritonTypes are the names that Triton has for elements.
var tritonTypes = map[DType]string{
	E4M3: "fp8e4nv", E5M2: "fp8e5", F16: "fp16", BF16: "bf16", F32: "fp32", F64: "fp64", I8: "i8", U8: "u8", I16: "i16", U16: "u16",
	I32: "i32", U32: "u32", I64: "i64", U64: "u64", Bool: "i1",
}

const (
	maxWarps  = 32
	maxStages = 16
)

// Special is what Triton's own just-in-time compiler would know of a launch at these dims: arrays lie at multiples of 16,
// integers are the narrowest of i32 and i64 that hold them, with what is said of ones and of multiples of 16, and
// floats are fp32. Other compilers know nothing.
func (m *Manifest) Special(variant string, dims Dims, toggles map[string]int) (Special, error) {
	if m.Compiler != Triton {
		return Special{}, nil
	}
	values := m.ToggleValues(variant)
	for name, value := range toggles {
		values[name] = value
	}
	env := m.Env(dims, values)
	s := Special{Constants: map[string]float64{}, Toggles: values, Warps: 4, Stages: 3, CTAs: 1}
	var err error
	for _, name := range sortedKeys(m.Constants) {
		if s.Constants[name], err = m.Constants[name].eval(env); err != nil {
			return s, err
		}
	}
	for _, option := range []struct {
		expr *Expr
		into *int
		most int64
	}{{m.NumWarps, &s.Warps, maxWarps}, {m.NumStages, &s.Stages, maxStages}, {m.NumCTAs, &s.CTAs, maxCluster}} {
		if option.expr == nil {
			continue
		}
		if err := axis(option.into, option.expr, env, option.most); err != nil {
			return s, err
		}
	}
	if s.Warps&(s.Warps-1) != 0 {
		return s, &fault{m.NumWarps, fmt.Sprintf("is %d", s.Warps), "make it a power of two"}
	}
	s.Spoken = m.spoken(variant)
	for i := range m.Arguments {
		a := &m.Arguments[i]
		known := SpecialArgument{Name: a.Name}
		switch {
		case a.Access == Absent:
			known.Type = "none"
		case a.Access != Scalar:
			known.Type, known.Hint = "*"+tritonTypes[a.DType], "16"
		default:
			value, err := m.ScalarValue(a, dims, values)
			if err != nil {
				return s, err
			}
			known.Type, known.Hint = scalarSpecial(a.DType, value)
		}
		s.Arguments = append(s.Arguments, known)
	}
	return s, nil
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

// spoken is the toggles that expressions of the implementation use.
func (m *Manifest) spoken(variant string) []string {
	v, _ := m.Variant(variant)
	used := m.compilerExprs()
	used = append(used, m.launchOf(v).exprs()...)
	var names []string
	for _, t := range m.Toggles {
		if slices.ContainsFunc(used, func(e *Expr) bool { return slices.Contains(e.names, t.Name) }) {
			names = append(names, t.Name)
		}
	}
	return names
}

// Sizes is every size that a variant is known to be launched at: the manifest's shapes, and a sample of the secret ones that is
// always the same.
func (m *Manifest) Sizes(variant string) []Dims {
	var all []Dims
	for _, t := range m.trials(variant, "") {
		all = append(all, t.dims)
	}
	return all
}

// compilerRecipe is what the compiler is told, in words.
func (m *Manifest) compilerRecipe() string {
	if m.Compiler == "" || m.Compiler == NVCC {
		return ""
	}
	parts := []string{"compiler: " + string(m.Compiler)}
	for _, name := range sortedKeys(m.Constants) {
		parts = append(parts, name+" = "+m.Constants[name].text)
	}
	for name, e := range map[string]*Expr{"num_warps": m.NumWarps, "num_stages": m.NumStages, "num_ctas": m.NumCTAs} {
		if e != nil {
			parts = append(parts, name+": "+e.text)
		}
	}
	slices.Sort(parts[1:])
	if len(m.Build) > 0 {
		parts = append(parts, "build: "+strings.Join(m.Build, " "))
	}
	return strings.Join(parts, ", ")
}

func sortedKeys(m map[string]*Expr) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
