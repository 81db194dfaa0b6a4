package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// A Field is one member of a struct. A struct that is passed by value has one of value, vector,
// array, setting, settings, pointer, tensor_map and struct in each field; the elements of an array
// have a format, a count and an init.
type Field struct {
	Name   string `yaml:"name" required:"true" eg:"scale" bounds:"(a C identifier)" doc:"The member's name."`
	DType  DType  `yaml:"dtype" eg:"f32" default:"(required except for pointer and struct)" doc:"Format of the member, or of each of its elements."`
	Value  *Expr  `yaml:"value" eg:"1/sqrt(D)" doc:"Value, if the member is a scalar."`
	Vector []Expr `yaml:"vector" eg:"[B, H, 1]" bounds:"2 to 4 entries" doc:"Lanes, if the member has a vector type such as uint3 or float4."`
	Array  []Expr `yaml:"array" eg:"[S*D, D, 1]" bounds:"1 to 64 entries" doc:"Elements, if the member is an array inside the struct."`

	Setting  *Expr  `yaml:"setting" half:"implementation" eg:"SPLITS" doc:"cuda: value of a scalar that only the kernel needs. It replaces value, and a change may edit it."`
	Settings []Expr `yaml:"settings" half:"implementation" eg:"[TILE*D, D, 1]" bounds:"1 to 64 entries" doc:"cuda: elements of an array inside the struct that only the kernel needs, such as the strides of a tile. It replaces array. A change may edit the elements and keeps their number."`

	Pointer   string `yaml:"pointer" eg:"q" doc:"If the member is a pointer: the array argument that it points to, or none for a null pointer."`
	TensorMap string `yaml:"tensor_map" eg:"a" doc:"cuda, sm_90 and later: if the member is a CUtensorMap, the array argument that it describes. The tensor_map of that argument has the box."`
	Struct    string `yaml:"struct" eg:"inner" doc:"If the member is a nested struct: the name of the argument with access: struct."`
	Count     *Expr  `yaml:"count" eg:"16" default:"(1)" doc:"In an array of structs: number of elements of the member."`
	Init      Init   `yaml:"init" eg:"0..15" default:"(distribution; required for integers)" doc:"In an array of structs: how the member is filled, as in the init of an argument."`

	Tolerance *Tolerance `yaml:"tolerance" eg:"{abs: 1}" default:"(the manifest's)" doc:"In an array of structs that is an output: the member's own tolerance."`
}

// NoPointer is what a field that is a null pointer points to.
const NoPointer = "none"

// maxFields bounds the members of a struct and the elements of an array in it.
const maxFields = 64

// ValidateStrict checks only the name; the argument checks the rest.
func (f *Field) ValidateStrict(n *strict.Node) {
	if n.Has("name") {
		checkIdentifier(n.Child("name"), f.Name)
	}
}

// validateMember checks a field of a struct that is passed by value.
func (f *Field) validateMember(n *strict.Node) {
	refuseFields(n, "a struct by value has none (delete it, or write access: in and a shape)", "count", "init", "tolerance")
	kinds := []string{"value", "vector", "array", "setting", "settings", "pointer", "tensor_map", "struct"}
	has := slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return !n.Has(k) })
	switch {
	case len(has) != 1:
		n.Errorf("has %d of %s (write one)", len(has), strings.Join(kinds, ", "))
	case has[0] == "pointer" && n.Has("dtype"):
		n.Child("dtype").Errorf("a pointer has that of its argument (delete it)")
	case has[0] == "tensor_map" && n.Has("dtype"):
		n.Child("dtype").Errorf("a tensor map has that of its argument (delete it)")
	case has[0] == "struct" && n.Has("dtype"):
		n.Child("dtype").Errorf("a struct has none (delete it)")
	case has[0] == "pointer", has[0] == "tensor_map", has[0] == "struct":
	case f.DType == "":
		n.Child("dtype").Errorf("is required (write e.g. dtype: f32)")
	default:
		checkByValue(n, f.DType)
	}
	if has := n.Has("vector"); has {
		checkLanes(n.Child("vector"), len(f.Vector))
	}
	for kind, list := range map[string][]Expr{"array": f.Array, "settings": f.Settings} {
		if n.Has(kind) && (len(list) == 0 || len(list) > maxFields) {
			n.Child(kind).Errorf("has %d elements (write 1 to %d)", len(list), maxFields)
		}
	}
}

func checkByValue(n *strict.Node, d DType) {
	if !slices.Contains(scalarDTypes, d) {
		n.Child("dtype").Errorf("%q is no format of a scalar (write one of %s)", d, strict.JoinWords(scalarDTypes))
	}
}

func checkLanes(at *strict.Node, lanes int) {
	if lanes < 2 || lanes > 4 {
		at.Errorf("has %d lanes (write 2 to 4)", lanes)
	}
}

