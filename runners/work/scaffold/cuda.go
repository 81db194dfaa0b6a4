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

// fromCUDA describes a kernel of a .cu file.
func fromCUDA(file, text, entry string) (*draft, error) {
	all := kernelsIn(text)
	if len(all) == 0 {
		return nil, usage.Errorf("%s defines no kernel (a function void f(...) { with __global__)", file)
	}
	k, names := chosen(all, func(k function) string { return k.name }, entry)
	if k == nil {
		return nil, usage.Errorf("%s defines no kernel %s (write --entry with one of %s)", file, entry, strings.Join(names, ", "))
	}
	d := &draft{kind: "a CUDA kernel", name: nameOf(k.name), mode: manifest.ModeCUDA, folder: filepath.Dir(file), sources: filepath.Dir(file), rooted: true}
	d.line("version: 1\nname: %s\nmode: cuda", d.name)
	d.entry(k, len(all), entry, text)
	d.line("source: %s", filepath.Base(file))
	d.doubt(inLimits, "arch: [sm_80, sm_89, sm_90]", "the GPUs that it is for")
	d.flags(text)
	parameters := d.named(k.name, k.parameters)
	dims := d.arguments(parameters)
	d.launch(k, dims, plain(text))
	d.pythonReference(parameters, dims)
	return d, nil
}

// torchHeader is the inclusion of a header of PyTorch.
var torchHeader = regexp.MustCompile(`(?m)^\s*#\s*include\s*[<"](?:torch|ATen|c10)/`)

// flags writes the flags of a release build, and those that torch.utils.cpp_extension adds for a file that includes PyTorch.
func (d *draft) flags(text string) {
	if !torchHeader.MatchString(text) {
		d.line("flags: [-O3]")
		return
	}
	d.line("include: [<torch>, <python>]")
	d.line("flags: [-O3, -std=c++17, --expt-relaxed-constexpr, -DTORCH_EXTENSION_NAME=extension, -D__CUDA_NO_HALF_OPERATORS__, " +
		"-D__CUDA_NO_HALF_CONVERSIONS__, -D__CUDA_NO_BFLOAT16_CONVERSIONS__, -D__CUDA_NO_HALF2_OPERATORS__]")
}

// entry writes the kernel's name, with template arguments if it is a template.
func (d *draft) entry(k *function, kernels int, asked, text string) {
	switch {
	case k.template != "" || strings.Contains(text, "template") && k.instance(text) != "":
		if found := k.instance(text); found != "" {
			d.doubt(inTypes, fmt.Sprintf("entry: %s<%s>", k.name, found), "its template arguments: those of a launch in the file")
			return
		}
		d.doubt(inTypes, fmt.Sprintf("entry: %s<%s>", k.name, strings.Join(defaults(k.template), ", ")), "its template arguments")
	case kernels > 1 && asked == "":
		d.doubt(inArrays, "entry: "+word(k.name), fmt.Sprintf("the first of %d kernels in the file", kernels))
	default:
		d.line("entry: %s", word(k.name))
	}
}

var argumentValue = regexp.MustCompile(`^(?:\d+|true|false|[a-z_]\w*)$`)

// instance returns the template arguments of a launch in the file whose values the launch itself states.
func (k *function) instance(text string) string {
	if k.template == "" {
		return ""
	}
	launches := regexp.MustCompile(`\b` + regexp.QuoteMeta(k.name) + `\s*<([^<>;]*)>\s*<<<`)
	for _, m := range launches.FindAllStringSubmatch(plain(text), -1) {
		list := splitParameters(m[1])
		stated := !slices.ContainsFunc(list, func(a string) bool {
			_, isType := dtypes[a]
			number, err := strconv.Atoi(a)
			return !isType && (err != nil || number <= 0) && a != "true" && a != "false"
		})
		if stated && len(list) > 0 && !slices.ContainsFunc(list, func(a string) bool { return !argumentValue.MatchString(a) }) {
			return strings.Join(list, ", ")
		}
	}
	return ""
}

// defaults returns values for template parameters that have no default.
func defaults(template string) []string {
	var values []string
	for _, p := range splitParameters(template) {
		declared, value, has := strings.Cut(p, "=")
		words := strings.Fields(declared)
		switch {
		case has && argumentValue.MatchString(strings.TrimSpace(value)):
			values = append(values, strings.TrimSpace(value))
		case len(words) == 0 || strings.HasSuffix(words[0], "..."):
		case words[0] == "typename" || words[0] == "class":
			values = append(values, "float")
		case words[0] == "bool":
			values = append(values, "true")
		default:
			values = append(values, "32")
		}
	}
	return values
}

