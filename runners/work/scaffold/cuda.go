package scaffold

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// A cudaKernel is a __global__ function as its source declares it.
type cudaKernel struct {
	name       string
	template   bool
	threads    int // of __launch_bounds__; 0 where there is none
	parameters []parameter
}

// A parameter is one of a kernel, as far as its source tells.
type parameter struct {
	name    string
	dtype   manifest.DType
	guessed string // what is not known of its type; "" is nothing
	access  manifest.Access
}

var (
	comments = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"`)
	// attributes stand between __global__ and the name, and have brackets of their own.
	attributes = regexp.MustCompile(`__(?:launch_bounds|cluster_dims|maxnreg)__\s*\(\s*(\w*)[^()]*\)`)
	global     = regexp.MustCompile(`(template\s*<[^;{}]*>\s*)?(?:extern\s*"C"\s*)?(?:static\s+|inline\s+)*__global__\s+((?:[\w:]+\s+)*?)(\w+)\s*\(([^{};]*)\)\s*\{`)
	bounds     = regexp.MustCompile(`__bounds_(\d+)__`)
)

// kernelsIn finds the kernels that a CUDA source defines. It knows no preprocessor and no types of others.
func kernelsIn(text string) []cudaKernel {
	text = comments.ReplaceAllStringFunc(text, func(found string) string {
		if found == `"C"` {
			return found
		}
		return " "
	})
	text = attributes.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, "__launch_bounds__") {
			return " __bounds_" + attributes.FindStringSubmatch(found)[1] + "__ "
		}
		return " "
	})
	var all []cudaKernel
	for _, m := range global.FindAllStringSubmatch(text, -1) {
		k := cudaKernel{name: m[3], template: m[1] != ""}
		if b := bounds.FindStringSubmatch(m[2]); b != nil {
			k.threads, _ = strconv.Atoi(b[1])
		}
		for i, p := range splitParameters(m[4]) {
			found := parameterOf(p)
			if found.name == "unnamed" {
				found.name = fmt.Sprintf("unnamed%d", i)
			}
			k.parameters = append(k.parameters, found)
		}
		all = append(all, k)
	}
	return all
}