// A Composite is a parameter by value of several parts, as C lays it out: a struct, or a vector type.
type Composite struct {
	Parts       []Part
	Size, Align int
	definition  string // of its type in C, without the name
}

// A Part is one scalar or pointer of a composite.
type Part struct {
	Name    string // with the argument's: params.grid.y
	Offset  int
	DType   DType // of a scalar
	Value   *Expr // of a scalar; nil for a pointer
	Pointer string
	// TensorMap means that the part is a CUtensorMap of the array that Pointer names.
	TensorMap bool
}

// Composite returns an argument's layout; false for arrays and single scalars.
func (a *Argument) Composite(m *Manifest) (Composite, bool) {
	left := maxMembers
	return a.composite(m, a.Name, 0, &left)
}

// composite is Composite for a struct inside another, with a name, a depth and a number of members.
// It returns an error for structs that contain each other and for too many members, because a
// manifest may be asked for the layout before these checks.
func (a *Argument) composite(m *Manifest, path string, depth int, left *int) (Composite, bool) {
	var c Composite
	switch {
	case a.Access == Struct:
		var members []string
		for i := range a.Fields {
			members = append(members, c.add(m, path+"."+a.Fields[i].Name, &a.Fields[i], depth, left))
		}
		c.definition = "{ " + strings.Join(members, " ") + " }"
	case a.Access == Scalar && len(a.Vector) > 0:
		f := &Field{Name: a.Name, DType: a.DType, Vector: a.Vector}
		c.definition = "{ " + c.add(m, path, f, depth, left) + " }"
	default:
		return c, false
	}
	c.Size = aligned(c.Size, max(c.Align, 1))
	return c, true
}

var laneNames = []string{"x", "y", "z", "w"}

// add appends a field, and returns its declaration in C.
func (c *Composite) add(m *Manifest, path string, f *Field, depth int, left *int) string {
	if *left -= f.parts(); *left < 0 {
		return ""
	}
	if f.Struct != "" {
		return c.nest(m, path, f, depth, left)
	}
	if f.TensorMap != "" {
		return c.describe(m, path, f)
	}
	size, align := pointerSize, pointerSize
	if f.DType != "" {
		size, align = f.DType.Size(), f.DType.Size()
	}
	whole := align
	switch len(f.Vector) {
	case 2, 4:
		// CUDA's vector types of two and four lanes are aligned as a whole, up to 16 bytes.
		whole = min(16, size*len(f.Vector))
	}
	c.Align = max(c.Align, whole)
	c.Size = aligned(c.Size, whole)
	part := func(name string, value *Expr) {
		c.Parts = append(c.Parts, Part{Name: name, Offset: c.Size, DType: f.DType, Value: value, Pointer: f.Pointer})
		c.Size += size
	}
	ctype := cTypes[f.DType]
	switch {
	case f.Pointer != "":
		part(path, nil)
		if target, ok := m.passable(f.Pointer); ok {
			return pointerTo(target) + f.Name + ";"
		}
		return "const void *" + f.Name + ";"
	case f.scalar() != nil:
		part(path, f.scalar())
		return ctype + " " + f.Name + ";"
	case len(f.Vector) > 0:
		for i := range f.Vector {
			part(path+"."+laneNames[i], &f.Vector[i])
		}
		return fmt.Sprintf("struct { %s %s; } __attribute__((aligned(%d))) %s;", ctype, strings.Join(laneNames[:len(f.Vector)], ", "), whole, f.Name)
	}
	elements := f.elements()
	for i := range elements {
		part(fmt.Sprintf("%s[%d]", path, i), &elements[i])
	}
	return fmt.Sprintf("%s %s[%d];", ctype, f.Name, len(elements))
}

// describe lays a CUtensorMap behind the other fields.
func (c *Composite) describe(m *Manifest, path string, f *Field) string {
	a, ok := m.argument(f.TensorMap)
	if !ok || a.TensorMap == nil {
		return ""
	}
	align := a.TensorMap.Align.bytes()
	c.Align, c.Size = max(c.Align, align), aligned(c.Size, align)
	c.Parts = append(c.Parts, Part{Name: path, Offset: c.Size, Pointer: f.TensorMap, TensorMap: true})
	c.Size += tensorMapSize
	return fmt.Sprintf("struct { uint64_t opaque[%d]; } __attribute__((aligned(%d))) %s;", tensorMapSize/8, align, f.Name)
}

// What structs may hold: other structs so deep, and so many members with theirs. A kernel takes 32 KiB of parameters.
const (
	maxNesting = 8
	maxMembers = 4096
)