var (
	blockMacro = regexp.MustCompile(`(?m)(?:^\s*#\s*define\s+|\bconst(?:expr)?\s+(?:unsigned\s+)?int\s+)(\w*(?:BLOCK|THREADS|TILE|block|threads|tile|kThreads)\w*)(?:\s+|\s*=\s*)\(?(\d+)\b`)
	byThread   = regexp.MustCompile(`blockDim\s*\.\s*x|blockIdx\s*\.\s*x\s*\*|\*\s*blockIdx\s*\.\s*x`)
	planar     = regexp.MustCompile(`threadIdx\s*\.\s*y`)
	anyBlock   = regexp.MustCompile(`blockIdx\s*\.\s*x`)
)

// launch guesses the grid from how the body computes its place: by elements, by rows, or in two dimensions.
func (d *draft) launch(k *function, dims []string, text string) {
	threads := k.threads
	if threads > 1024 { // more than a block can have
		threads = 0
	}
	for _, m := range blockMacro.FindAllStringSubmatch(text, -1) {
		if n, _ := strconv.Atoi(m[2]); threads == 0 && n >= 1 && n <= 1024 && strings.Contains(k.body, m[1]) {
			threads = n
		}
	}
	last := dims[min(len(dims), maxAxes)-1]
	switch {
	case planar.MatchString(k.body):
		side := 16
		if threads > 1 && threads <= 32 {
			side = threads
		}
		if len(dims) == 1 { // one axis of blocks, because the others have at most 65535
			d.doubt(inLaunch, fmt.Sprintf("launch: {grid: [\"ceildiv(%s, %d)\"], block: [%d, %d]}", last, side*side, side, side), "one thread for each element, in blocks of two dimensions")
			break
		}
		rows := dims[max(0, min(len(dims), maxAxes)-2)]
		d.doubt(inLaunch, fmt.Sprintf("launch: {grid: [\"ceildiv(%s, %d)\", \"ceildiv(%s, %d)\"], block: [%d, %d]}", last, side, rows, side, side, side), "one thread for each element, in two dimensions")
	case byThread.MatchString(k.body) || !anyBlock.MatchString(k.body) && len(dims) > 1:
		if threads == 0 {
			threads = 256
		}
		size := strings.Join(dims[:min(len(dims), maxAxes)], "*")
		d.doubt(inLaunch, fmt.Sprintf("launch: {grid: [\"ceildiv(%s, %d)\"], block: [%d]}", size, threads, threads), "one thread for each element")
	case anyBlock.MatchString(k.body) && len(dims) > 1:
		if threads == 0 {
			threads = 256
		}
		d.doubt(inLaunch, fmt.Sprintf("launch: {grid: [%s], block: [%d]}", strings.Join(dims[:1], ""), threads), "one block for each row")
	default:
		if threads == 0 {
			threads = 256
		}
		d.doubt(inLaunch, fmt.Sprintf("launch: {grid: [\"ceildiv(%s, %d)\"], block: [%d]}", dims[0], threads, threads), "one thread for each element")
	}
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

// pythonReference writes a function that the author completes: what a kernel computes cannot be read from its declaration.
func (d *draft) pythonReference(all []parameter, dims []string) {
	var names, outputs []string
	for _, p := range all {
		if p.access != manifest.Out {
			names = append(names, p.name)
		}
		if p.access != manifest.Scalar && p.access != manifest.In {
			outputs = append(outputs, p.name)
		}
	}
	if outputs == nil {
		outputs = []string{"output"}
	}
	d.line("reference: {source: reference.py, entry: reference}")
	why := fmt.Sprintf("none, for a declaration does not say it. Compute %s in float64 from arrays of the manifest's shapes, and return it", strings.Join(outputs, ", "))
	d.file("reference.py", fmt.Sprintf(`import numpy as np


def reference(%s):
    # TODO: %s.
    raise NotImplementedError("write what %s computes")
`, strings.Join(names, ", "), why, d.name))
	d.doubted = append(d.doubted, Guess{doubt: inReference, File: "reference.py", What: "what " + d.name + " computes: a declaration does not say it"})
	d.next = []string{"kernelgate policy lint .", "kernelgate check --static " + d.name}
}
