package scaffold

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

const (
	maxAxes = 4  // of an array: a guess with more is right for none
	maxDims = 12 // of a shape; a manifest allows 16
)

// dimsOf returns the sizes among the parameters, which are the dims of the shapes. A kernel without any gets one.
func dimsOf(all []parameter) []string {
	var dims []string
	for i := range all {
		p := &all[i]
		if p.access != manifest.Scalar || p.use != aSize {
			continue
		}
		if len(dims) == maxDims {
			p.use = aFactor
			continue
		}
		dims = append(dims, operand(p.name))
	}
	if len(dims) == 0 {
		dims = []string{"N"}
	}
	return dims
}

// operand is a parameter's name as a dim. Some names mean something else in an expression.
func operand(name string) string {
	if !manifest.IsOperand(name) {
		return name + "_"
	}
	return name
}

// maxArguments is how many arguments a manifest has at most.
const maxArguments = 64

// named gives parameters names that a manifest can have: different ones, none that is the entry's, and no words of C or YAML.
func (d *draft) named(entry string, all []parameter) []parameter {
	if len(all) > maxArguments {
		d.doubted = append(d.doubted, Guess{doubt: inArrays, What: fmt.Sprintf("arguments: the function has %d parameters, and a manifest at most %d: these are the first", len(all), maxArguments)})
		d.line("# TODO: the function has %d parameters, and a manifest has at most %d: these are the first", len(all), maxArguments)
		all = all[:maxArguments]
	}
	all = slices.Clone(all)
	used := map[string]bool{entry: true}
	for i := range all {
		p := &all[i]
		if name := p.name; !manifest.IsArgument(name) || used[name] || used[operand(name)] || emptyWord.MatchString(name) {
			if name = notInIdentifier.ReplaceAllString(name, "_") + "_"; used[name] || used[operand(name)] || !manifest.IsArgument(name) {
				name = fmt.Sprintf("argument%d", i)
			}
			p.guessed, p.name = strings.TrimPrefix(p.guessed+fmt.Sprintf("; the source calls it %s", p.name), "; "), name
		}
		used[p.name], used[operand(p.name)] = true, true
	}
	return all
}

var notInIdentifier = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// arguments writes the parameters of a kernel, and shapes for the sizes among them, which it returns.
func (d *draft) arguments(all []parameter) []string {
	dims := dimsOf(all)
	axes := dims[:min(len(dims), maxAxes)]
	d.line("arguments:")
	for i, p := range all {
		if p.access == manifest.Scalar {
			d.scalar(p, dims)
		} else {
			d.array(p, matrixAxes(all, i, axes))
		}
	}
	if !slices.ContainsFunc(all, func(p parameter) bool { return p.access == manifest.Out || p.access == manifest.InOut }) {
		output := "output"
		for slices.ContainsFunc(all, func(p parameter) bool { return p.name == output }) {
			output += "_"
		}
		d.doubt(inArrays, "  - {name: "+output+", dtype: f32, access: out, shape: ["+axes[0]+"]}", "the kernel has no array: what does it write?")
	}
	d.doubt(inLimits, "tolerance: {abs: 0.001, rel: 0.001}", "how far an element may be off")
	d.line("shapes:")
	d.sizes("small", dims, 3, 100)
	d.sizes("mission", dims, missionSize(len(axes)), missionSize(len(axes)))
	return dims
}

// missionSize is a length of every axis with which an array has a million elements or a few more: enough for a time, and within
// all limits.
func missionSize(axes int) int { return []int{1 << 20, 1 << 20, 1024, 128, 32}[axes] }

func (d *draft) sizes(name string, dims []string, other, last int) {
	var all []string
	for i, dim := range dims {
		size := other
		if i == min(len(dims), maxAxes)-1 {
			size = last
		}
		all = append(all, fmt.Sprintf("%s: %d", dim, size))
	}
	d.doubt(inSizes, fmt.Sprintf("  %s: {%s}", name, strings.Join(all, ", ")), "a size")
}

