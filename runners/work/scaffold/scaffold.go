// Package scaffold writes a first manifest, reference and policy for what a repository has already: a CUDA or Triton kernel, a
// FlashInfer-Bench definition, a GPU MODE task, a KernelBench problem, or a benchmark program. It marks everything that it could
// only guess, and it neither imports nor runs what it reads. It also writes results in FlashInfer-Bench's format.
package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	rules "github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/results"
)

// Options say what to look at and where to write.
type Options struct {
	Paths  []string // what is there: a file, with others that belong to it
	Out    string   // folder of the manifest; "" is next to what is there
	Entry  string   // of several kernels in a file; "" is the first
	Force  bool     // replace files that exist
	Getenv func(string) string
}

// A File is one that is to be written.
type File struct {
	Name   string // path, as the caller would write it
	Text   string
	Exists bool
	keep   bool // an existing one is right as it is
}

// A Scaffold is what was made of what is there.
type Scaffold struct {
	Kind    string // in words: a Triton kernel
	Kernel  string // its name in the manifest
	Files   []File
	Guesses []Guess  // the most doubtful first
	Next    []string // commands
}

// A Guess is something that its author must look at.
type Guess struct {
	doubt doubt
	File  string
	Line  int // 0: the whole file
	What  string
}

// A doubt is how likely a guess is wrong, and how much it matters; the first are the worst.
type doubt int

const (
	inReference doubt = iota // what the kernel computes
	inArrays                 // which arrays are outputs, and which kernel is meant
	inTypes
	inShapes
	inLaunch
	inValues
	inSizes
	inLimits // and everything else
)

const maxInput = 16 << 20

// Look reads what is there and says what to write. It writes nothing.
func Look(ctx context.Context, opt Options) (*Scaffold, error) {
	if len(opt.Paths) == 0 {
		return nil, usage.Errorf("name what is there: a .cu file, a Triton .py file, a FlashInfer-Bench definition, a GPU MODE task.yml, a KernelBench problem, or a benchmark program")
	}
	for _, file := range opt.Paths {
		if info, err := os.Stat(file); err != nil {
			return nil, usage.Errorf("%w", err)
		} else if info.IsDir() && len(opt.Paths) == 1 {
			if task := filepath.Join(file, "task.yml"); exists(task) {
				opt.Paths = []string{task}
				continue
			}
			return nil, usage.Errorf("%s is a folder without a task.yml (name a file)", file)
		}
	}
	d, err := lookAt(ctx, opt)
	if err != nil {
		return nil, err
	}
	return d.scaffold(opt)
}

