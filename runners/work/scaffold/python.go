package scaffold

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/build/pyref"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

//go:embed inspect.py
var inspectScript []byte

// A pythonFile is what a Python file defines.
type pythonFile struct {
	Error     string           `json:"error"`
	Line      int              `json:"line"`
	Functions []pythonFunction `json:"functions"`
	Classes   []string         `json:"classes"`
	Values    []struct {
		Name  string `json:"name"`
		Value *int   `json:"value"` // nil for what is no whole number
	} `json:"values"`
	Imports []string `json:"imports"`
}

type pythonFunction struct {
	Name       string   `json:"name"`
	Decorators []string `json:"decorators"`
	Parameters []struct {
		Name       string `json:"name"`
		Annotation string `json:"annotation"`
		Default    any    `json:"default"`
	} `json:"parameters"`
	Autotuned      bool            `json:"autotuned"` // it has @triton.autotune, whatever is known of its configurations
	Configurations []configuration `json:"configurations"`
	Heuristics     []string        `json:"heuristics"` // constants that @triton.heuristics computes
	Loads          []string        `json:"loads"`
	Stores         []string        `json:"stores"`
	Sizes          []string        `json:"sizes"` // parameters that bound an index or a loop
}

// A configuration is one that @triton.autotune offers.
type configuration struct {
	Constants map[string]any `json:"constants"` // those whose values the file states
	Names     []string       `json:"names"`     // of all constants
	NumWarps  int            `json:"num_warps"`
	NumStages int            `json:"num_stages"`
	NumCTAs   int            `json:"num_ctas"`
}

func (f *pythonFile) function(name string) *pythonFunction {
	if i := slices.IndexFunc(f.Functions, func(g pythonFunction) bool { return g.Name == name }); i >= 0 {
		return &f.Functions[i]
	}
	return nil
}

// inspect has Python parse a file in the sandbox. Nothing of the file runs.
func inspect(ctx context.Context, file string, getenv func(string) string) (*pythonFile, error) {
	python, err := pyref.Interpreter(ctx, getenv)
	if err != nil {
		return nil, err
	}
	full, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "kernelgate-init-")
	if err != nil {
		return nil, fmt.Errorf("making room to look at %s: %w", file, err)
	}
	defer os.RemoveAll(work)
	if err := os.Chmod(work, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(work, "inspect.py"), inspectScript, 0o644); err != nil {
		return nil, fmt.Errorf("making room to look at %s: %w", file, err)
	}
	var out, log bytes.Buffer
	r, err := sandbox.Run(ctx, sandbox.Spec{
		Args: []string{python.Program, "-I", "-B", "/look/inspect.py", "/look-at.py"},
		Env:  []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"},
		Read: append(sandbox.SystemPaths(), python.Folders()...), Places: []sandbox.Place{{Host: work, Inside: "/look"}, {Host: full, Inside: "/look-at.py"}},
		Stdout: &out, Stderr: &log, Limits: sandbox.PythonReader.Limits(),
	})
	if err != nil {
		return nil, fmt.Errorf("looking at %s: %w", file, err)
	}
	var found pythonFile
	if err := json.Unmarshal(out.Bytes(), &found); err != nil || !r.OK() {
		return nil, usage.Errorf("%s cannot be read as Python: %s", file, strings.Join(strings.Fields(log.String()), " "))
	}
	if found.Error != "" {
		return nil, usage.Errorf("%s:%d: is not Python: %s", file, found.Line, found.Error)
	}
	return &found, nil
}

// fromPython describes what a .py file holds.
func fromPython(ctx context.Context, file string, opt Options) (*draft, error) {
	found, err := inspect(ctx, file, opt.Getenv)
	if err != nil {
		return nil, err
	}
	var kernels []pythonFunction
	var helpers []pythonFunction // or kernels that store by a helper
	for _, f := range found.Functions {
		switch jitted := slices.ContainsFunc(f.Decorators, func(d string) bool { return d == "triton.jit" || d == "jit" }); {
		case jitted && len(f.Stores) > 0:
			kernels = append(kernels, f)
		case jitted && len(f.Parameters) > 0:
			helpers = append(helpers, f)
		}
	}
	if len(kernels) == 0 {
		slices.Reverse(helpers) // a kernel follows what it calls
		kernels = helpers
	}
	switch {
	case len(kernels) > 0:
		return fromTriton(file, kernels, opt.Entry)
	case slices.Contains(found.Classes, "Model") && found.function("get_inputs") != nil:
		return fromKernelBench(file, found), nil
	case found.function("generate_input") != nil && found.function("ref_kernel") != nil:
		return nil, usage.Errorf("%s is the reference of a GPU MODE task (name its task.yml)", file)
	}
	return nil, usage.Errorf("%s has neither a Triton kernel that stores something (@triton.jit) nor a KernelBench problem (class Model and get_inputs)", file)
}