func (d *draft) scalar(p parameter, dims []string) {
	if p.dtype == manifest.E4M3 || p.dtype == manifest.E5M2 || p.dtype == manifest.E2M1 {
		p.guessed, p.dtype, p.use = strings.TrimPrefix(p.guessed+fmt.Sprintf("; no scalar is %s, so this is its byte", p.dtype), "; "), manifest.U8, aSwitch
	}
	written := func(value string) string {
		return fmt.Sprintf("  - {name: %s, dtype: %s, access: scalar, value: %s}", p.name, p.dtype, value)
	}
	note := also(p.guessed)
	switch {
	case p.lanes > 0:
		lanes := strings.Repeat("1, ", p.lanes-1) + "1"
		d.doubt(inValues, fmt.Sprintf("  - {name: %s, dtype: %s, access: scalar, vector: [%s]}", p.name, p.dtype, lanes), "its values"+note)
	case p.guessed != "" && p.use == aSize:
		d.doubt(inTypes, written(operand(p.name)), "its type"+note)
	case p.guessed != "":
		d.doubt(inTypes, written("1"), "its type and its value"+note)
	case p.use == aSize && slices.Contains(dims, operand(p.name)):
		d.line("%s", written(operand(p.name)))
	case p.use == aStride:
		d.doubt(inValues, written(dims[min(len(dims), maxAxes)-1]), "its value")
	case p.use == aSwitch:
		d.doubt(inValues, written("0"), "its value")
	case p.use == aNumber && strings.Contains(strings.ToLower(p.name), "eps"):
		d.doubt(inValues, written("0.00001"), "its value")
	default:
		d.doubt(inValues, written("1"), "its value")
	}
}

func (d *draft) array(p parameter, axes []string) {
	if p.lanes > 0 {
		axes = append(slices.Clone(axes), fmt.Sprint(p.lanes))
	}
	shape := "[" + strings.Join(axes, ", ") + "]"
	why, doubt := "its shape", inShapes
	if p.access == manifest.Out && p.doubt == "" {
		why = "its shape, and that it is only written"
	}
	if p.doubt != "" {
		why, doubt = fmt.Sprintf("whether it is an input or an output: %s; its shape", p.doubt), inArrays
	}
	if p.guessed != "" {
		doubt = min(doubt, inTypes)
	}
	init := ""
	if integer(p.dtype) && p.access != manifest.Out {
		init = fmt.Sprintf(", init: 0..%s-1", axes[0])
		if p.dtype.Size() == 1 {
			init = ", init: 0..1"
		}
		why += ", and the values that the kernel relies on"
	}
	d.doubt(doubt, fmt.Sprintf("  - {name: %s, dtype: %s, access: %s, shape: %s%s}", p.name, p.dtype, p.access, shape, init), why+also(p.guessed))
}

func also(guessed string) string {
	if guessed == "" {
		return ""
	}
	return "; " + guessed
}

var notLetters = regexp.MustCompile(`(?i)^(?:d_|g_|mat|matrix|ptr_)|(?:_ptr|_mat|_d|mat)$`)

// matrixAxes is the shape of an array: that of the factors and the product where a kernel multiplies matrices by the names that
// everybody uses, and else every size.
func matrixAxes(all []parameter, at int, axes []string) []string {
	find := func(letter string) string {
		for _, dim := range axes {
			if strings.EqualFold(dim, letter) {
				return dim
			}
		}
		return ""
	}
	m, n, k := find("M"), find("N"), find("K")
	if m == "" || n == "" || k == "" {
		return axes
	}
	switch strings.ToLower(notLetters.ReplaceAllString(all[at].name, "")) {
	case "a":
		return []string{m, k}
	case "b":
		return []string{k, n}
	case "c", "d", "out", "output":
		return []string{m, n}
	}
	return axes
}