// lookAt finds out what the first file is.
func lookAt(ctx context.Context, opt Options) (*draft, error) {
	first := opt.Paths[0]
	text, err := results.ReadAtMost(first, maxInput)
	if err != nil {
		return nil, usage.Errorf("%w", err)
	}
	switch ext := path.Ext(first); {
	case ext == ".cu" || ext == ".cuh":
		return fromCUDA(first, string(text), opt.Entry)
	case slices.Contains([]string{".c", ".cc", ".cpp", ".cxx", ".c++"}, ext):
		return fromC(first, string(text), opt.Entry)
	case ext == ".json":
		return fromDefinition(first, text, opt.Paths[1:])
	case ext == ".yml" || ext == ".yaml":
		return fromTask(ctx, first, text, opt.Getenv)
	case ext == ".py":
		return fromPython(ctx, first, opt)
	default:
		return fromProgram(first, text)
	}
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// nameOf is a kernel's name from whatever it is called.
func nameOf(text string) string {
	if name := strings.Trim(notInName.ReplaceAllString(text, "_"), "_.-"); name != "" && !emptyWord.MatchString(name) {
		return name
	}
	return "kernel"
}

// emptyWord is what YAML reads as nothing.
var emptyWord = regexp.MustCompile(`(?i)^null$`)

// word is a name as YAML has it.
func word(name string) string {
	if emptyWord.MatchString(name) {
		return strconv.Quote(name)
	}
	return name
}

// A draft is a manifest on its way, line by line.
type draft struct {
	kind, name string
	mode       manifest.Mode
	folder     string // that the manifest belongs into unless the caller says otherwise
	sources    string // folder of the sources, where it is not to be copied
	rooted     bool   // the sources may be those of the whole repository
	manifest   strings.Builder
	files      []File // by their names beside the manifest
	doubted    []Guess
	next       []string
}

// line adds one to the manifest.
func (d *draft) line(format string, args ...any) {
	fmt.Fprintf(&d.manifest, format+"\n", args...)
}

// guess adds one with what was guessed in it, of which little depends.
func (d *draft) guess(line, why string) { d.doubt(inLimits, line, why) }

// doubt adds one with what was guessed in it.
func (d *draft) doubt(how doubt, line, why string) {
	field, _, _ := strings.Cut(strings.TrimLeft(line, " -{"), ":")
	if _, name, ok := strings.Cut(line, "{name: "); ok {
		field, _, _ = strings.Cut(name, ",")
	}
	d.doubted = append(d.doubted, Guess{doubt: how, What: field + ": " + why})
	d.line("%s # TODO: %s", line, why)
}

func (d *draft) file(name, text string) {
	d.files = append(d.files, File{Name: name, Text: text})
}

// scaffold places the files, and reads the manifest as everybody else will.
func (d *draft) scaffold(opt Options) (*Scaffold, error) {
	out := opt.Out
	if out == "" {
		out = d.folder
	}
	top := repository(out)
	if opt.Out == "" && top != "" && same(out, top) { // the top folder belongs to no kernel
		out = filepath.Join(out, "kernels", d.name)
	}
	name := manifest.FileName
	if !opt.Force && exists(filepath.Join(out, name)) {
		name = d.name + "." + manifest.FileName
	}
	if top != "" && same(out, top) {
		return nil, usage.Errorf("%s is the top folder of the repository: %s (write --out kernels/%s)", out, plan.TopManifest, d.name)
	}
	text := languageServer(manifest.SchemaID) + d.manifest.String()
	if d.sources != "" && !same(d.sources, out) {
		root, ok := below(top, d.sources)
		if !ok || root == "." && !d.rooted {
			return nil, usage.Errorf("the manifest cannot name the sources in %s from %s: put both into one git repository, or leave --out out", d.sources, out)
		}
		text = strings.Replace(text, "\nsource: ", "\nroot: "+root+"\nsource: ", 1)
	}
	if _, err := manifest.Parse(filepath.Join(out, name), []byte(text)); err != nil {
		return nil, usage.Errorf("%s cannot be described: %w (write the manifest by hand: docs/manifest.md)", opt.Paths[0], err)
	}
	s := &Scaffold{Kind: d.kind, Kernel: d.name, Guesses: d.guessesIn(filepath.Join(out, name), out, text), Next: d.next}
	add := func(f File) {
		f.Exists = exists(f.Name)
		s.Files = append(s.Files, f)
	}
	add(File{Name: filepath.Join(out, name), Text: text})
	for _, f := range d.files {
		f.Name = filepath.Join(out, f.Name)
		add(f)
	}
	if top == "" {
		top = "."
	}
	if policy := filepath.Join(top, filepath.FromSlash(plan.PolicyFile)); !exists(policy) {
		add(File{Name: policy, Text: policyOf(d.mode)})
	}
	return s, nil
}

// languageServer is the line by which editors find a schema.
func languageServer(schema string) string { return "# yaml-language-server: $schema=" + schema + "\n" }

// guessesIn returns the guesses with their lines, the most doubtful first.
func (d *draft) guessesIn(file, out, text string) []Guess {
	all := slices.Clone(d.doubted)
	var lines []int
	for i, line := range strings.Split(text, "\n") {
		if strings.Contains(line, " # TODO: ") {
			lines = append(lines, i+1)
		}
	}
	next := 0
	for i := range all {
		if all[i].File != "" {
			all[i].File = filepath.Join(out, all[i].File)
			continue
		}
		all[i].File, all[i].Line = file, 0
		if next < len(lines) {
			all[i].Line = lines[next]
			next++
		}
	}
	slices.SortStableFunc(all, func(a, b Guess) int { return int(a.doubt - b.doubt) })
	return all
}

// repository is the top folder of the git repository that a folder is, or will be, in; "" where there is none.
func repository(dir string) string {
	full, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	for at := full; ; at = filepath.Dir(at) {
		if exists(filepath.Join(at, ".git")) {
			if here, err := os.Getwd(); err == nil {
				if rel, err := filepath.Rel(here, at); err == nil {
					return rel
				}
			}
			return at
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}

func same(a, b string) bool {
	full := func(dir string) string {
		abs, _ := filepath.Abs(dir)
		return abs
	}
	return full(a) == full(b)
}

// below is a folder's path from the top of its repository.
func below(top, dir string) (string, bool) {
	if top == "" {
		return "", false
	}
	a, _ := filepath.Abs(top)
	b, _ := filepath.Abs(dir)
	rel, err := filepath.Rel(a, b)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// Write writes the files. None that exists is replaced unless force says so, and then none is written.
func (s *Scaffold) Write(force bool) error {
	var there []string
	for _, f := range s.Files {
		if f.Exists && !f.keep {
			there = append(there, f.Name)
		}
	}
	if len(there) > 0 && !force {
		return usage.Errorf("nothing was written: %s exists already (move it away, write --out FOLDER, or replace it with --force)", strings.Join(there, ", "))
	}
	for _, f := range s.Files {
		if f.Exists && f.keep {
			continue
		}
		err := os.MkdirAll(filepath.Dir(f.Name), 0o755)
		if err == nil {
			err = replace(f.Name, f.Text)
		}
		if err != nil {
			return fmt.Errorf("writing %s: %w", f.Name, err)
		}
	}
	return nil
}

// replace follows no link: what it leads to is not what was named.
func replace(file, text string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// policyOf is a first policy for kernels of a mode.
func policyOf(mode manifest.Mode) string {
	text := languageServer(rules.SchemaID) + `# What every change to a kernel must show. kernelgate policy explain says it in words.
version: 1
gates:
  correctness:
    shapes: all
    seeds: [0, 1, 2]
    distributions: [normal, uniform]
    norm_error: "<= 1%" # TODO: a change may not be wrong by more than this, over all elements
  performance:
    guard: {shapes: all, speedup: ">= -5%"} # TODO: no shape may become slower by more than this
rules:
  - name: default
`
	if mode == manifest.ModeCommand {
		return strings.Replace(text, "    distributions: [normal, uniform]\n", "", 1)
	}
	return text
}

// dtypes are the formats of elements, by what C, CUDA, PyTorch and FlashInfer-Bench call them.
var dtypes = map[string]manifest.DType{
	"float": manifest.F32, "double": manifest.F64, "half": manifest.F16, "__half": manifest.F16, "__nv_bfloat16": manifest.BF16, "nv_bfloat16": manifest.BF16,
	"bfloat16": manifest.BF16, "int": manifest.I32, "int32_t": manifest.I32, "unsigned": manifest.U32, "unsigned int": manifest.U32, "uint32_t": manifest.U32, "uint": manifest.U32,
	"long long": manifest.I64, "int64_t": manifest.I64, "long": manifest.I64, "size_t": manifest.U64, "uint64_t": manifest.U64, "unsigned long long": manifest.U64, "unsigned long": manifest.U64,
	"int16_t": manifest.I16, "short": manifest.I16, "uint16_t": manifest.U16, "unsigned short": manifest.U16, "int8_t": manifest.I8, "signed char": manifest.I8, "char": manifest.I8,
	"uint8_t": manifest.U8, "uchar": manifest.U8, "byte": manifest.U8, "ushort": manifest.U16, "ulong": manifest.U64, "Half": manifest.F16, "half_t": manifest.F16, "BFloat16": manifest.BF16, "_Float16": manifest.F16, "unsigned char": manifest.U8, "bool": manifest.Bool, "__nv_fp8_e4m3": manifest.E4M3, "__nv_fp8_e5m2": manifest.E5M2,
	"float64": manifest.F64, "float32": manifest.F32, "float16": manifest.F16, "float8_e4m3fn": manifest.E4M3, "float8_e5m2": manifest.E5M2, "float4_e2m1": manifest.E2M1,
	"int64": manifest.I64, "int32": manifest.I32, "int16": manifest.I16, "int8": manifest.I8, "uint8": manifest.U8,
}

// integer tells formats that a kernel may index with, whose bounds a manifest must state.
func integer(d manifest.DType) bool {
	return slices.Contains([]manifest.DType{manifest.I8, manifest.U8, manifest.I16, manifest.U16, manifest.I32, manifest.U32, manifest.I64, manifest.U64}, d)
}