// splitParameters cuts at commas that are not within brackets.
func splitParameters(list string) []string {
	var all []string
	depth, from := 0, 0
	for i, r := range list + "," {
		switch {
		case strings.ContainsRune("(<[", r):
			depth++
		case strings.ContainsRune(")>]", r):
			depth--
		case r == ',' && depth == 0:
			if p := strings.TrimSpace(list[from:min(i, len(list))]); p != "" && p != "void" {
				all = append(all, p)
			}
			from = i + 1
		}
	}
	return all
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

var qualifiers = regexp.MustCompile(`\b(?:const|__restrict__|__restrict|restrict|volatile|__grid_constant__|struct)\b`)

func parameterOf(text string) parameter {
	text, _, _ = strings.Cut(text, "=")
	constant := regexp.MustCompile(`\bconst\b`).MatchString(text[:max(strings.IndexAny(text+"*", "*"), 0)])
	plain := strings.Join(strings.Fields(qualifiers.ReplaceAllString(strings.ReplaceAll(text, "[]", "*"), " ")), " ")
	pointer := strings.Contains(plain, "*")
	plain = strings.TrimSpace(strings.ReplaceAll(plain, "*", " * "))
	words := strings.Fields(plain)
	if len(words) == 0 || !identifier.MatchString(words[len(words)-1]) || dtypes[words[len(words)-1]] != "" {
		words = append(words, "unnamed")
	}
	p := parameter{name: words[len(words)-1], access: manifest.Scalar}
	base := strings.Join(slices.DeleteFunc(words[:len(words)-1], func(w string) bool { return w == "*" }), " ")
	var known bool
	if p.dtype, known = dtypes[strings.TrimPrefix(base, "std::")]; !known {
		p.dtype, p.guessed = manifest.F32, "the type "+base+" is not known here"
	}
	switch {
	case pointer && constant:
		p.access = manifest.In
	case pointer:
		p.access = manifest.Out
	}
	return p
}

// fromCUDA describes a kernel of a .cu file.
func fromCUDA(file, text, entry string) (*draft, error) {
	all := kernelsIn(text)
	if len(all) == 0 {
		return nil, usage.Errorf("%s defines no kernel (a function void f(...) { with __global__)", file)
	}
	k, names := chosen(all, func(k cudaKernel) string { return k.name }, entry)
	if k == nil {
		return nil, usage.Errorf("%s defines no kernel %s (write --entry with one of %s)", file, entry, strings.Join(names, ", "))
	}
	d := &draft{kind: "a CUDA kernel", name: nameOf(k.name), mode: manifest.ModeCUDA, folder: filepath.Dir(file), sources: filepath.Dir(file)}
	d.line("version: 1\nname: %s\nmode: cuda", d.name)
	switch {
	case k.template:
		d.guess(fmt.Sprintf("entry: %s<float>", k.name), "its template arguments")
	case len(all) > 1 && entry == "":
		d.guess("entry: "+k.name, fmt.Sprintf("the first of %d kernels in the file", len(all)))
	default:
		d.line("entry: %s", k.name)
	}
	d.line("source: %s", filepath.Base(file))
	d.guess("arch: [sm_80, sm_89, sm_90]", "the GPUs that it is for")
	d.line("flags: [-O3]")
	dims := d.arguments(k.parameters)
	threads := k.threads
	size := strings.Join(dims, "*")
	if threads == 0 {
		threads = 256
		d.guesses++
	}
	d.guess(fmt.Sprintf("launch: {grid: [\"ceildiv(%s, %d)\"], block: [%d]}", size, threads, threads), "one thread for each element")
	d.pythonReference(k.parameters, dims)
	return d, nil
}

// chosen returns the kernel that an entry names; without an entry, the first. If there is none of that name, it returns nil and the
// names that there are.
func chosen[K any](all []K, name func(K) string, entry string) (*K, []string) {
	var names []string
	for i := range all {
		if entry == "" || name(all[i]) == entry {
			return &all[i], nil
		}
		names = append(names, name(all[i]))
	}
	return nil, names
}

// arguments writes those of a kernel, and shapes for the sizes among them, which it returns.
func (d *draft) arguments(all []parameter) []string {
	var dims []string
	for _, p := range all {
		if p.access == manifest.Scalar && integer(p.dtype) && !strings.Contains(strings.ToLower(p.name), "stride") {
			dims = append(dims, p.name)
		}
	}
	if len(dims) == 0 {
		dims = []string{"N"}
	}
	shape := "[" + strings.Join(dims, ", ") + "]"
	d.line("arguments:")
	for _, p := range all {
		note := p.guessed
		if note != "" {
			note = "; " + note
		}
		switch {
		case p.access == manifest.Scalar && slices.Contains(dims, p.name):
			d.line("  - {name: %s, dtype: %s, access: scalar, value: %s}", p.name, p.dtype, p.name)
		case p.access == manifest.Scalar && integer(p.dtype):
			d.guess(fmt.Sprintf("  - {name: %s, dtype: %s, access: scalar, value: %s}", p.name, p.dtype, dims[len(dims)-1]), "its value"+note)
		case p.access == manifest.Scalar:
			value := "1"
			if strings.Contains(strings.ToLower(p.name), "eps") {
				value = "0.00001"
			}
			d.guess(fmt.Sprintf("  - {name: %s, dtype: %s, access: scalar, value: %s}", p.name, p.dtype, value), "its value"+note)
		case p.access == manifest.Out:
			d.guess(fmt.Sprintf("  - {name: %s, dtype: %s, access: out, shape: %s}", p.name, p.dtype, shape), "its shape, and that it is only written"+note)
		case integer(p.dtype):
			d.guess(fmt.Sprintf("  - {name: %s, dtype: %s, access: %s, shape: %s, init: 0..%s-1}", p.name, p.dtype, p.access, shape, dims[0]), "its shape, and the values that the kernel relies on"+note)
		default:
			d.guess(fmt.Sprintf("  - {name: %s, dtype: %s, access: %s, shape: %s}", p.name, p.dtype, p.access, shape), "its shape"+note)
		}
	}
	d.guess("tolerance: {abs: 0.001, rel: 0.001}", "how far an element may be off")
	d.line("shapes:")
	sizes := func(name string, first, other int) {
		var all []string
		for i, dim := range dims {
			size := other
			if i == len(dims)-1 {
				size = first
			}
			all = append(all, fmt.Sprintf("%s: %d", dim, size))
		}
		d.guess(fmt.Sprintf("  %s: {%s}", name, strings.Join(all, ", ")), "a size")
	}
	sizes("small", 100, 3)
	sizes("mission", 4096, 1024)
	return dims
}

// pythonReference writes a function that the author completes: what a kernel computes cannot be read from its declaration.
func (d *draft) pythonReference(all []parameter, dims []string) {
	var names, outputs []string
	for _, p := range all {
		if p.access != manifest.Out {
			names = append(names, p.name)
		} else {
			outputs = append(outputs, p.name)
		}
	}
	d.line("reference: {source: reference.py, entry: reference}")
	d.file("reference.py", fmt.Sprintf(`import numpy as np


def reference(%s):
    # guess: none, for a declaration does not say it. Compute %s in float64 from arrays of the manifest's shapes, and return it.
    raise NotImplementedError("write what %s computes")
`, strings.Join(names, ", "), strings.Join(outputs, ", "), d.name))
	d.next = []string{"kernelgate policy lint .", "kernelgate check --static " + d.name}
}
