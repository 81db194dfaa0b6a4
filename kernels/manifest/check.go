package manifest

import (
	"slices"
	"strings"

	"github.com/expr-lang/expr/vm"

	"github.com/kernelgate/kernelgate/policies/ident"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A checker checks what no single field can check.
type checker struct {
	m      *Manifest
	n      *strict.Node
	failed bool

	work     int                    // the cost of computing values so far
	depths   map[string]int         // how many structs deep an argument goes
	ready    map[string]*vm.Program // compiled expressions by their text
	reported map[string]bool        // places of values that cannot be computed
}

func (c *checker) errorf(at reporter, format string, args ...any) {
	c.failed = true
	at.Errorf(format, args...)
}

// ValidateStrict checks the manifest as a whole. Values are computed only when
// everything that they are computed from is right, so that one mistake is not
// reported as ten.
func (m *Manifest) ValidateStrict(n *strict.Node) {
	c := &checker{m: m, n: n, depths: map[string]int{}, ready: map[string]*vm.Program{}, reported: map[string]bool{}}
	m.holdings = m.findHoldings()
	c.checkNames()
	c.checkMode()
	c.checkThreads()
	c.checkVariants()
	c.checkChoose()
	c.checkReference()
	c.checkCompiler()
	c.checkLanguages()
	c.checkSources()
	c.checkInclude()
	c.checkFlags()
	c.checkArch()
	c.checkRanges()
	c.checkWeights()
	c.checkArguments()
	c.checkRecorded()
	c.checkScratch()
	c.checkSteps()
	c.checkJoined()
	c.compileAll()
	if n.Clean() && !c.failed {
		c.checkChosen()
		c.evaluateAll()
	}
	all, overDims := m.exprs()
	for _, e := range slices.Concat(all, overDims) {
		e.at = nil
	}
}

func (c *checker) checkNames() {
	m, n := c.m, c.n
	if n.Has("version") && m.Version != Version {
		c.errorf(n.Child("version"), "%d is not a version this program reads (write %d)", m.Version, Version)
	}
	if n.Has("name") && !ident.IsName(m.Name) {
		c.errorf(n.Child("name"), "%q is not a name (write letters, digits, '.', '_' and '-')", m.Name)
	}
	if n.Has("entry") {
		checkEntry(n.Child("entry"), m.Entry)
	}
	if m.Reference != nil && m.Entry != "" && m.Reference.Entry == m.Entry && !m.Reference.Python() {
		c.errorf(n.Child("reference", "entry"), "%q is the kernel's entry too (name the reference differently)", m.Entry)
	}
	for i, r := range m.Rivals {
		if slices.ContainsFunc(m.Rivals[:i], func(other Rival) bool { return other.Name == r.Name }) {
			c.errorf(itemOf(n.Child("rivals"), i).Child("name"), "%q is the name of an earlier rival too (choose another)", r.Name)
		}
	}
	// A toggle is a macro: it would replace the other name in the source.
	for _, p := range n.Child("toggles").Pairs() {
		_, argument := m.passable(p.Key)
		if argument || slices.Contains(m.dims(), p.Key) || p.Key == m.Entry {
			c.errorf(p, "%q is also the name of a dim, an argument, scratch or the entry (choose another name)", p.Key)
		}
	}
}

// needs is what each mode must have and cannot use.
var needs = map[Mode]struct{ required, refused []string }{
	ModeCUDA:    {[]string{"entry", "arguments", "arch", "launch", "reference", "tolerance"}, []string{"command", "threads"}},
	ModeCPU:     {[]string{"entry", "arguments", "reference", "tolerance"}, []string{"arch", "launch", "scratch", "command"}},
	ModeCommand: {[]string{"command"}, []string{"entry", "arguments", "root", "include", "include_first", "arch", "flags", "launch", "scratch", "reference", "tolerance", "source", "threads", "choose"}},
}

var examples = map[string]string{
	"entry":     "entry: sdpa_fp8",
	"arguments": "arguments: [{name: o, dtype: f16, access: out, shape: [S, D]}]",
	"arch":      "arch: [sm_89]",
	"launch":    "launch: {grid: [\"ceildiv(S, 64)\"], block: [128]}",
	"reference": "reference: {source: reference.c, entry: sdpa_reference}",
	"tolerance": "tolerance: {abs: 0.06}",
	"command":   "command: {build: [make, bench], bench: [./bench, --json]}",
}

func (c *checker) checkMode() {
	mode := c.m.Mode
	for _, field := range needs[mode].required {
		if given(c.n, field) || field == "launch" && c.launchedByVariants() || field == "entry" && c.onlySteps() {
			continue
		}
		c.errorf(c.n.Child(field), "is required in %s mode (write e.g. %s)", mode, examples[field])
	}
	for _, field := range needs[mode].refused {
		if given(c.n, field) {
			c.errorf(c.n.Child(field), "is not read in %s mode (delete it)", mode)
		}
		for _, v := range c.m.Variants {
			own := c.n.Child("variants", v.Name)
			if (field == "arch" || field == "launch") && given(own, field) {
				c.errorf(own.Child(field), "is not read in %s mode (delete it)", mode)
			}
		}
	}
}

// maxCPUThreads is the most that a kernel on the CPU may have.
const maxCPUThreads = 64

func (c *checker) checkThreads() {
	at := c.n.Child("threads")
	switch given := c.n.Has("threads"); {
	case !given:
		c.m.Threads = 1
	case c.m.Threads < 1 || c.m.Threads > maxCPUThreads:
		c.errorf(at, "%d is no number of threads (write 1 to %d)", c.m.Threads, maxCPUThreads)
	}
}

// launchedByVariants reports whether the kernel needs no launch, because its variants have one. If
// only some have one, it reports the first variant without.
func (c *checker) launchedByVariants() bool {
	without := func(v Variant) bool { return v.Launch == nil }
	i := slices.IndexFunc(c.m.Variants, without)
	if i < 0 {
		return len(c.m.Variants) > 0
	}
	mixed := slices.ContainsFunc(c.m.Variants, func(v Variant) bool { return !without(v) })
	if mixed {
		c.errorf(c.n.Child("launch"), "is required: variant %s does not set it (write e.g. %s)", c.m.Variants[i].Name, examples["launch"])
	}
	return mixed
}

// given reports whether a field has a value; null, and none for a mapping, remove it.
func given(n *strict.Node, field string) bool {
	at := n.Child(field)
	text, scalar := at.Text()
	return n.Has(field) && !at.Null() && !(scalar && text == "none" && field != "entry")
}

func (c *checker) checkVariants() {
	m, n := c.m, c.n
	switch has := n.Has("variants"); {
	case has && n.Has("source"):
		c.errorf(n.Child("source"), "is set together with variants (delete it, or move it into a variant)")
	case !has && !n.Has("source") && (m.Mode == ModeCUDA || m.Mode == ModeCPU):
		c.errorf(n.Child("source"), "is required (write e.g. source: sdpa.c, or variants)")
	case !has:
		m.Variants = Variants{{Name: "default", Source: m.Source}}
	}
	switch {
	case slices.Contains(m.VariantNames(), m.DefaultVariant) || len(m.Variants) == 0 || n.Has("choose"):
	case n.Has("default_variant"):
		c.errorf(n.Child("default_variant"), "%q is none of the variants (write one of %s)", m.DefaultVariant, strings.Join(m.VariantNames(), ", "))
	case len(m.Variants) == 1:
		m.DefaultVariant = m.Variants[0].Name
	default:
		c.errorf(n.Child("default_variant"), "is required with more than one variant (write one of %s, or choose)", strings.Join(m.VariantNames(), ", "))
	}
	for _, v := range m.Variants {
		for _, p := range n.Child("variants", v.Name, "toggles").Pairs() {
			i := slices.IndexFunc(m.Toggles, func(t Toggle) bool { return t.Name == p.Key })
			value, read := v.Toggles[p.Key]
			switch {
			case i < 0:
				c.errorf(p, "is no toggle (declare it: toggles: {%s: {values: [0, 1], default: 0, layer: structure}})", p.Key)
			case read && len(m.Toggles[i].Values) > 0 && !slices.Contains(m.Toggles[i].Values, value):
				c.errorf(p.Value, "%d is none of the toggle's values %v (write one of them)", value, m.Toggles[i].Values)
			}
		}
	}
}