// fromTriton describes a Triton kernel.
func fromTriton(file string, all []pythonFunction, entry string) (*draft, error) {
	k, names := chosen(all, func(f pythonFunction) string { return f.Name }, entry)
	if k == nil {
		return nil, usage.Errorf("%s has no Triton kernel %s that stores something (write --entry with one of %s)", file, entry, strings.Join(names, ", "))
	}
	root := packageRoot(file)
	source, err := filepath.Rel(root, file)
	if err != nil {
		return nil, usage.Errorf("%s is not below %s: %w", file, root, err)
	}
	d := &draft{kind: "a Triton kernel", name: nameOf(k.Name), mode: manifest.ModeCUDA, folder: filepath.Dir(file), sources: root, rooted: true}
	d.line("version: 1\nname: %s\nmode: cuda\ncompiler: triton", d.name)
	if len(all) > 1 && entry == "" {
		d.guess("entry: "+word(k.Name), fmt.Sprintf("the first of %d kernels in the file", len(all)))
	} else {
		d.line("entry: %s", word(k.Name))
	}
	d.line("source: %s", filepath.ToSlash(source))
	if skipped := importingPackages(root, source); len(skipped) > 0 {
		d.guess("skip_init: ["+strings.Join(skipped, ", ")+"]", "the kernel does not need what these packages import")
	}
	d.guess("arch: [sm_80, sm_89, sm_90]", "the GPUs that it is for")
	var parameters []parameter
	var constants []string
	for _, p := range k.Parameters {
		loads, stores := slices.Contains(k.Loads, p.Name), slices.Contains(k.Stores, p.Name)
		switch {
		case strings.HasSuffix(p.Annotation, "constexpr"):
			switch {
			case slices.Contains(k.Heuristics, p.Name):
			case !manifest.IsParameter(p.Name):
				d.doubted = append(d.doubted, Guess{doubt: inTypes, What: fmt.Sprintf("constants: a manifest cannot name %s: rename it in the source, in ASCII", p.Name)})
				d.line("# TODO: constants: a manifest cannot name %s: rename it in the source, in ASCII", p.Name)
			default:
				constants = append(constants, p.Name)
			}
		case loads && stores:
			parameters = append(parameters, parameter{name: p.Name, dtype: manifest.F32, access: manifest.InOut, guessed: "its format"})
		case stores:
			parameters = append(parameters, parameter{name: p.Name, dtype: manifest.F32, access: manifest.Out, guessed: "its format"})
		case loads || strings.HasSuffix(strings.ToLower(p.Name), "ptr"):
			parameters = append(parameters, parameter{name: p.Name, dtype: manifest.F32, access: manifest.In, guessed: "its format"})
		case pointerName.MatchString(p.Name) && !slices.Contains(k.Sizes, p.Name):
			parameters = append(parameters, parameter{name: p.Name, dtype: manifest.F32, access: manifest.In, guessed: "its format", doubt: "the body passes it on"})
		default:
			parameters = append(parameters, k.scalar(p.Name, p.Default))
		}
	}
	whole := function{parameters: parameters}
	whole.haveOutput()
	parameters = d.named(k.Name, parameters)
	dims := d.arguments(parameters)
	block := d.constants(constants, *k)
	d.doubt(inLaunch, fmt.Sprintf("launch: {grid: [\"ceildiv(%s, %s)\"]}", strings.Join(dims[:min(len(dims), maxAxes)], "*"), block), "the number of programs: what the caller writes in kernel[grid]")
	d.pythonReference(parameters, dims)
	return d, nil
}

// pointerName matches what authors call an array that they pass on.
var pointerName = regexp.MustCompile(`(?i)ptr$|^p_|_p$|^[QKVXYO]$|^out$`)

// scalar describes a parameter that is no array. Triton's are untyped: only a size becomes a dim, which is a number that bounds an
// index or has the name of a size.
func (k *pythonFunction) scalar(name string, value any) parameter {
	p := parameter{name: name, dtype: manifest.I32, access: manifest.Scalar}
	number, isNumber := value.(float64)
	switch {
	case fraction(name) || isNumber && number != float64(int(number)):
		p.dtype, p.use = manifest.F32, aNumber
	case strideName.MatchString(name):
		p.use = aStride
	case slices.Contains(k.Sizes, name) && !switchName.MatchString(name) || sizeName.MatchString(name):
		p.use = aSize
	case switchName.MatchString(name):
		p.use = aSwitch
	default:
		p.use = aFactor
	}
	return p
}