// nest appends a struct, aligned as a whole.
func (c *Composite) nest(m *Manifest, path string, f *Field, depth int, left *int) string {
	inner, ok := m.argument(f.Struct)
	if !ok || inner.Access != Struct || depth == maxNesting {
		return ""
	}
	within, _ := inner.composite(m, path, depth+1, left)
	c.Align = max(c.Align, within.Align)
	c.Size = aligned(c.Size, max(within.Align, 1))
	for _, p := range within.Parts {
		p.Offset += c.Size
		c.Parts = append(c.Parts, p)
	}
	c.Size += within.Size
	return "struct " + within.definition + " " + f.Name + ";"
}

// PartValue returns the value of a part that is not a pointer.
func (m *Manifest) PartValue(p Part, dims Dims, toggles map[string]int) (float64, error) {
	return p.Value.as(p.DType, m.Env(dims, toggles))
}

// members calls a function for the fields of a struct and of the structs within it, up to a
// maximum, because the struct is not checked yet.
func (m *Manifest) members(a *Argument, depth int, left *int, each func(*Field)) {
	for i := range a.Fields {
		f := &a.Fields[i]
		if *left -= f.parts(); *left < 0 {
			return
		}
		each(f)
		if f.Struct == "" || depth == maxNesting {
			continue
		}
		if inner, ok := m.argument(f.Struct); ok {
			m.members(inner, depth+1, left, each)
		}
	}
}

// checkFields checks that a struct's fields have unique names and point to arrays.
func (c *checker) checkFields(a *Argument, at *strict.Node) {
	left := maxMembers
	if c.m.members(a, 0, &left, func(*Field) {}); left < 0 && c.m.depth(a, c.depths) <= maxNesting {
		c.errorf(at.Child("fields"), "has more than %d members with those of the structs in it (take some out)", maxMembers)
	}
	for i, f := range a.Fields {
		place := itemOf(at.Child("fields"), i)
		if _, taken := c.m.argument(a.memberName(&f)); taken && a.Structs() {
			c.errorf(place.Child("name"), "the reference gets the member as %s, which is an argument too (rename one of them)", a.memberName(&f))
		}
		if slices.ContainsFunc(a.Fields[:i], func(other Field) bool { return other.Name == f.Name }) {
			c.errorf(place.Child("name"), "%q is the name of an earlier field too (choose another)", f.Name)
		}
		if f.Struct != "" {
			c.checkNested(a, f.Struct, place.Child("struct"))
		}
		if f.TensorMap != "" {
			c.checkMapped(f.TensorMap, place.Child("tensor_map"))
		}
		if f.Pointer == "" || f.Pointer == NoPointer {
			continue
		}
		target, ok := c.m.passable(f.Pointer)
		switch {
		case !ok:
			c.errorf(place.Child("pointer"), "%q is no argument (declare the array among the arguments or the scratch, or write %s for a null pointer)", f.Pointer, NoPointer)
		case !target.array() && target.Access != Scratched:
			c.errorf(place.Child("pointer"), "%s is no array (name an argument with a shape)", f.Pointer)
		case target.TensorMap != nil:
			c.errorf(place.Child("pointer"), "%s is passed as a tensor map (write tensor_map: %[1]s for a member that is a CUtensorMap, or delete the tensor_map of the argument)", f.Pointer)
		}
	}
}

// checkMapped sees to it that a struct's field describes an array by its tensor map.
func (c *checker) checkMapped(name string, at *strict.Node) {
	a, ok := c.m.argument(name)
	switch {
	case !ok:
		c.errorf(at, "%q is no argument (declare the array among the arguments, with its tensor_map)", name)
	case a.TensorMap == nil:
		c.errorf(at, "%s has no tensor_map (write it at the argument, e.g. tensor_map: {box: [64, 64]})", name)
	}
}

// checkNested checks that a struct's field is a struct, and that no struct contains itself.
func (c *checker) checkNested(a *Argument, name string, at *strict.Node) {
	inner, ok := c.m.argument(name)
	switch {
	case !ok:
		c.errorf(at, "%q is no argument (declare the struct among the arguments)", name)
	case inner.Access != Struct:
		c.errorf(at, "%s is no struct (name an argument with access: struct)", name)
	case c.m.depth(inner, c.depths) > maxNesting:
		c.errorf(at, "%s holds structs more than %d deep, or itself (take one out)", a.Name, maxNesting)
	}
}

// depth returns the nesting depth of an argument, or more than the maximum. Results are cached,
// because one struct may be in many.
func (m *Manifest) depth(a *Argument, found map[string]int) int {
	if d, ok := found[a.Name]; ok {
		return d
	}
	found[a.Name] = maxNesting + 1 // a struct that is reached again contains itself
	deepest := 0
	for _, f := range a.Fields {
		if f.Struct == "" {
			continue
		}
		if inner, ok := m.argument(f.Struct); ok {
			deepest = max(deepest, m.depth(inner, found))
		}
	}
	found[a.Name] = min(deepest, maxNesting) + 1
	return found[a.Name]
}
