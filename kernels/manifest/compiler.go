package manifest

import (
	"fmt"
	"maps"
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

// A compilerRule says which fields the manifests of a compiler have.
type compilerRule struct {
	endings []string // of sources
	sources []string // see defaultSources
	refused []string // fields that it does not read
	flags   flagList // none where it is empty
	// launches reports that the compiler decides how many threads a block has and what shared
	// memory it needs.
	launches bool
}

var compilerRules = map[Compiler]compilerRule{
	NVCC:    {endings: []string{".cu", ".cuh"}, sources: defaultSources[ModeCUDA], refused: append(slices.Clone(tritonFields), "build"), flags: flagLists[ModeCUDA]},
	PTX:     {endings: []string{".ptx"}, sources: []string{"*.ptx"}, refused: append(slices.Clone(tritonFields), "build", "include", "include_first", "toggles"), flags: flagList{ptxasFlags, ptxasFlagsPrompt}},
	Triton:  {endings: []string{".py"}, sources: []string{"*.py", "**/*.py"}, refused: []string{"build", "include_first", "flags", "choose"}, launches: true},
	Program: {sources: []string{"**"}, refused: append(slices.Clone(tritonFields), "include", "include_first", "flags", "scratch", "choose"), launches: true},
}

var tritonFields = []string{"skip_init", "stubs", "constants", "autotune", "num_warps", "num_stages", "num_ctas"}

// compilerLaunches reports whether the kernel's compiler decides the block size, not the manifest.
func (m *Manifest) compilerLaunches() bool { return compilerRules[m.Compiler].launches }

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
		if v.Source != "" && len(rule.endings) > 0 && !slices.Contains(rule.endings, path.Ext(v.Source)) {
			c.errorf(at, "%q is no source for compiler: %s (its name must end in %s%s)", v.Source, m.Compiler, strings.Join(rule.endings, " or "), otherCompiler(v.Source))
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

// otherCompiler returns a hint for sources whose name identifies a compiler.
func otherCompiler(source string) string {
	for _, other := range compilers {
		if slices.Contains(compilerRules[other].endings, path.Ext(source)) {
			return fmt.Sprintf("; write compiler: %s for this one", other)
		}
	}
	return ""
}

// checkBlock checks that the block is set exactly if the manifest decides it.
func (c *checker) checkBlock(l *Launch, at *strict.Node) {
	if l == nil {
		return
	}
	starts := []*strict.Node{at}
	if at.Has("steps") {
		starts = nil
		for i, step := range at.Child("steps").Items() {
			if i < len(l.Steps) && l.Steps[i].kernel() {
				starts = append(starts, step)
			}
		}
	}
	for _, start := range starts {
		if !c.m.compilerLaunches() && !start.Has("block") && start.Has("grid") {
			c.errorf(start.Child("block"), "is required (write e.g. block: [128])")
		}
	}
	refused := []string{"block", "shared_memory", "cluster", "max_threads", "cooperative", "programmatic", "priority", "carveout"}
	switch {
	case c.m.Compiler == Program:
		starts, refused = []*strict.Node{at}, append(refused, "args", "steps")
	case !c.m.compilerLaunches():
		refused = nil
		for _, start := range starts {
			for _, field := range stepTritonFields {
				if start.Has(field) {
					c.errorf(start.Child(field), "is not read with compiler: %s (delete it)", c.m.Compiler)
				}
			}
		}
	}
	for _, start := range starts {
		for _, field := range refused {
			if start.Has(field) {
				c.errorf(start.Child(field), "is what compiler: %s says itself (delete it)", c.m.Compiler)
			}
		}
	}
}

// stepTritonFields are the fields of a step that only Triton reads.
var stepTritonFields = []string{"constants", "num_warps", "num_stages"}

var pythonName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

func (c *checker) checkTriton() {
	m, n := c.m, c.n
	if m.Entry != "" && !pythonName.MatchString(m.Entry) {
		c.errorf(n.Child("entry"), "%q is no name of a Python function (write e.g. softmax_kernel)", m.Entry)
	}
	for _, p := range n.Child("constants").Pairs() {
		if slices.ContainsFunc(m.Toggles, func(t Toggle) bool { return t.Name == p.Key }) {
			c.errorf(p, "%q is a toggle, which is a constant already (delete it here)", p.Key)
		}
	}
	c.checkStandIns()
	c.checkAutotune()
	c.launches(func(l *Launch, at *strict.Node) {
		for i, s := range l.Steps {
			if s.Entry != "" && !pythonName.MatchString(s.Entry) {
				c.errorf(itemOf(at.Child("steps"), i).Child("entry"), "%q is no name of a Python function (write e.g. softmax_kernel)", s.Entry)
			}
		}
	})
	c.checkDescriptors()
	for i := range m.Arguments {
		a := &m.Arguments[i]
		array := a.Access != Scalar && a.Access != Absent
		if a.Access == Struct || len(a.Vector) > 0 || a.Structs() || array && tritonTypes[a.DType] == "" {
			c.errorf(itemOf(n.Child("arguments"), i), "%s cannot be passed to a Triton kernel yet: structs, vectors and packed formats are for CUDA (pass arrays and scalars)", a.Name)
		}
	}
}

// sourcesByDefault returns what a change may edit if the manifest does not say.
func (m *Manifest) sourcesByDefault() []string {
	if m.Mode == ModeCUDA && m.Compiler != "" {
		return compilerRules[m.Compiler].sources
	}
	return defaultSources[m.Mode]
}

// flagList returns the flags that the kernel's compiler may get; false if it takes none.
func (m *Manifest) flagList() (flagList, bool) {
	if m.Mode == ModeCUDA && m.Compiler != "" {
		list := compilerRules[m.Compiler].flags
		return list, list.allowed != nil
	}
	list, known := flagLists[m.Mode]
	return list, known
}

// compilerRecipe describes the compiler's input, in words.
func (m *Manifest) compilerRecipe() string {
	if m.Compiler == "" || m.Compiler == NVCC {
		return ""
	}
	parts := []string{"compiler: " + string(m.Compiler)}
	for _, name := range slices.Sorted(maps.Keys(m.Constants)) {
		parts = append(parts, name+" = "+m.Constants[name].String())
	}
	if m.Autotune != nil {
		parts = append(parts, "autotune: "+m.Autotune.String())
	}
	for name, e := range map[string]*Expr{"num_warps": m.NumWarps, "num_stages": m.NumStages, "num_ctas": m.NumCTAs} {
		if e != nil {
			parts = append(parts, name+": "+e.text)
		}
	}
	for name, list := range map[string][]string{"skip_init": m.SkipInit, "stubs": m.Stubs} {
		if len(list) > 0 {
			parts = append(parts, name+": "+written(list))
		}
	}
	slices.Sort(parts[1:])
	if len(m.Build) > 0 {
		parts = append(parts, "build: "+strings.Join(m.Build, " "))
	}
	return strings.Join(parts, ", ")
}