// sizeName matches what authors call sizes.
var sizeName = regexp.MustCompile(`^[A-Z]$|^[mnkbhsdt]$|(?i)^n_|^num_|_size$|_len$|seqlen|rows|cols|numel|length|^dim|_dim$|width|height|hidden|batch|^total|count|heads|vocab`)

// fraction tells scalars that are no sizes by their names.
func fraction(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc([]string{"eps", "scale", "alpha", "beta", "dropout", "prob", "softcap", "temperature", "lr", "decay", "momentum", "theta", "gamma", "rate"}, func(w string) bool { return strings.Contains(lower, w) })
}

// packageRoot is the folder that a file's package lies in: that of the file where it is in none.
func packageRoot(file string) string {
	dir := filepath.Dir(file)
	for exists(filepath.Join(dir, "__init__.py")) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	return dir
}

// importingPackages are the packages of a source whose __init__.py imports anything.
func importingPackages(root, source string) []string {
	var names, all []string
	for _, name := range strings.Split(filepath.ToSlash(filepath.Dir(source)), "/") {
		names = append(names, name)
		text, err := os.ReadFile(filepath.Join(root, filepath.Join(names...), "__init__.py"))
		if err == nil && imports.Match(text) {
			all = append(all, strings.Join(names, "."))
		}
	}
	return all
}

var imports = regexp.MustCompile(`(?m)^\s*(?:import|from)\s`)

// constants writes the values of the constexpr parameters, and returns what a program's share of the elements is.
func (d *draft) constants(names []string, k pythonFunction) (block string) {
	block = "1024"
	tuned := k.tuned(names)
	if k.Autotuned {
		d.autotune(tuned, k)
	}
	if i := slices.IndexFunc(tuned, blockName); i >= 0 {
		block = tuned[i]
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(tuned, name) })
	if len(names) > 0 {
		d.line("constants:")
	}
	for _, name := range names {
		d.guess(fmt.Sprintf("  %s: %s", word(name), likely(name)), "its value, or an expression over the dims, such as pow2ceil(N)")
	}
	return block
}

// autotune has every configuration tried. The values stand for the picked ones, so that the launch may use their names.
func (d *draft) autotune(tuned []string, k pythonFunction) {
	why := "the fastest configuration of each shape is gated"
	switch n := len(k.Configurations); {
	case n == 0:
		why += "; the file does not say which parameters they have"
	default:
		d.line("# @triton.autotune in the file:")
		for _, c := range k.Configurations {
			d.line("#   %s", c)
		}
	}
	var values []string
	for _, name := range tuned {
		value := likely(name)
		if len(k.Configurations) > 0 {
			if number, ok := k.Configurations[0].Constants[name].(float64); ok {
				value = fmt.Sprint(number)
			}
		}
		values = append(values, word(name)+": "+value)
	}
	if len(values) == 0 {
		d.guess("autotune: all", why)
		return
	}
	d.guess("autotune: {all: {"+strings.Join(values, ", ")+"}}", why+"; lint uses these values for the launch")
}

// tuned is the constants that the configurations of @triton.autotune have. Where the file does not show the configurations, names
// of tiles are taken for theirs.
func (k pythonFunction) tuned(constants []string) []string {
	if !k.Autotuned {
		return nil
	}
	var named []string
	for _, c := range k.Configurations {
		named = append(named, c.Names...)
	}
	return slices.DeleteFunc(slices.Clone(constants), func(name string) bool {
		return len(named) > 0 && !slices.Contains(named, name) || len(named) == 0 && !tileName.MatchString(name)
	})
}

// tileName matches what authors call the parameters of a tile, such as BLOCK_M, GROUP_SIZE or BK.
var tileName = regexp.MustCompile(`(?i)BLOCK|TILE|GROUP|CHUNK|SPLIT|^B[A-Z]$`)

func blockName(name string) bool { return strings.Contains(strings.ToUpper(name), "BLOCK") }

// likely is a value that most parameters of such a name take.
func likely(name string) string {
	if blockName(name) {
		return "1024"
	}
	return "1"
}

func (c configuration) String() string {
	var parts []string
	for _, name := range c.Names {
		value, ok := c.Constants[name]
		if !ok {
			value = "..."
		}
		parts = append(parts, fmt.Sprintf("%s=%v", name, value))
	}
	for _, option := range []struct {
		name  string
		value int
	}{{"num_warps", c.NumWarps}, {"num_stages", c.NumStages}, {"num_ctas", c.NumCTAs}} {
		if option.value > 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", option.name, option.value))
		}
	}
	return strings.Join(parts, " ")
}
